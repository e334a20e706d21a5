# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-split-gated-projections` keeps every bit and leaves no dispatch to the gate."""

from pathlib import Path

import numpy as np
import pytest

import prepass
from prepass.amdgpu.inputs import compile_to_assembly

from .conftest import GFX942, LLVM_CPU
from .dispatches import cost

PIPELINE = "builtin.module(prepass-split-gated-projections)"
GEGLU = Path(__file__).parent / "data" / "geglu.mlir"
SHAPES = [(2, 1024, 640), (5120, 640), (5120,), (640, 2560), (640,)]


@pytest.mark.parametrize("level", ["O0", "O3"])
def test_results_stay_the_same(level):
    rng = np.random.default_rng(0)
    inputs = [(rng.normal(0, 1, shape) / 8).astype(np.float16) for shape in SHAPES]
    found = []
    for pipeline in (None, PIPELINE):
        program = prepass.compile(GEGLU, pipeline=pipeline, flags=(*LLVM_CPU, f"--iree-opt-level={level}"))
        found.append(np.asarray(prepass.run(program, *inputs)[0]))
    assert found[0].any()
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("level", ["O0", "O3"])
def test_the_gate_is_in_a_projection(level):
    stock, ours = (cost(GEGLU, pipeline, level) for pipeline in (None, PIPELINE))
    assert any("elementwise" in name for name in stock.names)
    assert all("matmul" in name for name in ours.names)
    assert ours.dispatches == stock.dispatches == 3
    assert ours.transient_bytes * 3 == stock.transient_bytes * 2


def test_the_projections_use_matrix_instructions():
    kernels = compile_to_assembly(GEGLU, pipeline=PIPELINE, flags=(*GFX942, "--iree-opt-level=O3"))
    assert len(kernels) == 3
    assert all(kernel.counts.mfmas and not kernel.spills for kernel in kernels)

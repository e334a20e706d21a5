# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-split-gated-projections` keeps every bit and leaves no dispatch to the gate."""

import re
from pathlib import Path

import numpy as np
import pytest

import prepass

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


def test_the_projections_use_matrix_instructions(tmp_path):
    dump = f"--iree-hal-dump-executable-intermediates-to={tmp_path}"
    prepass.compile(GEGLU, pipeline=PIPELINE, flags=(*GFX942, "--iree-opt-level=O3", dump))
    text = "".join(file.read_text() for file in tmp_path.glob("*.rocmasm"))
    bodies = text.split(".amdhsa_kernel")[:-1]
    assert len(bodies) == 3
    assert all("v_mfma_f32" in body for body in bodies)
    assert set(re.findall(r"\.vgpr_spill_count: +(\d+)", text)) == {"0"}

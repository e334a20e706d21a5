# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-simplify-casts` keeps every bit with `mode=exact`; no elementwise op stands alone between contractions."""

from pathlib import Path

import numpy as np
import pytest

import prepass
from prepass.amdgpu.inputs import compile_to_assembly
from prepass.checking.numerics import compare

from .conftest import GFX942, LLVM_CPU
from .dispatches import cost
from .norm_cases import NORM_CASES

EXACT = "builtin.module(prepass-simplify-casts)"
FAST = "builtin.module(prepass-simplify-casts{mode=fast})"
BOTH = "builtin.module(prepass-promote-accumulators,canonicalize,prepass-simplify-casts,cse)"

DATA = Path(__file__).parent / "data"
# Modules that have an elementwise op with its producer and its consumer, and how many contractions they have.
MODULES = {"scaled_transpose": 2, "extend": 2, "gated_gelu": 3}
SHAPES = {
    "scaled_transpose": ["2x77x2048xf16", "2x2048x640xf16", "20x1024x64xf16"],
    "extend": ["1280x640xf16", "640x2560xf16", "2560x320xf16"],
    "gated_gelu": ["2x1024x640xf16", "2x640x2560xf16", "2x640x2560xf16", "2x2560x640xf16"],
}


def arguments(name):
    rng = np.random.default_rng(0)
    for text in SHAPES[name]:
        *sizes, _ = text.split("x")
        yield (rng.normal(0, 1, [int(size) for size in sizes]) / 8).astype(np.float16)


def results(source, pipeline, level, inputs):
    program = prepass.compile(source, pipeline=pipeline, flags=(*LLVM_CPU, f"--iree-opt-level={level}"))
    return [np.asarray(array) for array in prepass.run(program, *inputs)]


@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("case", NORM_CASES, ids=str)
def test_exact_keeps_every_bit_of_norms(case, element, level):
    inputs = case.inputs(element, 0.5, 1)
    (stock,), (ours,) = (results(case.module(element), p, level, inputs) for p in (None, EXACT))
    assert stock.tobytes() == ours.tobytes()


@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize("name", MODULES)
def test_exact_keeps_every_bit_between_contractions(name, level):
    inputs = list(arguments(name))
    (stock,), (ours,) = (results(DATA / f"{name}.mlir", p, level, inputs) for p in (None, EXACT))
    assert stock.tobytes() == ours.tobytes()


@pytest.mark.parametrize("name", MODULES)
def test_fast_differs_by_roundings_alone(name):
    inputs = list(arguments(name))
    stock, ours = (results(DATA / f"{name}.mlir", p, "O2", inputs) for p in (None, FAST))
    difference = compare(ours, stock)
    assert difference.within(2e-3 * np.abs(stock[0]).max()), difference


@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize("name", MODULES)
def test_nothing_elementwise_stands_alone(name, level):
    stock, ours = (cost(DATA / f"{name}.mlir", pipeline, level) for pipeline in (None, BOTH))
    assert ours.dispatches == MODULES[name]
    assert all("matmul" in dispatch for dispatch in ours.names)
    assert ours.transient_bytes <= stock.transient_bytes


def test_a_tensor_between_contractions_is_stored_narrow():
    stock, ours = (cost(DATA / "gated_gelu.mlir", pipeline, "O3") for pipeline in (None, BOTH))
    assert ours.transient_bytes * 3 == stock.transient_bytes * 2


@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize("case", [c for c in NORM_CASES if c.op == "group_norm"], ids=str)
def test_the_means_of_a_group_norm_become_one(case, level):
    stock, ours = (cost(case.module("f16"), pipeline, level) for pipeline in (None, BOTH))
    assert ours.dispatches == stock.dispatches - 1
    assert ours.transient_bytes <= stock.transient_bytes + 256


@pytest.mark.parametrize("name", ["extend", "gated_gelu"])
def test_extended_operands_meet_in_matrix_instructions(name):
    flags = (*GFX942, "--iree-opt-level=O3")
    stock, ours = (compile_to_assembly(DATA / f"{name}.mlir", pipeline=p, flags=flags) for p in (None, EXACT))
    # One operand comes narrow and the other wide to the last contraction.
    assert stock[-1].counts.mfmas == 0
    assert all(kernel.counts.mfmas for kernel in ours)


def test_a_wide_operand_keeps_its_matrix_instructions():
    lines = (DATA / "extend.mlir").read_text().splitlines()
    first = next(n for n, line in enumerate(lines) if "%8 = linalg.generic" in line)
    text = "\n".join(lines[:first] + lines[first + 5 :]).replace("%8", "%arg2")
    text = text.replace("%arg2: tensor<2560x320xf16>", "%arg2: tensor<2560x320xf32>")
    kernels = compile_to_assembly(text, pipeline=EXACT, flags=(*GFX942, "--iree-opt-level=O3"))
    assert all(kernel.counts.mfmas for kernel in kernels)

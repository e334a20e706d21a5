# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-pad-output-channels` keeps results, run on llvm-cpu as it is written for gfx942, and brings MFMA."""

from __future__ import annotations

import random

import pytest
from iree.compiler import ir

import prepass
from prepass.amdgpu.inputs import compile_to_assembly
from prepass.checking.numerics import compare
from prepass.ir.parse import copy_module
from prepass.ir.targets import Target
from prepass.passes.pad_output_channels import PadOutputChannelsPass
from prepass.pipeline.base import PassContext

from .conftest import GFX942, LLVM_CPU
from .convolution_cases import FHWC, NHWC, ConvCase

PIPELINE = "builtin.module(prepass-pad-output-channels)"


def padded(source: str) -> str:
    """The text of a module whose convolution is padded as for gfx942."""
    module = copy_module(source)
    context = PassContext("prepass-pad-output-channels", Target("rocm", "gfx942"))
    for dialect in PadOutputChannelsPass.dependent_dialects:
        module.context.get_dialect_descriptor(dialect)
    with module.context, ir.Location.unknown():
        PadOutputChannelsPass().run(module.operation, context)
    assert module.operation.verify()
    assert context.counters["padded"] == 1, context.remarks
    return str(module)


def random_case(seed: int) -> ConvCase:
    """One output channel, or up to 4 of single pixels, in any layout, with any stride."""
    rng = random.Random(seed)
    layout = rng.choice([{}, NHWC, FHWC, {"input": "ncw", "filter": "fcw", "output": "nfw"}])
    kernel, filters = rng.choice([(3, 1), (1, rng.randint(1, 4))])
    sizes = (("n", rng.choice([1, 2])), ("c", rng.choice([64, 80])), ("f", filters))
    return ConvCase(
        f"out_{seed}",
        **layout,
        sizes=sizes,
        kernel=kernel,
        low=kernel // 2,
        high=kernel // 2,
        stride=rng.choice([1, 2]),
        element=rng.choice(["f32", "f16", "bf16"]),
        constant=rng.random() < 0.5,
        dynamic=rng.choice(["", "n"]),
        after=rng.choice([(), ("bias",)]),
    )


@pytest.mark.parametrize("seed", range(8))
def test_results_stay_the_same(seed):
    case = random_case(seed)
    compiled = prepass.compile(padded(case.module()), flags=LLVM_CPU)
    (result,) = prepass.run(compiled, *case.inputs())
    difference = compare([result], [case.reference()])
    assert difference.within(case.tolerance), (difference.largest, case)


def test_matrix_instructions_are_used():
    case = ConvCase("out", **FHWC, sizes=(("c", 64), ("f", 1), ("h", 32), ("w", 32)), element="f16", constant=True)
    stock = compile_to_assembly(case.module(), flags=GFX942)
    ours = compile_to_assembly(case.module(), pipeline=PIPELINE, flags=GFX942)
    assert not any(kernel.counts.mfmas for kernel in stock)
    assert any(kernel.counts.mfmas for kernel in ours)

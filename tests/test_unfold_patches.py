# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-unfold-patches` keeps results, in both of its forms, and reads patches in whole vectors on gfx942."""

from __future__ import annotations

import random

import pytest
from iree.compiler import ir

import prepass
from prepass.amdgpu.inputs import compile_to_assembly
from prepass.checking.numerics import compare
from prepass.ir.parse import copy_module
from prepass.ir.targets import Target
from prepass.passes.unfold_patches import UnfoldPatchesPass
from prepass.pipeline.base import PassContext

from .conftest import GFX942, LLVM_CPU
from .convolution_cases import FHWC, NHWC, ConvCase

PIPELINE = "builtin.module(prepass-unfold-patches)"
LAYOUTS = [
    {},
    NHWC,
    FHWC,
    {"input": "ncw", "filter": "fcw", "output": "nfw"},
    {"input": "ndhwc", "filter": "dhwcf", "output": "ndhwf"},
]


def random_case(seed: int) -> ConvCase:
    """Patches of 2 or 3 elements a side, in any layout, at batches and channels of 1 too."""
    rng = random.Random(seed)
    kernel = rng.choice([2, 3])
    sizes = {"n": rng.choice([1, 2]), "c": rng.choice([1, 3, 4]), "f": rng.choice([1, 5, 8])}
    sizes |= {letter: kernel * rng.randint(1, 4) for letter in "dhw"}
    layout = rng.choice(LAYOUTS)
    return ConvCase(
        f"patches_{seed}",
        **layout,
        sizes=tuple(sizes.items()),
        kernel=kernel,
        stride=kernel,
        low=0,
        high=0,
        element=rng.choice(["f32", "f16"]),
        dynamic=rng.choice(["", "n"]),
        after=rng.choice([(), ("bias",)]),
    )


def unfolded_for(target: Target, source: str) -> str:
    """The text of a module whose patches are unfolded as for a target."""
    module = copy_module(source)
    context = PassContext("prepass-unfold-patches", target)
    for dialect in UnfoldPatchesPass.dependent_dialects:
        module.context.get_dialect_descriptor(dialect)
    with module.context, ir.Location.unknown():
        UnfoldPatchesPass().run(module.operation, context)
    assert module.operation.verify()
    assert context.counters["unfolded"] == 1
    return str(module)


@pytest.mark.parametrize("target", [Target("rocm", "gfx942"), Target("llvm-cpu")], ids=lambda target: target.name)
@pytest.mark.parametrize("seed", range(8))
def test_results_stay_the_same(seed, target):
    case = random_case(seed)
    compiled = prepass.compile(unfolded_for(target, case.module()), flags=LLVM_CPU)
    (result,) = prepass.run(compiled, *case.inputs())
    difference = compare([result], [case.reference()])
    assert difference.within(case.tolerance), (difference.largest, case)


def test_patches_are_read_in_whole_vectors():
    sizes = (("c", 3), ("f", 64), ("h", 64), ("w", 64))
    case = ConvCase("embedding", sizes=sizes, kernel=16, stride=16, low=0, high=0, element="f16")
    (stock,) = compile_to_assembly(case.module(), flags=GFX942)
    (ours,) = compile_to_assembly(case.module(), pipeline=PIPELINE, flags=GFX942)
    assert stock.hottest.counts.accesses_of("load", width=2)
    assert ours.counts.mfmas
    assert not ours.hottest.counts.accesses_of("load", width=2)

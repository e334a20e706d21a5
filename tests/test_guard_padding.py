# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-guard-padding` keeps results and saves each norm before a convolution a copy."""

from __future__ import annotations

import pytest
from iree.compiler import ir

import prepass
from prepass.checking.numerics import compare
from prepass.ir.targets import Target
from prepass.passes.guard_padding import GuardPaddingPass
from prepass.pipeline.base import PassContext
from prepass.pipeline.registry import default_registry

from .conftest import LLVM_CPU
from .convolution_cases import CASES, ConvCase
from .dispatches import cost

NAMES = ["norm_silu", "norm_silu_bias_f16", "norm_silu_bias_residual", "dynamic_norm_bias", "depthwise", "f16_grouped"]


def guard(module: ir.Operation) -> None:
    """Guard padding as for gfx942."""
    context = PassContext("prepass-guard-padding", Target("rocm", "gfx942"))
    with module.context, ir.Location.unknown():
        GuardPaddingPass().run(module, context)
    assert module.verify()


@pytest.mark.parametrize("name", NAMES)
def test_results_stay_the_same(name):
    case = next(case for case in CASES if case.name == name)
    hooks = {"preprocessing": guard}
    compiled = prepass.compile(case.module(), preset="prepass-sdxl", flags=LLVM_CPU, hooks=hooks)
    (result,) = prepass.run(compiled, *case.inputs())
    difference = compare([result], [case.reference()])
    assert difference.within(case.tolerance), (difference.largest, case)


@pytest.mark.parametrize("level", ["O0", "O3"])
def test_no_copy_stands_before_the_convolution(level):
    sizes = (("n", 1), ("c", 64), ("f", 64), ("h", 32), ("w", 32))
    case = ConvCase("norm", sizes=sizes, before=("groupnorm", "silu"), element="f16", constant=True)
    named = default_registry().pipeline("prepass-sdxl")
    steps = [step.text for step in named.steps if step.text != "prepass-guard-padding"]
    flags = named.flags_beside(["--iree-hal-target-device=hip"])
    without = cost(case.module(), f"builtin.module({','.join(steps)})", level, *flags)
    assert cost(case.module(), named.as_text, level, *flags).dispatches == without.dispatches - 1

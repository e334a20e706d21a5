# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-configure-convolutions`: the code for gfx942 computes what numpy does, with matrix instructions."""

from __future__ import annotations

import random

import pytest

from prepass.amdgpu.inputs import compile_to_assembly
from prepass.checking.numerics import compare
from prepass.pipelines.sdxl import PIPELINE
from prepass.simulator import simulate

from .conftest import GFX942
from .convolution_cases import FHWC, NHWC, ConvCase
from .dispatches import cost

FLAGS = PIPELINE.flags_beside(GFX942)


def random_case(seed: int) -> ConvCase:
    """2 to 4 output channels, of 1-D to 3-D convolutions of any stride, dilation and type."""
    rng = random.Random(seed)
    layout = rng.choice(
        [
            {},
            NHWC,
            FHWC,
            {"input": "ncw", "filter": "fcw", "output": "nfw"},
            {"input": "ncdhw", "filter": "fcdhw", "output": "nfdhw"},
        ]
    )
    element = rng.choice(["f16", "f16", "bf16", "f32", "i8"])
    sizes = {"n": rng.choice([1, 2]), "f": rng.randint(2, 4), "w": rng.choice([7, 17, 70])}
    sizes["c"] = rng.choice([32, 40, 64])
    if element == "i8":  # Of other numbers of channels the simulator does not know the code.
        sizes |= {"c": 64, "f": 4}
    return ConvCase(
        f"few_{seed}",
        **layout,
        sizes=tuple(sizes.items()),
        stride=rng.choice([1, 1, 2]),
        dilation=rng.choice([1, 1, 2]),
        low=1,
        high=2,
        element=element,
        accumulator="i32" if element == "i8" else "f32",
        constant=True,
        after=("bias",) if element != "i8" and rng.random() < 0.5 else (),
    )


@pytest.mark.parametrize("seed", range(6))
def test_simulated_code_agrees_with_numpy(seed):
    check(random_case(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6, 40))
def test_more_simulated_code_agrees_with_numpy(seed):
    check(random_case(seed))


def check(case: ConvCase) -> None:
    applied = []
    kernels = compile_to_assembly(
        case.module(), preset=PIPELINE.name, flags=GFX942, on_remark=lambda remark, _: applied.append(remark.text)
    )
    assert any("matrix instructions pad its filters" in remark for remark in applied)
    assert any(kernel.counts.mfmas for kernel in kernels)
    (result,) = simulate(case.module(), case.inputs(), pipeline=PIPELINE.as_text, flags=FLAGS)
    difference = compare([result], [case.reference()])
    assert difference.within(case.tolerance), (difference.largest, case)


def test_the_last_convolution_is_one_kernel_behind_the_transpose():
    sizes = (("c", 64), ("f", 4), ("h", 32), ("w", 32))
    case = ConvCase("last", sizes=sizes, element="f16", constant=True, after=("bias",))
    assert cost(case.module(), PIPELINE.as_text, "O0", *FLAGS).dispatches == 2
    kernels = compile_to_assembly(case.module(), preset=PIPELINE.name, flags=GFX942)
    (kernel,) = (kernel for kernel in kernels if kernel.counts.mfmas)
    assert kernel.hottest.counts.accesses_of("load", width=16)
    assert not kernel.hottest.counts.accesses_of("load", width=2)

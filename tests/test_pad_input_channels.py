# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-pad-input-channels`: the code for gfx942 computes what numpy does, and loads more than 2 bytes."""

from __future__ import annotations

import random

import pytest

from prepass.amdgpu.inputs import compile_to_assembly
from prepass.checking.numerics import compare
from prepass.pipelines.sdxl import PIPELINE
from prepass.simulator import SimulationError, simulate

from .conftest import GFX942
from .convolution_cases import FHWC, NHWC, ConvCase
from .dispatches import cost

FLAGS = PIPELINE.flags_beside(GFX942)


def random_case(seed: int) -> ConvCase:
    """2 to 7 input channels, in channels-first, channels-last, or one row of them."""
    rng = random.Random(seed)
    layout = rng.choice([{}, {}, NHWC, FHWC])
    sizes = {"n": rng.choice([1, 2]), "c": rng.choice([2, 3, 3, 5, 6, 7]), "f": rng.choice([8, 16]), "h": 9, "w": 12}
    return ConvCase(
        f"stem_{seed}",
        **layout,
        sizes=tuple(sizes.items()),
        kernel=rng.choice([2, 3, 3, 5]),
        stride=rng.choice([1, 1, 2]),
        low=rng.choice([0, 1, 2]),
        high=rng.choice([1, 2]),
        element=rng.choice(["f16", "bf16"]),
        constant=True,
        after=rng.choice([(), ("bias", "silu")]),
    )


def check(case: ConvCase) -> None:
    remarks = []
    compile_to_assembly(
        case.module(), preset=PIPELINE.name, flags=GFX942, on_remark=lambda remark, _: remarks.append(remark.message)
    )
    assert any(message.startswith("reads ") for message in remarks)
    try:
        (result,) = simulate(case.module(), case.inputs(), pipeline=PIPELINE.as_text, flags=FLAGS)
    except SimulationError as error:
        if "scratch_load_ushort" not in str(error):
            raise
        pytest.skip("the simulator does not know an instruction of it")
    difference = compare([result], [case.reference()])
    assert difference.within(case.tolerance), (difference.largest, case)


@pytest.mark.parametrize("seed", range(4))
def test_simulated_code_agrees_with_numpy(seed):
    check(random_case(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4, 40))
def test_more_simulated_code_agrees_with_numpy(seed):
    check(random_case(seed))


@pytest.mark.parametrize(("channels", "kernel", "stride"), [(3, 3, 1), (3, 7, 2), (9, 3, 1)])
def test_no_load_has_two_bytes(channels, kernel, stride):
    sizes = (("c", channels), ("f", 64), ("h", 32), ("w", 32))
    padding = kernel // 2
    case = ConvCase(
        "stem", sizes=sizes, kernel=kernel, stride=stride, low=padding, high=padding, element="f16", constant=True
    )
    kernels = compile_to_assembly(case.module(), preset=PIPELINE.name, flags=GFX942)
    (kernel,) = (kernel for kernel in kernels if kernel.counts.mfmas)
    assert kernel.counts.accesses_of("load", width=8)
    assert not kernel.counts.accesses_of("load", width=2)
    for level in ("O0", "O3"):
        # The image is copied without the pass too.
        assert cost(case.module(), PIPELINE.as_text, level, *FLAGS).dispatches == 2

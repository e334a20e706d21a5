# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions of every kind through the preset for them, on llvm-cpu against numpy."""

from __future__ import annotations

import random

import pytest

import prepass
from prepass.checking.numerics import compare

from .conftest import LLVM_CPU
from .convolution_cases import CASES, DEPTHWISE, FHWC, GROUPED, NHWC, ConvCase

PRESET = "prepass-sdxl"
LAYOUTS: dict[str, dict[str, str]] = {
    "dense": {},
    "dense_hwcf": NHWC,
    "dense_fhwc": FHWC,
    "odd_input": {"input": "nhcw", "filter": "fchw", "output": "nfhw"},
    "odd_output": {"input": "nchw", "filter": "hwcf", "output": "nhwf"},
    "odd_filter": {"input": "nhwc", "filter": "chwf", "output": "nhwf"},
    "1d": {"input": "ncw", "filter": "fcw", "output": "nfw"},
    "1d_last": {"input": "nwc", "filter": "wcf", "output": "nwf"},
    "3d": {"input": "ncdhw", "filter": "fcdhw", "output": "nfdhw"},
    "grouped": GROUPED,
    "grouped_last": {"input": "nhwgc", "filter": "gfhwc", "output": "nhwgf"},
    "odd_grouped": {"input": "ngchw", "filter": "gfchw", "output": "nfghw"},
    "depthwise": DEPTHWISE,
    "depthwise_last": {"input": "nhwc", "filter": "hwc", "output": "nhwc"},
    "multiplier": {"input": "nhwc", "filter": "hwcm", "output": "nhwcm"},
}
NAMED = ("dense", "dense_hwcf", "dense_fhwc", "1d", "1d_last", "grouped", "grouped_last", "depthwise", "multiplier")


def check(case: ConvCase) -> None:
    compiled = prepass.compile(case.module(), preset=PRESET, flags=LLVM_CPU)
    (result,) = prepass.run(compiled, *case.inputs())
    difference = compare([result], [case.reference()])
    assert difference.within(case.tolerance), (difference.largest, case)


def random_case(seed: int) -> ConvCase:
    """A convolution with random sizes, padding and surroundings; the odd layouts are none that an op is named after."""
    rng = random.Random(seed)
    name = rng.choice(list(LAYOUTS))
    layout = LAYOUTS[name]
    output = layout.get("output", "nfhw")
    plain = "c" in layout.get("input", "nchw") and "g" not in output
    sizes = {
        "n": rng.choice([1, 2, 3]),
        "c": rng.choice([1, 2, 3, 4, 6, 8, 16]),
        "f": rng.choice([1, 3, 4, 8, 16]),
        "g": rng.choice([1, 2, 3]),
        "h": rng.randint(5, 9),
        "w": rng.randint(5, 9),
        "d": rng.randint(5, 6),
    }
    before = rng.choice([(), (), ("silu",), ("groupnorm", "silu")]) if plain and sizes["c"] % 2 == 0 else ()
    after = rng.choice([(), ("bias",), ("bias", "silu"), ("bias", "time")])
    return ConvCase(
        f"{name}_{seed}",
        **layout,
        sizes=tuple(sizes.items()),
        kernel=rng.choice([1, 2, 3, 3, 4]),
        stride=rng.choice([1, 1, 2, 3]),
        dilation=rng.choice([1, 1, 2]) if sizes["d"] > 5 else 1,
        low=rng.randint(1, 3),
        high=rng.randint(1, 3),
        element=rng.choice(["f32", "f32", "f16"]),
        generic=name not in NAMED or rng.random() < 0.3,
        constant=rng.random() < 0.3,
        dynamic=rng.choice(["", "", "", "n", "hw"]) if "h" in output and "d" not in output else "",
        before=before,
        after=after,
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_kind_agrees_with_numpy(case):
    check(case)


@pytest.mark.parametrize("seed", range(12))
def test_random_convolutions_agree_with_numpy(seed):
    check(random_case(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12, 150))
def test_more_random_convolutions_agree_with_numpy(seed):
    check(random_case(seed))

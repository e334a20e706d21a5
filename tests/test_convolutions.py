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


def torch_modules():
    """Modules of torch with an input each, of every kind that torch has."""
    import torch
    from torch import nn

    def image(channels, *sizes):
        return torch.randn(2, channels, *sizes)

    block = nn.Sequential(
        nn.Conv2d(4, 32, 3, padding=1),
        nn.GroupNorm(8, 32),
        nn.SiLU(),
        nn.Conv2d(32, 32, 3, padding=1, stride=2),
        nn.GroupNorm(8, 32),
        nn.SiLU(),
        nn.Upsample(scale_factor=2, mode="nearest"),
        nn.Conv2d(32, 4, 3, padding=1),
    )
    return {
        "1-D": (nn.Conv1d(8, 12, 3, padding=1), image(8, 20)),
        "2-D": (nn.Conv2d(8, 12, 3, padding=1, stride=2), image(8, 11, 9)),
        "3-D": (nn.Conv3d(4, 6, 3, padding=1), image(4, 5, 6, 7)),
        "dilated": (nn.Conv2d(8, 12, 3, padding=2, dilation=2), image(8, 11, 9)),
        "grouped": (nn.Conv2d(8, 16, 3, padding=1, groups=4), image(8, 11, 9)),
        "depthwise": (nn.Conv2d(8, 8, 3, padding=1, groups=8), image(8, 11, 9)),
        "multiplier": (nn.Conv2d(8, 16, 3, padding=1, groups=8), image(8, 11, 9)),
        "pointwise": (nn.Conv2d(8, 16, 1, stride=2), image(8, 11, 9)),
        "patches": (nn.Conv2d(3, 16, 4, stride=4), image(3, 16, 12)),
        "transposed": (nn.ConvTranspose2d(8, 6, 4, stride=2, padding=1), image(8, 7, 5)),
        "grouped transposed": (nn.ConvTranspose2d(8, 6, 4, stride=2, padding=1, groups=2), image(8, 7, 5)),
        "reflecting": (nn.Conv2d(8, 6, 3, padding=1, padding_mode="reflect"), image(8, 7, 5)),
        "batch norm": (
            nn.Sequential(nn.Conv2d(8, 6, 3), nn.BatchNorm2d(6), nn.GELU(), nn.MaxPool2d(2)),
            image(8, 9, 9),
        ),
        "block": (block, image(4, 8, 8)),
    }


@pytest.mark.slow
@pytest.mark.parametrize("element", ["float32", "float16"])
def test_convolutions_of_torch_agree(element):
    import torch
    from iree.turbine.aot import export

    torch.manual_seed(0)
    for name, (module, x) in torch_modules().items():
        narrow = getattr(torch, element)
        module, x = module.eval().to(narrow), x.to(narrow)
        text = str(export(module, args=(x,)).mlir_module)
        compiled = prepass.compile(text, preset=PRESET, flags=[*LLVM_CPU, "--iree-input-type=torch"])
        (result,) = prepass.run(compiled, x.numpy())
        with torch.no_grad():
            expected = module.float()(x.float()).numpy()
        difference = compare([result], [expected])
        assert difference.within(1e-4 if element == "float32" else 2e-2), (name, difference.largest)

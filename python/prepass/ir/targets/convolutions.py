# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which form of a convolution is fastest, by target. docs/convolutions.md has the measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from prepass.ir.targets.target import Target

FilterOrder = Literal["fhwc", "hwcf"]

# IREE 3.13 takes up to so many output channels for too few to use matrix instructions.
MOST_WITHOUT_MATRIX = 4
# Below this there is little to gain from matrix instructions.
FEWEST_PRODUCTS = 64
# What the matrix instructions of gfx942 sum up products in, by the type of both factors.
MATRIX_SUMS = {"f16": "f32", "bf16": "f32", "f32": "f32", "i8": "i32"}

# IREE 3.13 loads 8 bytes where so many channels in 16 bits divide those that there are, and else 2.
_CHANNELS_A_LOAD = 4
# From here on the channels of a pixel are most of what is loaded of it, padded or not.
_MANY_CHANNELS = 16
_FEW_FILTERS = 8
# llvm-cpu reads, for each few pixels, a vector of every row of the filters. Where the rows lie in more pages than the
# processor has translations of, that takes longer than all else: with 3x3 windows on a Zen 4, 1.2 times as fast as NCHW
# for up to 512 channels, 0.75 times for 576, a quarter for 1280.
_MOST_FILTER_BYTES = 8 << 20
# llvm-cpu computes windows of volumes pixel by pixel in either layout: on a Zen 4, 0.7 to 1.1 times as fast as NCHW.
_MOST_WINDOW_DIMS = 2


@dataclass(frozen=True)
class ConvolutionShape:
    """What a target's table asks of a convolution.

    Attributes:
      window_dims: How many dims its windows have.
      depthwise: No channels are added up.
      pointwise: Its windows are single pixels, and it takes them all.
      patches: Its windows are larger and do not overlap.
      filters: The number of channels it computes, of one group, None where dynamic.
      strided: Its windows are more than a pixel apart.
      filter_bytes: Of all its filters, None where dynamic.
    """

    window_dims: int
    depthwise: bool
    pointwise: bool
    patches: bool
    filters: int | None
    strided: bool
    filter_bytes: int | None


@dataclass(frozen=True)
class ConvolutionForm:
    """How a convolution is written.

    Attributes:
      filters: The order of the filter's dims.
      pays: Whether it gains more than transposes of what it reads and writes cost. Where it does not, it follows what
        stands around it.
    """

    filters: FilterOrder
    pays: bool


def convolution_form(target: Target, shape: ConvolutionShape) -> ConvolutionForm | None:
    """The channels-last form of a convolution on a target, or None where none is known to be faster."""
    if target.backend == "llvm-cpu":
        large = shape.filter_bytes is not None and shape.filter_bytes > _MOST_FILTER_BYTES
        if large and not (shape.strided or shape.pointwise or shape.patches):
            return None
        if shape.window_dims > _MOST_WINDOW_DIMS and not (shape.pointwise or shape.patches):
            return None
        few = shape.filters is not None and shape.filters < _FEW_FILTERS and not shape.depthwise
        return ConvolutionForm("hwcf", pays=not (shape.pointwise or shape.patches or few))
    if target.architecture.startswith("gfx9"):
        # A depthwise convolution has no MFMA in either layout, and loads two bytes at a time in channels-last.
        dense = not shape.depthwise
        return ConvolutionForm("fhwc" if dense else "hwcf", pays=dense)
    return None


def padded_output_channels(target: Target, channels: int) -> int | None:
    """How many output channels a convolution should have instead of `channels`, or None for those it has."""
    # At 5 to 16 IREE 3.13 computes 16 of them.
    return 8 if target.architecture.startswith("gfx9") and channels <= MOST_WITHOUT_MATRIX else None


def pads_within_kernel(target: Target, channels: int, element: str, *, windows: bool) -> bool:
    """Whether a lowering config is known that pads output channels of a convolution, with or without windows.

    Of a single channel there is no loop left once dispatches are formed, and of single pixels a contraction.
    """
    few = 1 < channels <= MOST_WITHOUT_MATRIX
    return target.architecture == "gfx942" and few and windows and element in MATRIX_SUMS


def padded_input_channels(target: Target, channels: int, element: str) -> int | None:
    """How many input channels a convolution should have instead of `channels`, or None for those it has.

    Cycles of the busiest CU, in thousands, by the static cost model:

    | channels | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 12 |
    | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
    | 3x3, 512x512, 128 filters | 26 | 34 | 17 | 39 | 44 | 47 | 14 | 98 | 23 |
    | 7x7 with stride 2, 4x224x224, 64 filters | 12 | 25 | 9 | 17 | 26 | 56 | 11 | 40 | 18 |
    """
    loads_few_bytes = target.architecture.startswith("gfx9") and element in ("f16", "bf16")
    if not loads_few_bytes or not 1 < channels < _MANY_CHANNELS or channels % _CHANNELS_A_LOAD == 0:
        return None
    return -(-channels // _CHANNELS_A_LOAD) * _CHANNELS_A_LOAD

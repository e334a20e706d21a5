# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which form of a convolution is fastest, by target. docs/convolutions.md has the measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from prepass.ir.targets.target import Target

FilterOrder = Literal["fhwc", "hwcf"]

_FEW_FILTERS = 8


@dataclass(frozen=True)
class ConvolutionShape:
    """What a target's table asks of a convolution.

    Attributes:
      depthwise: No channels are added up.
      pointwise: Its windows are single pixels, and it takes them all.
      patches: Its windows are larger and do not overlap.
      filters: The number of channels it computes, of one group, None where dynamic.
    """

    depthwise: bool
    pointwise: bool
    patches: bool
    filters: int | None


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
    """The channels-last form of a convolution on a target, or None when the target is not in the table."""
    if target.backend == "llvm-cpu":
        few = shape.filters is not None and shape.filters < _FEW_FILTERS and not shape.depthwise
        return ConvolutionForm("hwcf", pays=not (shape.pointwise or shape.patches or few))
    if target.architecture.startswith("gfx9"):
        # A depthwise convolution has no MFMA in either layout, and loads two bytes at a time in channels-last.
        dense = not shape.depthwise
        return ConvolutionForm("fhwc" if dense else "hwcf", pays=dense)
    return None


def padded_output_channels(target: Target, channels: int) -> int | None:
    """How many output channels a convolution should have instead of `channels`, or None for those it has."""
    # IREE 3.13 takes up to 4 for too few to use matrix instructions at all. At 5 to 16 it computes 16 of them.
    return 8 if target.architecture.startswith("gfx9") and channels <= 4 else None

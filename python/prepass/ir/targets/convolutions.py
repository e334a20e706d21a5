# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which form of a convolution is fastest, by target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from prepass.ir.targets.target import Target

FilterOrder = Literal["fhwc", "hwcf"]


@dataclass(frozen=True)
class ConvolutionForm:
    """How a convolution is written.

    Attributes:
      filters: The order of the filter's dims.
      pays: Whether it gains more than transposes of what it reads and writes cost. Where it does not, it follows what
        stands around it.
      fuses_padding: Whether it should read what it pads in place, where a flag lets IREE do so.
    """

    filters: FilterOrder
    pays: bool
    fuses_padding: bool = False


def convolution_form(target: Target, *, depthwise: bool) -> ConvolutionForm | None:
    """The channels-last form of a convolution on a target, or None when the target is not in the table."""
    if target.backend == "llvm-cpu":
        return ConvolutionForm("hwcf", pays=not depthwise)
    if target.architecture.startswith("gfx9"):
        # A depthwise convolution has no MFMA in either layout, and loads two bytes at a time in channels-last.
        return ConvolutionForm("hwcf" if depthwise else "fhwc", pays=not depthwise, fuses_padding=not depthwise)
    return None


def padded_output_channels(target: Target, channels: int) -> int | None:
    """How many output channels a convolution should have instead of `channels`, or None for those it has."""
    # IREE 3.13 takes up to 4 for too few to use matrix instructions at all. At 5 to 16 it computes 16 of them.
    return 8 if target.architecture.startswith("gfx9") and channels <= 4 else None

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
    """

    filters: FilterOrder
    pays: bool


def convolution_form(target: Target, *, depthwise: bool) -> ConvolutionForm | None:
    """The channels-last form of a convolution on a target, or None when the target is not in the table."""
    if target.backend == "llvm-cpu":
        return ConvolutionForm("hwcf", pays=not depthwise)
    if target.architecture.startswith("gfx9"):
        # A depthwise convolution has no MFMA in either layout, and loads two bytes at a time in channels-last.
        return ConvolutionForm("hwcf" if depthwise else "fhwc", pays=not depthwise)
    return None

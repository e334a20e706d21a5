# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a convolution computes, in numbers alone."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """A dim of the image that is no channel: batch or space.

    The result at `o` adds up the image at `o · stride + k · dilation - low` for each `k` of the window; outside of the
    image there are zeros.

    Attributes:
      size: Of the image.
      pitch: From one position of the image to the next, in elements of memory.
      result: Size of the result.
      window: Size of the filter; 1 for the batch.
      filter_pitch: From one position of the filter to the next, in elements of memory.
      low: Zeros before the image.
    """

    size: int
    pitch: int
    result: int
    stride: int = 1
    window: int = 1
    dilation: int = 1
    filter_pitch: int = 0
    low: int = 0

    @property
    def padded(self) -> bool:
        """Whether some of what is added up lies outside of the image."""
        last = (self.result - 1) * self.stride + (self.window - 1) * self.dilation - self.low
        return self.low > 0 or last >= self.size


@dataclass(frozen=True)
class Problem:
    """A convolution: for each pixel of the result, filters times the window around it.

    Attributes:
      axes: In the order of the image, batch and space; a pixel is a position along all of them.
      channels: Of the image, innermost in image and filters.
      filter_sizes: Channels of the result: the sizes of the dims that they are, heads and channels of a head for one.
      filter_pitch: From one filter to the next, in elements of memory.
      element: "f16" or "bf16"; sums are f32.
    """

    axes: tuple[Axis, ...]
    channels: int
    filter_sizes: tuple[int, ...]
    filter_pitch: int
    element: str

    @property
    def filters(self) -> int:
        """How many channels the result has."""
        return math.prod(self.filter_sizes)

    @property
    def pixels(self) -> int:
        """How many pixels the result has."""
        return math.prod(self.result)

    @property
    def result(self) -> list[int]:
        """The sizes of the result along the axes."""
        return [axis.result for axis in self.axes]

    @property
    def windows(self) -> list[int]:
        """The sizes of the filter along the axes."""
        return [axis.window for axis in self.axes]

    @property
    def taps(self) -> int:
        """How many pixels of the image a pixel of the result is computed from."""
        return math.prod(self.windows)

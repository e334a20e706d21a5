# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions with channels innermost: an implicit matrix product of pixels by filters, through LDS.

A workgroup computes 128 pixels by 128 or 160 filters with four waves. An iteration is 32 channels (16 where that is all
that divides them) of one tap. It costs less time in LDS than in the matrix cores because a wave computes 64x64 results
(32x160), where IREE's own code has waves of 32x32 to 32x64. Pixels are numbered through rows, images and the batch, so
no size of the image needs padding; lanes behind the last pixel compute the last one again, and the last tile of filters
overlaps the one before.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from prepass.amdgpu.machine import GFX942
from prepass.ir.kernels import CONVOLUTION, DispatchUse, Example, ExpectedFigures, Kernel, KernelDescription
from prepass.ir.kernels.conditions import check_multiple
from prepass.ir.match import NoMatch
from prepass.ir.targets import Target
from prepass.kernels.convolution.examples import example
from prepass.kernels.convolution.match import Dispatch, read_dispatch
from prepass.kernels.convolution.rewrite import rewrite
from prepass.kernels.convolution.steps import CHANNEL
from prepass.kernels.convolution.tile import STEP, Side, Tile, best_tile

# How four waves share the pixels and the filters of a tile.
_SIDES = {(128, 128): (Side(2, 2), Side(2, 2)), (128, 160): (Side(4, 1), Side(1, 5))}
# Terms of an iteration, the best first.
_DEPTHS = (32, 16)
_LEAST_COPY = 4


@dataclass(frozen=True)
class ConvolutionKernel(Kernel):
    """An NHWC convolution with FHWC filters, of any window, stride, dilation and padding.

    Attributes:
      tiles: Pixels and filters of a workgroup; of several the one with which the busiest CU has least to do is taken.
    """

    kind = CONVOLUTION
    tunable: ClassVar = {"tiles": tuple((sides,) for sides in _SIDES)}

    tiles: tuple[tuple[int, int], ...] = tuple(_SIDES)

    @property
    def description(self) -> KernelDescription:
        """See `Kernel.description`."""
        tile = Tile(*_SIDES[self.tiles[0]], _DEPTHS[0])
        return KernelDescription(
            summary="NHWC convolutions with FHWC filters, bound by the matrix cores.",
            targets=(GFX942.architecture,),
            element_types=("f16", "bf16"),
            conditions=(
                "shapes are static; image and filters are in memory, with channels innermost in both",
                "the sums are f32 and start from zero; the padding is zeros, in the same dispatch or nowhere",
                f"C is a multiple of {STEP}",
                f"F is at least {min(filters for _, filters in self.tiles)}",
                "the result, and all that is stored, has channels innermost",
                "what else the dispatch does is elementwise",
            ),
            tile={"pixels": tile.pixels.rows, "F": tile.filters.rows},
            step={"C": tile.depth},
            workgroup_size=tile.threads,
            lds_bytes=tile.lds_bytes,
            figures=ExpectedFigures(per="an iteration", mfma=512, valu=44, lds=384, vgprs=112),
            reason="IREE's own code needs as long in LDS as in the matrix cores, or longer, and stores 2 bytes a lane.",
        )

    def match(self, op: ir.Operation, target: Target) -> DispatchUse:
        """See `Kernel.match`."""
        dispatch = read_dispatch(op)
        check_multiple(op, "C", dispatch.problem.channels, STEP)
        _check_outputs(dispatch)
        tile = self._tile(dispatch)
        return DispatchUse(functools.partial(rewrite, dispatch, tile))

    def examples(self) -> tuple[Example, ...]:
        """See `Kernel.examples`."""
        return (
            example(2, 64, 64, 320, 320),
            example(2, 64, 64, 320, 320, element="bf16"),
            example(2, 64, 64, 320, 320, stride=2),
            example(2, 32, 32, 1280, 1280),
            example(2, 128, 128, 640, 320),
        )

    def _tile(self, dispatch: Dispatch) -> Tile:
        problem = dispatch.problem
        depth = next(depth for depth in _DEPTHS if problem.channels % depth == 0)
        tiles = [Tile(*_SIDES[sides], depth) for sides in self.tiles]
        fitting = [tile for tile in tiles if tile.filters.rows <= problem.filters and _copies_well(tile)]
        if not fitting:
            raise NoMatch(f"F is {problem.filters}, less than a tile has", dispatch.convolution)
        return best_tile(problem, fitting, GFX942.compute_units)


def _copies_well(tile: Tile) -> bool:
    return min(tile.copy_width(tile.pixels), tile.copy_width(tile.filters)) >= _LEAST_COPY


def _check_outputs(dispatch: Dispatch) -> None:
    for output in dispatch.outputs:
        if output.coordinates[-1] != CHANNEL or output.view.pitches[-1] != 1:
            raise NoMatch("channels are not innermost in what is stored", dispatch.convolution)


CONVOLUTION_KERNEL = ConvolutionKernel("convolution", by_default=True)

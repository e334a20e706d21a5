# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the kernels of this folder share: which dispatches they compute, and with which tile."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from prepass.ir.kernels import DispatchUse, Kernel
from prepass.ir.kernels.conditions import check_multiple
from prepass.ir.match import NoMatch
from prepass.ir.targets import Target
from prepass.kernels.convolution.match import Dispatch, read_dispatch
from prepass.kernels.convolution.problem import Problem
from prepass.kernels.convolution.rewrite import rewrite
from prepass.kernels.convolution.steps import CHANNEL
from prepass.kernels.convolution.tile import STEP, Side, Tile, best_tile

ELEMENT_TYPES = ("f16", "bf16")
CONDITIONS = (
    "shapes are static; image and filters are in memory, with channels innermost in both",
    "the sums are f32 and start from zero, or from what an elementwise op makes of tensors in memory",
    "all that is stored has channels innermost",
    "what else the dispatch does is elementwise",
    f"C is a multiple of {STEP}",
)

# How four waves share the pixels and the filters of a tile, the best first. The small ones are for problems that leave
# CUs idle: LDS bounds them, but a workgroup has less to do.
SIDES = {
    (128, 128): (Side(2, 2), Side(2, 2)),
    (128, 160): (Side(4, 1), Side(1, 5)),
    (96, 128): (Side(1, 3), Side(4, 1)),
    (64, 128): (Side(2, 1), Side(2, 2)),
    (64, 64): (Side(2, 1), Side(2, 1)),
}
# Terms of an iteration, the best first.
_DEPTHS = (32, 16)
_LEAST_COPY = 4


@dataclass(frozen=True)
class ImplicitProduct(Kernel):
    """A product of pixels by filters.

    Attributes:
      tiles: Pixels and filters of a workgroup; of several the one with which the busiest CU has least to do is taken.
    """

    tunable: ClassVar = {"tiles": tuple((sides,) for sides in SIDES)}

    tiles: tuple[tuple[int, int], ...] = tuple(SIDES)

    @property
    def first_tile(self) -> Tile:
        """The best tile, for large problems."""
        return Tile(*SIDES[self.tiles[0]], _DEPTHS[0])

    @property
    def fewest_filters(self) -> int:
        """How many filters there must be."""
        return min(filters for _, filters in self.tiles)

    def match(self, op: ir.Operation, target: Target) -> DispatchUse:
        """See `Kernel.match`."""
        dispatch = read_dispatch(op)
        check_multiple(op, "C", dispatch.problem.channels, STEP)
        _check_outputs(dispatch)
        fitting = self._fitting(dispatch.problem)
        if not fitting:
            raise NoMatch(f"F is {dispatch.problem.filters}, less than a tile has", op)
        return DispatchUse(functools.partial(rewrite, dispatch, best_tile(dispatch.problem, fitting)))

    def _fitting(self, problem: Problem) -> list[Tile]:
        depth = next(depth for depth in _DEPTHS if problem.channels % depth == 0)
        tiles = [Tile(*SIDES[sides], depth) for sides in self.tiles]
        return [tile for tile in tiles if tile.filters.rows <= problem.filters and _copies_well(tile)]


def _copies_well(tile: Tile) -> bool:
    return min(tile.copy_width(tile.pixels), tile.copy_width(tile.filters)) >= _LEAST_COPY


def _check_outputs(dispatch: Dispatch) -> None:
    for output in dispatch.outputs:
        if output.coordinates[-1] != CHANNEL or output.view.pitches[-1] != 1:
            raise NoMatch("channels are not innermost in what is stored", dispatch.convolution)

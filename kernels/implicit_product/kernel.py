# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What such kernels share: which dispatches they compute, and with which tile."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from prepass.ir.kernels import DispatchUse, Kernel
from prepass.ir.kernels.conditions import check_multiple
from prepass.ir.match import NoMatch
from prepass.ir.targets import Target
from prepass.kernels.implicit_product.match import Dispatch, read_dispatch
from prepass.kernels.implicit_product.rewrite import rewrite
from prepass.kernels.implicit_product.steps import CHANNEL
from prepass.kernels.implicit_product.tile import Side, Tile, best_tile

Sides = Mapping[tuple[int, int], tuple[Side, Side]]

ELEMENT_TYPES = ("f16", "bf16")
CONDITIONS = (
    "shapes are static; image and filters are in memory, with channels innermost in both",
    "the sums are f32 and start from zero, or from what an elementwise op makes of tensors in memory",
    "all that is stored has channels innermost",
    "what else the dispatch does is elementwise",
)

# How four waves share the pixels and the filters of a tile, the best first. The small ones are for problems that leave
# CUs idle: LDS bounds them, but a workgroup has less to do.
SIDES: Sides = {
    (128, 128): (Side(2, 2), Side(2, 2)),
    (128, 160): (Side(4, 1), Side(1, 5)),
    (96, 128): (Side(1, 3), Side(4, 1)),
    (64, 128): (Side(2, 1), Side(2, 2)),
    (64, 64): (Side(2, 1), Side(2, 1)),
}
_LEAST_COPY = 4


@dataclass(frozen=True)
class ImplicitProduct(Kernel):
    """A product of pixels by filters.

    Class attributes:
      sides: How waves share each tile.
      parts: Of the terms; see `Tile`.
      depths: Terms of an iteration, the best first.

    Attributes:
      tiles: Pixels and filters of a workgroup; of several the one with which the busiest CU has least to do is taken.
    """

    sides: ClassVar[Sides] = SIDES
    parts: ClassVar[int] = 1
    depths: ClassVar[tuple[int, ...]] = (32, 16)
    tunable: ClassVar = {"tiles": tuple((sides,) for sides in SIDES)}

    tiles: tuple[tuple[int, int], ...] = tuple(SIDES)

    @property
    def first_tile(self) -> Tile:
        """The best tile, for large problems."""
        return self.tiles_of(self.depths[0])[0]

    @property
    def sizes(self) -> tuple[str, ...]:
        """What must hold of the sizes."""
        fewest = min(filters for _, filters in self.tiles)
        return f"C is a multiple of {self.depths[-1]}", f"F is at least {fewest}"

    def match(self, op: ir.Operation, target: Target) -> DispatchUse:
        """See `Kernel.match`."""
        dispatch = read_dispatch(op)
        problem = dispatch.problem
        check_multiple(op, "C", problem.channels, self.depths[-1])
        self.check(dispatch)
        _check_outputs(dispatch)
        depth = next(depth for depth in self.depths if problem.channels % depth == 0)
        fitting = [tile for tile in self.tiles_of(depth) if tile.filters.rows <= problem.filters and _copies_well(tile)]
        if not fitting:
            raise NoMatch(f"F is {problem.filters}, less than a tile has", op)
        return DispatchUse(functools.partial(rewrite, dispatch, best_tile(problem, fitting)))

    def check(self, dispatch: Dispatch) -> None:
        """Further conditions. Raises NoMatch."""

    def tiles_of(self, depth: int) -> list[Tile]:
        """The tiles with so many terms an iteration."""
        return [Tile(*self.sides[rows], depth, self.parts) for rows in self.tiles]


def _copies_well(tile: Tile) -> bool:
    return min(tile.copy_width(tile.pixels), tile.copy_width(tile.filters)) >= _LEAST_COPY


def _check_outputs(dispatch: Dispatch) -> None:
    for output in dispatch.outputs:
        if output.coordinates[-1] != CHANNEL or output.view.pitches[-1] != 1:
            raise NoMatch("channels are not innermost in what is stored", dispatch.convolution)

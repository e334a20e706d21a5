# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From LDS to sums: the matrix instructions of a wave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.kernels.builders import apply, constant, delinearize, f32, load, mfma, part, vector_type
from prepass.kernels.convolution.tile import BLOCK, LANES, PER_LANE, STEP, TERMS, Side, Tile

# What a lane holds of a 32x32 result.
SUMS = BLOCK * BLOCK // LANES


@dataclass(frozen=True)
class Lane:
    """Where a thread is: its wave along pixels and filters, its half of the wave, its place in the half."""

    pixel_wave: ir.Value
    filter_wave: ir.Value
    half: ir.Value
    place: ir.Value


def read_lane(thread: ir.Value, tile: Tile) -> Lane:
    """The place of a thread."""
    return Lane(*delinearize(thread, (tile.pixels.waves, tile.filters.waves, 2, BLOCK)))


def zero_sums(tile: Tile) -> list[ir.Value]:
    """The sums of a lane before the first iteration, for each block of pixels those of each block of filters."""
    return [constant(0, vector_type(SUMS, f32()))] * (tile.pixels.blocks * tile.filters.blocks)


def multiply(pixels: ir.Value, filters: ir.Value, lane: Lane, tile: Tile, sums: Sequence[ir.Value]) -> list[ir.Value]:
    """Add the products of what is in LDS to the sums.

    Filters are the rows of the matrix instruction, so that a lane has neighbouring channels of one pixel.
    """
    sums = list(sums)
    for step in range(tile.depth // STEP):
        column = apply(lambda half, step=step: half * TERMS + step * STEP, lane.half)
        a = _fragments(filters, lane.filter_wave, tile.filters, lane, column)
        b = _fragments(pixels, lane.pixel_wave, tile.pixels, lane, column)
        # A lane reads 8 neighbouring terms at once. Both operands agree on which these are, so their order is free.
        for group in range(TERMS // PER_LANE):
            for number, acc in enumerate(sums):
                pixel, filter_ = divmod(number, tile.filters.blocks)
                rows, columns = (part(x, group * PER_LANE, PER_LANE) for x in (a[filter_], b[pixel]))
                sums[number] = mfma(rows, columns, acc, (BLOCK, BLOCK, TERMS))
    return sums


def _fragments(lds: ir.Value, wave: ir.Value, side: Side, lane: Lane, column: ir.Value) -> list[ir.Value]:
    rows = [
        apply(lambda wave, place, block=block: wave * side.span + block * BLOCK + place, wave, lane.place)
        for block in range(side.blocks)
    ]
    return [load(lds, [row, column], TERMS) for row in rows]

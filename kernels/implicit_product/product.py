# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From LDS to sums: the matrix instructions of a wave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import arith

from prepass.ir.kernels.builders import (
    apply,
    constant,
    delinearize,
    f32,
    index,
    lds,
    lds_barrier,
    load,
    mfma,
    part,
    store,
    vector_type,
)
from prepass.kernels.implicit_product.tile import BLOCK, LANES, PER_LANE, STEP, TERMS, TOGETHER, Side, Tile

# What a lane holds of a 32x32 result.
SUMS = BLOCK * BLOCK // LANES


@dataclass(frozen=True)
class Lane:
    """Where a thread is: its wave along terms, pixels and filters, its half of the wave, its place in the half."""

    part: ir.Value
    pixel_wave: ir.Value
    filter_wave: ir.Value
    half: ir.Value
    place: ir.Value


@dataclass(frozen=True)
class Fragment:
    """Sums of neighbouring channels of a pixel that a thread has to store; places are within the tile."""

    sums: ir.Value
    pixel: ir.Value
    channel: ir.Value
    width: int


def read_lane(thread: ir.Value, tile: Tile) -> Lane:
    """The place of a thread."""
    return Lane(*delinearize(thread, (tile.parts, tile.pixels.waves, tile.filters.waves, 2, BLOCK)))


def zero_sums(tile: Tile) -> list[ir.Value]:
    """The sums of a lane before the first iteration, for each block of pixels those of each block of filters."""
    return [constant(0, vector_type(SUMS, f32()))] * tile.blocks


def multiply(pixels: ir.Value, filters: ir.Value, lane: Lane, tile: Tile, sums: Sequence[ir.Value]) -> list[ir.Value]:
    """Add the products of what is in LDS to the sums.

    Filters are the rows of the matrix instruction, so that a lane has neighbouring channels of one pixel.
    """
    sums = list(sums)
    for step in range(tile.depth // (STEP * tile.parts)):
        column = apply(
            lambda half, part, step=step: half * TERMS + (part + step * tile.parts) * STEP, *(lane.half, lane.part)
        )
        a = _operands(filters, lane.filter_wave, tile.filters, lane, column)
        b = _operands(pixels, lane.pixel_wave, tile.pixels, lane, column)
        # A lane reads 8 neighbouring terms at once. Both operands agree on which these are, so their order is free.
        for group in range(TERMS // PER_LANE):
            for number, acc in enumerate(sums):
                pixel, filter_ = divmod(number, tile.filters.blocks)
                rows, columns = (part(x, group * PER_LANE, PER_LANE) for x in (a[filter_], b[pixel]))
                sums[number] = mfma(rows, columns, acc, (BLOCK, BLOCK, TERMS))
    return sums


def fragments(sums: Sequence[ir.Value], lane: Lane, tile: Tile) -> list[Fragment]:
    """What a thread has to store."""
    if tile.parts > 1:
        return _combined(sums, lane, tile)
    return [
        Fragment(part(sums[block], start, TOGETHER), *_place(index(block), index(start), lane, tile), TOGETHER)
        for block in range(tile.blocks)
        for start in range(0, SUMS, TOGETHER)
    ]


def _combined(sums: Sequence[ir.Value], lane: Lane, tile: Tile) -> list[Fragment]:
    """The sums of all parts, added up through LDS; each wave has then a part of the results."""
    quarters = SUMS // PER_LANE
    groups, waves = tile.blocks * quarters, tile.pixels.waves * tile.filters.waves
    buffer = lds((tile.parts, waves, groups, LANES, PER_LANE), f32())
    wave = apply(lambda p, f: p * tile.filters.waves + f, lane.pixel_wave, lane.filter_wave)
    thread = apply(lambda half, place: half * BLOCK + place, lane.half, lane.place)
    for group in range(groups):
        held = part(sums[group // quarters], group % quarters * PER_LANE, PER_LANE)
        store(held, buffer, [lane.part, wave, group, thread, 0])
    lds_barrier()
    found = []
    for number in range(groups // tile.parts):
        group = apply(lambda p, number=number: p * (groups // tile.parts) + number, lane.part)
        total = load(buffer, [0, wave, group, thread, 0], PER_LANE)
        for other in range(1, tile.parts):
            total = arith.addf(total, load(buffer, [other, wave, group, thread, 0], PER_LANE))
        block, quarter = delinearize(group, (tile.blocks, quarters))
        start = apply(lambda quarter: quarter * PER_LANE, quarter)
        found.append(Fragment(total, *_place(block, start, lane, tile), PER_LANE))
    return found


def _place(block: ir.Value, start: ir.Value, lane: Lane, tile: Tile) -> tuple[ir.Value, ir.Value]:
    """The pixel, and the channel of the sum number `start`, of a block of a lane, within the tile."""
    side = tile.filters
    pixel_block, filter_block = delinearize(block, (tile.pixels.blocks, side.blocks))
    pixel = apply(
        lambda wave, block, place: wave * tile.pixels.span + block * BLOCK + place,
        *(lane.pixel_wave, pixel_block, lane.place),
    )
    # See `stage.shuffled_row`.
    channel = apply(
        lambda wave, half, block, start: wave * side.span + half * (side.blocks * SUMS) + block * SUMS + start,
        *(lane.filter_wave, lane.half, filter_block, start),
    )
    return pixel, channel


def _operands(staged: ir.Value, wave: ir.Value, side: Side, lane: Lane, column: ir.Value) -> list[ir.Value]:
    rows = [
        apply(lambda wave, place, block=block: wave * side.span + block * BLOCK + place, wave, lane.place)
        for block in range(side.blocks)
    ]
    return [load(staged, [row, column], TERMS) for row in rows]

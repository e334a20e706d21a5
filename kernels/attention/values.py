# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The product of weights and values, added to the result.

It comes transposed, channels by queries, and of each 8 rows of a 32x32 result a lane has the 4 of its half of the wave.
The rows of V in LDS are ordered so that all that a lane has are neighbouring channels, half of a query's.
"""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith

from prepass.ir.kernels.builders import apply, index, load, mfma, part, splat
from prepass.kernels.attention.scores import HELD, Lane
from prepass.kernels.attention.tile import BLOCK, CHUNK, PER_LANE, AttentionTile


def channel_place(channel: ir.AffineExpr, channels: int) -> ir.AffineExpr:
    """The row in LDS of a channel of V."""
    digit = ir.AffineExpr.get_floor_div
    half, within = digit(channel, channels // 2), channel % (channels // 2)
    return digit(within, PER_LANE) * CHUNK + half * PER_LANE + within % PER_LANE


def add_values(
    buffer: ir.Value,
    weights: Sequence[Sequence[ir.Value]],
    shrink: ir.Value,
    results: Sequence[ir.Value],
    tile: AttentionTile,
    lane: Lane,
) -> list[ir.Value]:
    """The result after a tile.

    Args:
      buffer: V in LDS, (n, k2).
      weights: Of each block of 32 keys, four vectors of 4; see `scores` for which keys they are of.
      shrink: What the result so far is multiplied by.
      results: 16 of the lane's channels each, vectors in f32.
    """
    added = []
    for block, result in enumerate(results):
        row = apply(lambda column, block=block: column + block * BLOCK, lane.column)
        if (block + 1) * BLOCK > tile.value_channels:
            # Rows that are not there are read as the last one, and what comes of them is not used.
            row = arith.minui(row, index(tile.value_channels - 1))
        sums = arith.mulf(result, splat(shrink, HELD))
        for keys, factors in enumerate(weights):
            for pair in range(len(factors) // 2):
                offset = keys * BLOCK + pair * 2 * CHUNK
                column = apply(lambda half, offset=offset: half * CHUNK + offset, lane.half)
                chunk = load(buffer, [row, column], CHUNK)
                for number in range(2):
                    sums = mfma(part(chunk, number * PER_LANE, PER_LANE), factors[2 * pair + number], sums)
        added.append(sums)
    return added

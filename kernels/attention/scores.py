# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The scores of a tile: K·Q, its scale, a mask, and the keys beyond the last one.

They come transposed, keys by queries, so that the weights made of them are a factor of the next product as they lie in
registers. In a 32x32 result each lane has one query, and of each 8 rows it has the 4 of its half of the wave. The
rows of K in LDS are ordered so that these are 8 keys in a row of each 16: keys 16·y + 8·half + 0 … 7 in elements 8·y
to 8·y + 7. So V and a mask are read 8 elements at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import arith, vector

from prepass.ir.kernels.builders import (
    apply,
    constant,
    element,
    f32,
    i32,
    join,
    load,
    mfma,
    part,
    vector_type,
)
from prepass.kernels.attention.tile import BLOCK, CHUNK, PER_LANE

# Elements of a 32x32 result that a lane holds.
HELD = 16


@dataclass(frozen=True)
class Lane:
    """A lane of a wave.

    Attributes:
      half: 0 or 1.
      column: 0 to 31, its query within those of the wave, and its row of a factor from LDS.
    """

    half: ir.Value
    column: ir.Value


@dataclass(frozen=True)
class Mask:
    """The mask operand.

    Attributes:
      tensor: Of the tile of the workgroup, with all its keys.
      indices: The indices of an element in this lane's row, from its key.
    """

    tensor: ir.Value
    indices: Callable[[ir.Value], list[ir.Value]]


@dataclass(frozen=True)
class Keys:
    """The keys of one tile.

    Attributes:
      first: The first one.
      total: All there are.
      left: How many of them are in the tile; None where it is full, or where only `total` says.
      ragged: Whether it may not be full.
      multiple: What their total is known to be a multiple of.
    """

    first: ir.Value
    total: ir.Value
    left: int | None = None
    ragged: bool = False
    multiple: int = 1

    @property
    def scattered(self) -> bool:
        """Whether a mask has to be loaded element by element."""
        return self.ragged and self.left is None

    def has(self, offset: int) -> bool | None:
        """Whether a key that far into the tile exists; None where the code has to find out."""
        if not self.ragged:
            return True
        return None if self.left is None else offset < self.left


def key_place(key: ir.AffineExpr) -> ir.AffineExpr:
    """The row in LDS of a key of the tile: of each 16, keys 4 to 7 and keys 8 to 11 change places."""
    digit = ir.AffineExpr.get_floor_div
    return digit(key, 16) * 16 + digit(key, 4) % 2 * 8 + digit(key, 8) % 2 * 4 + key % 4


def load_query(load_channels: Callable[[ir.Value, int], ir.Value], channels: int, lane: Lane) -> list[ir.Value]:
    """A lane's row of Q, a vector of 4 for each matrix instruction."""
    return [
        half
        for at, width in _channel_chunks(channels)
        for half in _halves(load_channels(_column(lane, at, width), width))
    ]


def products(buffer: ir.Value, query: Sequence[ir.Value], block: int, channels: int, lane: Lane) -> ir.Value:
    """K·Q for 32 keys of the tile in LDS: a vector of 16 in f32."""
    row = apply(lambda column: column + block * BLOCK, lane.column)
    sums = constant(0, vector_type(HELD, f32()))
    terms = iter(query)
    for at, width in _channel_chunks(channels):
        for half in _halves(load(buffer, [row, _column(lane, at, width)], width)):
            sums = mfma(half, next(terms), sums)
    return sums


def load_mask(mask: Mask, keys: Keys, block: int, lane: Lane) -> ir.Value:
    """The mask of a lane's scores of a block, a vector of 16 in f32. Beyond the last key it is of another one."""
    chunks = [_mask_chunk(mask, keys, block * BLOCK + 2 * CHUNK * half, lane) for half in range(2)]
    values = join(*chunks)
    if ir.VectorType(values.type).element_type == f32():
        return values
    return arith.extf(vector_type(HELD, f32()), values)


def without_missing(scores: ir.Value, keys: Keys, block: int, lane: Lane) -> ir.Value:
    """The scores, -inf where there is no such key."""
    offsets = [block * BLOCK + 2 * CHUNK * (held // CHUNK) + held % CHUNK for held in range(HELD)]
    if all(keys.has(offset + CHUNK) for offset in offsets):
        return scores
    none = constant(float("-inf"), f32())
    # How many keys there are from this lane's first one on; 32 bits are enough for what a tile has room for.
    left = apply(lambda total, first, half: total - first - half * CHUNK, keys.total, keys.first, lane.half)
    left = arith.index_cast(ir.IntegerType.get_signless(32), left)
    values = []
    for held, offset in enumerate(offsets):
        score = element(scores, held)
        near, far = keys.has(offset), keys.has(offset + CHUNK)
        if near is None or near != far:
            present = arith.cmpi(arith.CmpIPredicate.sgt, left, i32(offset))
            values.append(arith.select(present, score, none))
        else:
            values.append(score if near else none)
    return vector.FromElementsOp(scores.type, values).result


def _mask_chunk(mask: Mask, keys: Keys, offset: int, lane: Lane) -> ir.Value:
    """8 elements of the mask, from this lane's key `offset` on."""
    key = apply(lambda first, half: first + half * CHUNK + offset, keys.first, lane.half)
    if keys.has(offset + 2 * CHUNK - 1):
        return load(mask.tensor, mask.indices(key), CHUNK)
    if keys.multiple % CHUNK == 0:
        last = apply(lambda total: total - CHUNK, keys.total)
        return load(mask.tensor, mask.indices(arith.minui(key, last)), CHUNK)
    last = apply(lambda total: total - 1, keys.total)
    values = []
    for place in range(CHUNK):
        one = arith.minui(apply(lambda key, place=place: key + place, key), last)
        values.append(element(load(mask.tensor, mask.indices(one), 1), 0))
    return vector.FromElementsOp(vector_type(CHUNK, values[0].type), values).result


def _channel_chunks(channels: int) -> list[tuple[int, int]]:
    """Where the chunks of 8 of both halves start, or of 4 for the last 8 channels, and how many."""
    whole = channels // (2 * CHUNK)
    chunks = [(2 * CHUNK * number, CHUNK) for number in range(whole)]
    return chunks + ([(2 * CHUNK * whole, PER_LANE)] if channels % (2 * CHUNK) else [])


def _column(lane: Lane, at: int, width: int) -> ir.Value:
    return apply(lambda half: half * width + at, lane.half)


def _halves(chunk: ir.Value) -> list[ir.Value]:
    return [part(chunk, at, PER_LANE) for at in range(0, ir.VectorType(chunk.type).shape[0], PER_LANE)]

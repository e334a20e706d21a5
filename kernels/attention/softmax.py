# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The online softmax of a lane's query: a running maximum, a running sum, and weights of 16 bits.

The maximum is of both halves of the wave, since they add to the same results; the sum is of the lane's own keys, in two
parts, until the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import arith, math, rocdl, vector

from prepass.ir.kernels.builders import bf16, constant, element, f16, f32, part, shuffle_xor, splat, vector_type
from prepass.kernels.attention.scores import HELD
from prepass.kernels.attention.tile import LANES, PER_LANE

LOG2_E = 1.4426950408889634
# Below every score; its product with a scale times log2(e) does not overflow.
LOWEST = -1e38
# Weights of f16 are up to 2^14.
HEAD_ROOM = {"f16": 14, "bf16": 0}
_LOWEST_F32 = -3.4028234663852886e38


@dataclass(frozen=True)
class Exponent:
    """How scores become weights: 2 to the power of `factor` times their distance from the maximum.

    Attributes:
      factor: An f32 value.
      wide: Whether scores can be so low that their product with the factor overflows.
      head_room: Weights are this power of two times as large, in the sum too: so f16 holds smaller ones.
    """

    factor: ir.Value
    wide: bool
    head_room: int

    @property
    def lowest(self) -> float:
        """The maximum of no scores."""
        return _LOWEST_F32 if self.wide else LOWEST

    def weights(self, scores: ir.Value, maximum: ir.Value) -> ir.Value:
        """Of a vector of scores."""
        (size,) = ir.VectorType(scores.type).shape
        factor, room = splat(self.factor, size), constant(self.head_room, f32())
        if self.wide:
            distance = arith.subf(scores, splat(maximum, size))
            return math.exp2(math.fma(distance, factor, splat(room, size)))
        # One instruction for two scores: what the maximum adds is the same for all.
        return math.exp2(math.fma(scores, factor, splat(math.fma(arith.negf(maximum), self.factor, room), size)))

    def shrink(self, maximum: ir.Value, higher: ir.Value) -> ir.Value:
        """What weights that were made with one maximum are to be multiplied by for another."""
        return math.exp2(arith.mulf(arith.subf(maximum, higher), self.factor))


@dataclass(frozen=True)
class Update:
    """A step of the softmax.

    Attributes:
      maximum: The new one.
      total: The new sum, a vector of two parts.
      shrink: What earlier results are to be multiplied by.
      weights: Of each block of 32 keys, the factors of four matrix instructions, vectors of 4.
    """

    maximum: ir.Value
    total: ir.Value
    shrink: ir.Value
    weights: list[list[ir.Value]]


def update(
    scores: Sequence[ir.Value], maximum: ir.Value, total: ir.Value, exponent: Exponent, type_: ir.Type
) -> Update:
    """Take in the scores of a tile, vectors of 16 in f32; weights are of `type_`."""
    own = _maximum([element(block, held) for block in scores for held in range(HELD)])
    highest = _max(_max(maximum, own), shuffle_xor(own, LANES // 2))
    shrink = exponent.shrink(maximum, highest)
    total = arith.mulf(total, splat(shrink, 2))
    weights = []
    for block in scores:
        exact = exponent.weights(block, highest)
        pairs = _f16_pairs(exact) if type_ == f16() else _bf16_pairs(exact)
        total = _add_f16(total, pairs) if type_ == f16() else _add_f32(total, exact)
        halves = zip(pairs[::2], pairs[1::2], strict=True)
        weights.append([vector.ShuffleOp(*pair, list(range(PER_LANE))).result for pair in halves])
    return Update(highest, total, shrink, weights)


def grand_total(total: ir.Value) -> ir.Value:
    """The sum of all weights of the lane's query."""
    own = arith.addf(element(total, 0), element(total, 1))
    return arith.addf(own, shuffle_xor(own, LANES // 2))


def _f16_pairs(weights: ir.Value) -> list[ir.Value]:
    """Rounded toward zero, two in an instruction: rounding to the nearest takes three."""
    pair = vector_type(2, f16())
    return [rocdl.cvt_pkrtz(pair, element(weights, at), element(weights, at + 1)) for at in range(0, HELD, 2)]


def _add_f16(total: ir.Value, pairs: Sequence[ir.Value]) -> ir.Value:
    """Add the weights as they are rounded: all are rounded down, so the exact sum would be too high for them.

    The instruction may take denormal halves for zero. With the head room they are below 2^-28 of the highest weight.
    """
    one = constant(1, vector_type(2, f16()))
    parts = [element(total, 0), element(total, 1)]
    for at, pair in enumerate(pairs):
        parts[at % 2] = rocdl.fdot2_(f32(), pair, one, parts[at % 2])
    return vector.FromElementsOp(total.type, parts).result


def _add_f32(total: ir.Value, weights: ir.Value) -> ir.Value:
    for at in range(0, HELD, 2):
        total = arith.addf(total, part(weights, at, 2))
    return total


def _bf16_pairs(weights: ir.Value) -> list[ir.Value]:
    """Rounded to the nearest, halves up. Weights are from 0 to 1, so neither overflow nor NaN needs care."""
    i16, i32 = ir.IntegerType.get_signless(16), ir.IntegerType.get_signless(32)
    bits = vector.bitcast(vector_type(HELD, i32), weights)
    rounded = arith.addi(bits, constant(1 << 15, vector_type(HELD, i32)))
    halves = vector.bitcast(vector_type(2 * HELD, i16), rounded)
    pairs = [vector.ShuffleOp(halves, halves, [2 * at + 1, 2 * at + 3]).result for at in range(0, HELD, 2)]
    return [vector.bitcast(vector_type(2, bf16()), pair) for pair in pairs]


def _maximum(values: Sequence[ir.Value]) -> ir.Value:
    """Of a chain, of which the target computes two links in an instruction."""
    highest = values[0]
    for value in values[1:]:
        highest = _max(highest, value)
    return highest


def _max(a: ir.Value, b: ir.Value) -> ir.Value:
    # Without the flag the compiler quiets NaNs of both operands first. A NaN still reaches the weights.
    return arith.maxnumf(a, b, fastmath=arith.FastMathFlags.nnan)

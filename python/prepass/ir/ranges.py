# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranges of integer and index values, and what a condition that holds says about them.

An index has 64 bits here, as in IREE's own integer range analysis.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from iree.compiler import ir
from iree.compiler.dialects import arith

from prepass.ir.match import defining_op

INDEX_WIDTH = 64
_Predicate = arith.CmpIPredicate
_SWAPPED = {
    _Predicate.slt: _Predicate.sgt,
    _Predicate.sle: _Predicate.sge,
    _Predicate.ult: _Predicate.ugt,
    _Predicate.ule: _Predicate.uge,
}
_SWAPPED |= {swapped: predicate for predicate, swapped in _SWAPPED.items()}
_NEGATED = {
    _Predicate.eq: _Predicate.ne,
    _Predicate.slt: _Predicate.sge,
    _Predicate.sgt: _Predicate.sle,
    _Predicate.ult: _Predicate.uge,
    _Predicate.ugt: _Predicate.ule,
}
_NEGATED |= {negated: predicate for predicate, negated in _NEGATED.items()}
# The casts that keep the number, read as signed or as unsigned, when the result is no narrower.
_SIGNED_CASTS = ("arith.index_cast", "arith.extsi")
_UNSIGNED_CASTS = ("arith.index_castui", "arith.extui")


class Interval(NamedTuple):
    """The numbers from `low` to `high`, both included; none when low > high."""

    low: int
    high: int

    def __and__(self, other: Interval) -> Interval:
        return Interval(max(self.low, other.low), min(self.high, other.high))


@dataclass(frozen=True)
class Range:
    """A set of `width`-bit integers: those in both intervals.

    Attributes:
      signed: Where they lie when read as two's complement.
      unsigned: Where they lie when read as unsigned.
    """

    width: int
    signed: Interval
    unsigned: Interval

    @property
    def is_empty(self) -> bool:
        return self.signed.low > self.signed.high or self.unsigned.low > self.unsigned.high

    @property
    def is_full_unsigned(self) -> bool:
        """Whether every integer lies in the unsigned interval."""
        return self.unsigned == full_range(self.width).unsigned

    def __and__(self, other: Range) -> Range:
        return _tightened(Range(self.width, self.signed & other.signed, self.unsigned & other.unsigned))


class Fact(NamedTuple):
    """That a value lies in a range."""

    value: ir.Value
    range: Range


def full_range(width: int) -> Range:
    """All integers of `width` bits."""
    half = 1 << (width - 1)
    return Range(width, Interval(-half, half - 1), Interval(0, 2 * half - 1))


def width_of(type_: ir.Type) -> int | None:
    """The width of an index or of an integer of up to 64 bits, None for other types: assumptions hold 64 bits."""
    if isinstance(type_, ir.IndexType):
        return INDEX_WIDTH
    return type_.width if isinstance(type_, ir.IntegerType) and type_.width <= INDEX_WIDTH else None


def constant_integer(value: ir.Value) -> int | None:
    """The number, as signed, that an integer or index constant holds; None for other values."""
    op = defining_op(value)
    if op is None or op.name != "arith.constant":
        return None
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.BoolAttr):
        return -int(attribute.value)
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


def known_range(value: ir.Value) -> Range:
    """What the op that defines an integer or index value says of it."""
    width = width_of(value.type)
    if width is None:
        raise TypeError(f"not an integer or index: {value.type}")
    everything = full_range(width)
    number = constant_integer(value)
    if number is not None:
        unsigned = number % (1 << width)
        return Range(width, Interval(number, number), Interval(unsigned, unsigned))
    op = defining_op(value)
    if op is not None and op.name in ("tensor.dim", "linalg.index"):
        return everything & Range(width, Interval(0, everything.signed.high), everything.unsigned)
    source = cast_source(value)
    return everything if source is None else through_cast(value, known_range(source))


def cast_source(value: ir.Value) -> ir.Value | None:
    """What `value` is the same number as, when a cast to at least its width defines it."""
    op = defining_op(value)
    if op is None or op.name not in _SIGNED_CASTS + _UNSIGNED_CASTS:
        return None
    source = op.operands[0]
    narrow, wide = width_of(source.type), width_of(value.type)
    return None if narrow is None or wide is None or narrow > wide else source


def through_cast(value: ir.Value, source: Range) -> Range:
    """The range of a cast's result, from its operand's."""
    op = defining_op(value)
    everything = full_range(width_of(value.type) or INDEX_WIDTH)
    if op is not None and op.name in _SIGNED_CASTS:
        return everything & Range(everything.width, source.signed, everything.unsigned)
    return everything & Range(everything.width, everything.signed, source.unsigned)


def before_cast(value: ir.Value, result: Range) -> Range:
    """The range of a cast's operand, from its result's."""
    op = defining_op(value)
    everything = full_range(width_of(op.operands[0].type) if op is not None else result.width)
    if op is not None and op.name in _SIGNED_CASTS:
        return everything & Range(everything.width, result.signed, everything.unsigned)
    return everything & Range(everything.width, everything.signed, result.unsigned)


def facts(condition: ir.Value, holds: bool = True) -> Iterator[Fact]:
    """What is known when an i1 is true, or false. A condition that is not understood says nothing."""
    op = defining_op(condition)
    if op is None:
        return
    if op.name == ("arith.andi" if holds else "arith.ori"):
        yield from facts(op.operands[0], holds)
        yield from facts(op.operands[1], holds)
    elif op.name == "arith.xori" and constant_integer(op.operands[1]) == -1:
        yield from facts(op.operands[0], not holds)
    elif op.name == "arith.cmpi" and width_of(op.operands[0].type) is not None:
        predicate = _Predicate(ir.IntegerAttr(op.attributes["predicate"]).value)
        predicate = predicate if holds else _NEGATED[predicate]
        left, right = op.operands
        yield Fact(left, _compared(predicate, known_range(right)))
        yield Fact(right, _compared(_SWAPPED.get(predicate, predicate), known_range(left)))


def _compared(predicate: arith.CmpIPredicate, bound: Range) -> Range:
    """The integers that compare so to some integer in `bound`."""
    everything = full_range(bound.width)
    signed, unsigned = everything.signed, everything.unsigned
    match predicate:
        case _Predicate.eq:
            return bound
        case _Predicate.ne:
            return _all_but(bound)
        case _Predicate.slt | _Predicate.sle:
            signed = Interval(signed.low, bound.signed.high - (predicate == _Predicate.slt))
        case _Predicate.sgt | _Predicate.sge:
            signed = Interval(bound.signed.low + (predicate == _Predicate.sgt), signed.high)
        case _Predicate.ult | _Predicate.ule:
            unsigned = Interval(unsigned.low, bound.unsigned.high - (predicate == _Predicate.ult))
        case _Predicate.ugt | _Predicate.uge:
            unsigned = Interval(bound.unsigned.low + (predicate == _Predicate.ugt), unsigned.high)
    return _tightened(Range(bound.width, signed, unsigned))


def _all_but(bound: Range) -> Range:
    """The integers apart from the one that `bound` holds, if that lies at an end of an interval."""
    everything = full_range(bound.width)
    if bound.signed.low != bound.signed.high:
        return everything
    signed = _without(everything.signed, bound.signed.low)
    return _tightened(Range(bound.width, signed, _without(everything.unsigned, bound.unsigned.low)))


def _without(interval: Interval, number: int) -> Interval:
    return Interval(interval.low + (number == interval.low), interval.high - (number == interval.high))


def _tightened(range_: Range) -> Range:
    """Let each interval learn from the other, where that is on one side of the sign change."""
    half = 1 << (range_.width - 1)
    signed, unsigned = range_.signed, range_.unsigned
    if range_.is_empty:
        return range_
    if signed.low >= 0 or signed.high < 0:
        shift = 0 if signed.low >= 0 else 2 * half
        unsigned &= Interval(signed.low + shift, signed.high + shift)
    if unsigned.high < half or unsigned.low >= half:
        shift = 0 if unsigned.high < half else 2 * half
        signed &= Interval(unsigned.low - shift, unsigned.high - shift)
    tighter = Range(range_.width, signed, unsigned)
    return tighter if tighter == range_ else _tightened(tighter)

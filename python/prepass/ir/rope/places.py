# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Positions in a tensor dim as linear forms over axes: 2·i + 1, 64·c + i, 128·h + i.

An `Index` of `prepass.ir.axes` has no constants and no strides. Rotary embeddings take slices,
every second channel, and the partner of a channel, so their positions need both.
"""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.axes import Axis


@dataclass(frozen=True)
class Place:
    """`constant` plus the sum of coefficient times axis; coefficients are positive."""

    terms: tuple[tuple[Axis, int], ...] = ()
    constant: int = 0

    def __add__(self, other: Place) -> Place:
        return _normal([*self.terms, *other.terms], self.constant + other.constant)

    def scaled(self, factor: int) -> Place:
        """The place times a factor of at least 0."""
        if factor == 0:
            return Place()
        return Place(tuple((axis, coefficient * factor) for axis, coefficient in self.terms), self.constant * factor)

    def resolved(self) -> Place:
        """The same place over axes that no reshape has split."""
        if all(axis.parts is None for axis, _ in self.terms):
            return self
        terms: list[tuple[Axis, int]] = []
        for axis, coefficient in self.terms:
            if axis.parts is None:
                terms.append((axis, coefficient))
                continue
            outside, inside = axis.parts
            terms += [(outside, coefficient * (inside.extent or 1)), (inside, coefficient)]
        return _normal(terms, self.constant).resolved()

    @property
    def last(self) -> int | None:
        """The largest value, None where an axis is dynamic."""
        total = self.constant
        for axis, coefficient in self.terms:
            if axis.extent is None:
                return None
            total += coefficient * (axis.extent - 1)
        return total


Places = tuple[Place, ...]


def at(axis: Axis) -> Place:
    """The place that an axis counts; an axis of extent 1 is the constant 0."""
    return Place() if axis.extent == 1 else Place(((axis, 1),))


def constant(number: int) -> Place:
    """A fixed place."""
    return Place((), number)


def divide(place: Place, divisor: int, *, exact: bool = False) -> tuple[Place, Place] | None:
    """The quotient and remainder of a place by a number, splitting an axis where that takes it.

    With `exact` the place counts a multiple of the divisor, as the dims of a collapsed tensor do, so
    that a dynamic axis may be split too. None when the two are not linear.
    """
    while True:
        place = place.resolved()
        whole = [(axis, coefficient // divisor) for axis, coefficient in place.terms if coefficient % divisor == 0]
        rest = [(axis, coefficient) for axis, coefficient in place.terms if coefficient % divisor]
        quotient, remainder = divmod(place.constant, divisor)
        below = Place(tuple(rest), remainder)
        if below.last is not None and below.last < divisor:
            return Place(tuple(whole), quotient), below
        if not _split(rest, divisor, exact):
            return None


def _split(terms: list[tuple[Axis, int]], divisor: int, exact: bool) -> bool:
    """Split the term that straddles a divisor."""
    for axis, coefficient in sorted(terms, key=lambda term: -term[1]):
        extent = axis.extent
        if coefficient >= divisor or divisor % coefficient:
            continue
        inside = divisor // coefficient
        if extent is None and exact:
            axis.parts = (Axis(None), Axis(inside))
            return True
        if extent is not None and extent > inside and extent % inside == 0:
            axis.parts = (Axis(extent // inside), Axis(inside))
            return True
    return False


def compare(predicate: int, a: Place, b: Place) -> bool | None:
    """What `arith.cmpi` says of two places that are not negative, None where it depends on the axes."""
    low, high = _difference_range(a.resolved(), b.resolved())
    name = _PREDICATES[predicate]
    if name in ("eq", "ne"):
        if low == high == 0:
            return name == "eq"
        return name == "ne" if (low is not None and low > 0) or (high is not None and high < 0) else None
    if name in ("gt", "le"):
        low, high = (None if high is None else -high), (None if low is None else -low)
        name = {"gt": "lt", "le": "ge"}[name]
    if high is not None and high < 0:
        return name == "lt"
    return name == "ge" if low is not None and low >= 0 else None


# By the number that MLIR gives each; signed and unsigned agree where nothing is negative.
_PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge", "lt", "le", "gt", "ge")


def _difference_range(a: Place, b: Place) -> tuple[int | None, int | None]:
    """The least and the largest value of a - b, each None where unbounded."""
    coefficients: dict[Axis, int] = dict(a.terms)
    for axis, coefficient in b.terms:
        coefficients[axis] = coefficients.get(axis, 0) - coefficient
    low: int | None = a.constant - b.constant
    high: int | None = low
    for axis, coefficient in coefficients.items():
        if coefficient == 0:
            continue
        reach = None if axis.extent is None else coefficient * (axis.extent - 1)
        if coefficient > 0:
            high = None if high is None or reach is None else high + reach
        else:
            low = None if low is None or reach is None else low + reach
    return low, high


def affine(expr: ir.AffineExpr, dims: list[Place], symbols: list[Place]) -> Place | None:
    """The value of an affine expression, None where it is not linear or may be negative."""
    if isinstance(expr, ir.AffineDimExpr):
        return dims[expr.position]
    if isinstance(expr, ir.AffineSymbolExpr):
        return symbols[expr.position]
    if isinstance(expr, ir.AffineConstantExpr):
        return constant(expr.value) if expr.value >= 0 else None
    lhs, rhs = affine(expr.lhs, dims, symbols), affine(expr.rhs, dims, symbols)
    if lhs is None or rhs is None:
        return None
    if isinstance(expr, ir.AffineAddExpr):
        return lhs + rhs
    if isinstance(expr, ir.AffineMulExpr):
        return multiply(lhs, rhs)
    if rhs.terms or not rhs.constant:
        return None
    parts = divide(lhs, rhs.constant)
    if parts is None or isinstance(expr, ir.AffineCeilDivExpr):
        return None
    return parts[1] if isinstance(expr, ir.AffineModExpr) else parts[0]


def multiply(a: Place, b: Place) -> Place | None:
    """The product of two places, one of which must be a constant."""
    a, b = a.resolved(), b.resolved()
    if not b.terms:
        return a.scaled(b.constant)
    return b.scaled(a.constant) if not a.terms else None


def _normal(terms: list[tuple[Axis, int]], number: int) -> Place:
    sums: dict[Axis, int] = {}
    for axis, coefficient in terms:
        if axis.extent != 1:
            sums[axis] = sums.get(axis, 0) + coefficient
    ordered = sorted(sums.items(), key=lambda term: (-term[1], id(term[0])))
    return Place(tuple(ordered), number)

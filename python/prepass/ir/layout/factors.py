# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The axes of a whole function: factors of dims, shared between the tensors that an op reads and writes along them.

A dim of a tensor is a group of factors, outermost first. Reshapes split factors,
and ops make the factors of their operands one, so that what is known of an axis
at one tensor, that it is the channels, say, is known wherever that axis appears.
"""

from __future__ import annotations

import math
from collections.abc import Iterable


class Factor:
    """An axis, or a part of one.

    Attributes:
      extent: Its size, None where dynamic.
      last: Whether it goes behind those that do not: the channels in channels-last.
    """

    __slots__ = ("_parent", "_parts", "extent", "last")

    def __init__(self, extent: int | None) -> None:
        self.extent = extent
        self.last = False
        self._parent: Factor | None = None
        self._parts: Group | None = None

    def root(self) -> Factor:
        """What stands for this factor and those it is one with."""
        factor = self
        while factor._parent is not None:
            factor = factor._parent
        return factor

    def split(self, parts: Group) -> None:
        """Make it the product of `parts`."""
        self.root()._parts = parts

    def join(self, other: Factor) -> None:
        """Make two unsplit factors one."""
        self.root()._parent = other.root()


Group = tuple[Factor, ...]


def leaves(group: Iterable[Factor]) -> list[Factor]:
    """The unsplit factors of a group."""
    found: list[Factor] = []
    for factor in group:
        root = factor.root()
        if root._parts is None:
            found.append(root)
        else:
            found.extend(leaves(root._parts))
    return found


def wide(group: Iterable[Factor]) -> list[Factor]:
    """The unsplit factors of a group that are not of extent 1."""
    return [leaf for leaf in leaves(group) if leaf.extent != 1]


def extent(group: Iterable[Factor]) -> int | None:
    """The product of the extents, None where one is dynamic."""
    extents = [leaf.extent for leaf in leaves(group)]
    return None if None in extents else math.prod(size for size in extents if size is not None)


def unify(a: Group, b: Group) -> bool:
    """Make two groups one, factor by factor, splitting where one has a product of what the other has.

    False, with part of the work done, when their sizes do not line up or that
    cannot be known. Factors of extent 1 beside others are skipped.
    """
    left, right = wide(a), wide(b)
    if not left and not right:
        _join_units(leaves(a), leaves(b))
    while left and right:
        x, y = left[0].root(), right[0].root()
        if x is y or x.extent == y.extent:
            if x is not y:
                x.join(y)
            del left[0], right[0]
        elif x.extent is None or y.extent is None:
            return _unify_dynamic(left, right)
        elif x.extent % y.extent == 0:
            rest = Factor(x.extent // y.extent)
            x.split((y, rest))
            left[0] = rest
            del right[0]
        elif y.extent % x.extent == 0:
            rest = Factor(y.extent // x.extent)
            y.split((x, rest))
            right[0] = rest
            del left[0]
        else:
            return False
    return not left and not right


def _unify_dynamic(left: list[Factor], right: list[Factor]) -> bool:
    for whole, parts in ((left, right), (right, left)):
        if len(whole) == 1 and whole[0].root().extent is None and whole[0].root() not in leaves(parts):
            whole[0].split(tuple(parts))
            return True
    return False


def _join_units(a: list[Factor], b: list[Factor]) -> None:
    if len(a) == len(b) == 1 and a[0].root() is not b[0].root():
        a[0].join(b[0])

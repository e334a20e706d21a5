# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops and the factors that reshapes split them into.

A tensor read is described by an `Index`: for each tensor dim the axes whose
mixed-radix number is the position in that dim, outermost first. A dim of size 1
has no axes. Transposes permute an index, broadcasts drop groups from it,
`tensor.expand_shape` concatenates groups and `tensor.collapse_shape` splits
them, so any chain of those ops is one index and never a pattern of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


class Axis:
    """A loop, or a factor of one.

    Attributes:
      extent: Trip count, None where dynamic.
      parts: The factors a reshape split this axis into, outermost first, or None.
    """

    __slots__ = ("extent", "parts")

    def __init__(self, extent: int | None) -> None:
        self.extent = extent
        self.parts: Group | None = None


Group = tuple[Axis, ...]
Index = tuple[Group, ...]


def leaves(group: Iterable[Axis]) -> Group:
    """The unsplit factors of a group of axes; those of extent 1 are dropped."""
    found: list[Axis] = []
    for axis in group:
        if axis.parts is not None:
            found.extend(leaves(axis.parts))
        elif axis.extent != 1:
            found.append(axis)
    return tuple(found)


def index_leaves(index: Index) -> Group:
    """The unsplit factors of all dims of an index, in order."""
    return leaves(axis for group in index for axis in group)


def resolve(index: Index) -> Index:
    """The index over unsplit factors."""
    return tuple(leaves(group) for group in index)


def static_extent(group: Iterable[Axis]) -> int | None:
    """The product of the extents, None where one is dynamic."""
    extents = [axis.extent for axis in leaves(group)]
    return None if None in extents else math.prod(e for e in extents if e is not None)


def split_group(group: Group, sizes: Sequence[int | None]) -> Index | None:
    """Distribute a group over dims of the given sizes (None where dynamic), splitting axes where needed.

    Returns None when the sizes do not line up with the axes, or when that
    cannot be known because several sizes are dynamic.
    """
    rest = list(leaves(group))
    groups: list[Group] = [()] * len(sizes)
    low, high = 0, len(sizes)
    while low < high and (size := sizes[high - 1]) is not None:
        high -= 1
        taken = _take(rest, size, innermost=True)
        if taken is None:
            return None
        groups[high] = taken
    while low < high and (size := sizes[low]) is not None:
        taken = _take(rest, size, innermost=False)
        if taken is None:
            return None
        groups[low] = taken
        low += 1
    if low == high:
        return None if rest else tuple(groups)
    if high - low == 1:
        groups[low] = tuple(rest)
        return tuple(groups)
    return _split_dynamic(rest, groups, sizes, low, high)


def _split_dynamic(
    rest: list[Axis], groups: list[Group], sizes: Sequence[int | None], low: int, high: int
) -> Index | None:
    if len(rest) != 1 or rest[0].extent is not None:
        return None
    rest[0].parts = tuple(Axis(size) for size in sizes[low:high])
    groups[low:high] = [(part,) for part in rest[0].parts]
    return tuple(groups)


def _take(rest: list[Axis], size: int, *, innermost: bool) -> Group | None:
    """Remove axes with product `size` from one end of `rest`."""
    taken: list[Axis] = []
    end = -1 if innermost else 0
    while size > 1:
        if not rest:
            return None
        axis = rest.pop(end)
        if axis.extent is not None and size % axis.extent == 0:
            size //= axis.extent
            taken.append(axis)
            continue
        if axis.extent is not None and axis.extent % size:
            return None
        inside = Axis(size)
        outside = Axis(None if axis.extent is None else axis.extent // size)
        axis.parts = (outside, inside) if innermost else (inside, outside)
        rest.insert(len(rest) if innermost else 0, outside)
        taken.append(inside)
        break
    return tuple(reversed(taken)) if innermost else tuple(taken)

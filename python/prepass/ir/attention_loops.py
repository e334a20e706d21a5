# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The loops of an attention op: which axes are batch, queries, keys and channels, and which go together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from prepass.ir.axes import Axis, Group, Index, index_leaves
from prepass.ir.expressions import Read


@dataclass(frozen=True)
class OperandIndex:
    """The dims an operand is brought to; `swapped` when its last two are not in the usual order."""

    dims: Index
    swapped: bool = False


@dataclass(frozen=True)
class Loops:
    """The loops of an attention op, each a group of axes; one of extent 1 has an axis of its own.

    Attributes:
      batch: Of K or V as well as of the result.
      m: Of Q and the result only: groups of heads that share K and V, then queries. Never empty.
      n: Channels of V.
      k1: Channels of Q and K.
      k2: Keys.
    """

    batch: Index
    m: Index
    n: Group
    k1: Group
    k2: Group

    @property
    def all(self) -> Index:
        """All loops, in the op's order."""
        return (*self.batch, *self.m, self.n, self.k1, self.k2)

    @property
    def result_index(self) -> Index:
        """The dims of the op's result."""
        return (*self.batch, *self.m, self.n)

    def query_index(self, read: Read) -> OperandIndex:
        """The dims Q is brought to."""
        return OperandIndex((*self._batch_of(read), *self.m, self.k1))

    def key_index(self, read: Read) -> OperandIndex:
        """The dims K is brought to."""
        return self._either_order(read, self.k2, self.k1)

    def value_index(self, read: Read) -> OperandIndex:
        """The dims V is brought to."""
        return self._either_order(read, self.k2, self.n)

    def mask_index(self, axes: set[Axis]) -> Index:
        """The dims of a mask that varies along `axes`."""
        return tuple(loop for loop in (*self.batch, *self.m, self.k2) if axes.intersection(loop))

    def _batch_of(self, read: Read) -> Index:
        present = set(index_leaves(read.index))
        return tuple(group for group in self.batch if present.intersection(group))

    def _either_order(self, read: Read, first: Group, second: Group) -> OperandIndex:
        batch = self._batch_of(read)
        swapped = (*batch, second, first)
        is_swapped = index_leaves(read.index) == index_leaves(swapped) != index_leaves((*batch, first, second))
        return OperandIndex(swapped if is_swapped else (*batch, first, second), is_swapped)


def find_loops(query: Read, key: Read, value: Read, result: Read, mask: set[Axis]) -> Loops | None:
    """Sort the axes of the operands into loops, or None when they are not those of attention.

    Axes become one loop where every operand, mask included, has all or none of
    them: a mask that is broadcast along heads is not expanded along them.
    """
    q, k, v = (index_leaves(read.index) for read in (query, key, value))
    o = index_leaves(result.index)
    m = [axis for axis in o if axis in q and axis not in k and axis not in v]
    n = [axis for axis in o if axis in v and axis not in q and axis not in k]
    batch = [axis for axis in o if axis in k or (axis in q and axis in v)]
    k1 = [axis for axis in q if axis in k and axis not in o and axis not in v]
    k2 = [axis for axis in k if axis in v and axis not in o and axis not in q]
    if set(o) != {*m, *n, *batch} or not {*q, *k, *v} <= {*m, *n, *batch, *k1, *k2}:
        return None
    if not mask <= {*batch, *m, *k2}:
        return None
    batch_loops = _merge(batch, lambda axis: (axis in q, axis in k, axis in v, axis in mask))
    m_loops = _merge(m, lambda axis: axis in mask)
    return Loops(batch_loops, m_loops or (_loop([]),), _loop(n), _loop(k1), _loop(k2))


def _loop(axes: list[Axis]) -> Group:
    return tuple(axes) or (Axis(1),)


def _merge(axes: list[Axis], presence: Callable[[Axis], object]) -> Index:
    groups: list[Group] = []
    for axis in axes:
        if groups and presence(groups[-1][-1]) == presence(axis):
            groups[-1] = (*groups[-1], axis)
        else:
            groups.append((axis,))
    return tuple(groups)

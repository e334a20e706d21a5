# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The loops of an attention op: which axes are batch, queries, keys and channels, and which go together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from prepass.ir.axes import Axis, Group, Index, index_leaves
from prepass.ir.expressions import Read


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

    def query_dims(self, read: Read) -> Index:
        """The dims Q is brought to."""
        return _dims(read, self.batch, (*self.m, self.k1))

    def key_dims(self, read: Read) -> Index:
        """The dims K is brought to."""
        return _dims(read, self.batch, (self.k2, self.k1))

    def value_dims(self, read: Read) -> Index:
        """The dims V is brought to."""
        return _dims(read, self.batch, (self.k2, self.n))

    def result_dims(self, read: Read) -> Index:
        """The dims of the op's result."""
        return _dims(read, self.batch, (*self.m, self.n))

    def mask_index(self, axes: set[Axis]) -> Index:
        """The dims of a mask that varies along `axes`."""
        return tuple(loop for loop in (*self.batch, *self.m, self.k2) if axes.intersection(loop))


def _dims(read: Read, batch: Index, others: Index) -> Index:
    """The loops of an operand in the order it is laid out, so that none is moved; of extent 1 next to last."""
    present = index_leaves(read.index)
    laid_out = [loop for loop in (*batch, *others) if loop[0] in present]
    laid_out.sort(key=lambda loop: present.index(loop[0]))
    return (*laid_out[:-1], *(loop for loop in others if loop[0] not in present), *laid_out[-1:])


def find_loops(
    query: Read, key: Read, value: Read, result: Read, mask: set[Axis], *, merge_batch: bool = True
) -> Loops | None:
    """Sort the axes of the operands into loops, or None when they are not those of attention.

    Axes become one loop where every operand, mask included, has all or none of
    them, and has them side by side. So a mask that is broadcast along heads is
    not expanded along them, and no operand is transposed. This is also the form
    that the compiler's own folding of transposes and reshapes leaves alone: a
    lowering config is by loop, and would not fit another number of them. Without
    `merge_batch` each batch axis stays a loop, so that an operand can have them in
    another order.
    """
    orders = q, k, v, o = tuple(index_leaves(read.index) for read in (query, key, value, result))
    m = [axis for axis in o if axis in q and axis not in k and axis not in v]
    n = [axis for axis in o if axis in v and axis not in q and axis not in k]
    batch = [axis for axis in o if axis in k or (axis in q and axis in v)]
    k1 = [axis for axis in q if axis in k and axis not in o and axis not in v]
    k2 = [axis for axis in k if axis in v and axis not in o and axis not in q]
    if set(o) != {*m, *n, *batch} or not {*q, *k, *v} <= {*m, *n, *batch, *k1, *k2}:
        return None
    if not mask <= {*batch, *m, *k2}:
        return None

    def together(a: Axis, b: Axis) -> bool:
        if (a in mask) != (b in mask):
            return False
        return all((a in order) == (b in order) and (a not in order or _follows(order, a, b)) for order in orders)

    loops = _merge(batch, together) if merge_batch else tuple((axis,) for axis in batch)
    return Loops(loops, _merge(m, together) or (_loop([]),), _loop(n), _loop(k1), _loop(k2))


def _follows(order: Group, a: Axis, b: Axis) -> bool:
    return order.index(b) == order.index(a) + 1


def _loop(axes: list[Axis]) -> Group:
    return tuple(axes) or (Axis(1),)


def _merge(axes: list[Axis], together: Callable[[Axis, Axis], bool]) -> Index:
    groups: list[Group] = []
    for axis in axes:
        if groups and together(groups[-1][-1], axis):
            groups[-1] = (*groups[-1], axis)
        else:
            groups.append((axis,))
    return tuple(groups)

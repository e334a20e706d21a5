# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One set of axes for contractions that share an operand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from iree.compiler import ir

from prepass.ir.axes import Axis, Group, Index, leaves, resolve, split_group
from prepass.ir.match import NoMatch


class Alignment:
    """The axes of the first of several contractions stand for the equal axes of the others."""

    def __init__(self) -> None:
        self._axes: dict[Axis, Axis] = {}

    def align(self, groups: Sequence[Group], op: ir.Operation) -> Group:
        """Let the finest of groups that run over the same positions stand for all; raises NoMatch where none does."""
        finest = max((leaves(group) for group in groups), key=len)
        extents = [axis.extent for axis in finest]
        for group in groups:
            self._axes.update(zip(_cut(group, extents, op), finest, strict=True))
        return finest

    def group(self, group: Iterable[Axis]) -> Group:
        """The axes that stand for those of a group."""
        return tuple(self._axes.get(axis, axis) for axis in leaves(group))

    def index(self, index: Index) -> Index:
        """The same for an index."""
        return tuple(self.group(group) for group in resolve(index))


def _cut(group: Group, extents: list[int | None], op: ir.Operation) -> Group:
    axes = leaves(group)
    if [axis.extent for axis in axes] == extents:
        return axes
    parts = split_group(group, extents)
    if parts is None or any(len(part) != 1 for part in parts):
        raise NoMatch("their results are cut in different ways", op)
    return tuple(part[0] for part in parts)


def merge_loops(axes: Group, tensors: Iterable[Iterable[Axis]]) -> Index:
    """Loops over `axes`: those that are neighbours in every tensor that has one of them become one."""
    orders = [tuple(tensor) for tensor in tensors]

    def together(a: Axis, b: Axis) -> bool:
        return all((a in order) == (b in order) and (a not in order or _follows(order, a, b)) for order in orders)

    loops: list[Group] = []
    for axis in axes:
        if loops and together(loops[-1][-1], axis):
            loops[-1] = (*loops[-1], axis)
        else:
            loops.append((axis,))
    return tuple(loops)


def present(loops: Index, order: Iterable[Axis]) -> Index:
    """The loops that a tensor has, in the order in which it has them."""
    axes = tuple(order)
    return tuple(sorted((loop for loop in loops if loop[0] in axes), key=lambda loop: axes.index(loop[0])))


def _follows(order: Group, a: Axis, b: Axis) -> bool:
    return order.index(b) == order.index(a) + 1

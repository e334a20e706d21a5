# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The factors of the dims of every tensor of a function."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from prepass.ir.expressions import tensor_sizes
from prepass.ir.layout.factors import Factor, Group, leaves, unify
from prepass.ir.layout.layouts import Layout, layout_of, ordered_layout
from prepass.ir.match import defining_op

Dims = Sequence[Group]


def is_free(value: ir.Value) -> bool:
    """Whether a tensor costs nothing in any layout: it is empty, or the same number everywhere."""
    op = defining_op(value)
    if op is None:
        return False
    if op.name == "arith.constant":
        attribute = op.attributes["value"]
        return isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat
    if op.name == "linalg.fill":
        return is_free(op.operands[1])
    return op.name == "tensor.empty"


class Shapes:
    """The factors of dims, and which groups of them go last together.

    A value that `is_free` has no factors of its own: each of its uses does, as one
    empty tensor may serve several that have nothing else in common.
    """

    def __init__(self) -> None:
        self._values: dict[ir.Value, Dims] = {}
        self._uses: dict[tuple[ir.Operation, int], Dims] = {}
        self._together: list[tuple[Group, Group]] = []

    def value(self, value: ir.Value) -> Dims:
        """The dims of a value."""
        if value not in self._values:
            self._values[value] = _fresh(value)
        return self._values[value]

    def operand(self, op: ir.Operation, number: int) -> Dims:
        """The dims of an operand."""
        value = op.operands[number]
        if not is_free(value):
            return self.value(value)
        key = (op, number)
        if key not in self._uses:
            self._uses[key] = _fresh(value)
        return self._uses[key]

    def tie(self, a: Group, b: Group) -> bool:
        """Make two dims the same axis; False when their sizes do not line up."""
        return unify(a, b)

    def keep_together(self, a: Group, b: Group) -> None:
        """Make one dim go last where another does: parts of one axis, of different sizes."""
        self._together.append((a, b))

    def send_last(self, groups: Sequence[Group]) -> list[Factor]:
        """Mark groups to go last, and all that go with them. Returns what was not marked before."""
        marked: list[Factor] = []
        pending = list(groups)
        while pending:
            for group in pending:
                marked += _mark(group)
            pending = [
                other
                for pair in self._together
                for group, other in (pair, pair[::-1])
                if any(leaf.last for leaf in leaves(group)) and not all(leaf.last for leaf in leaves(other))
            ]
        return marked

    def operand_layout(self, op: ir.Operation, number: int) -> Layout:
        """The layout of an operand of an op that follows."""
        return layout_of(self.operand(op, number))

    def ordered_layouts(self, op: ir.Operation, number: int) -> tuple[Layout, Layout]:
        """The layout of an operand, and that with its dims of extent 1 in order too."""
        dims = self.operand(op, number)
        return layout_of(dims), ordered_layout(dims)

    def layout(self, value: ir.Value) -> Layout:
        """The layout of a value in ops that follow."""
        return layout_of(self.value(value))


def _fresh(value: ir.Value) -> Dims:
    return tuple((Factor(size),) for size in tensor_sizes(value))


def _mark(group: Group) -> list[Factor]:
    marked = [leaf for leaf in leaves(group) if not leaf.last]
    for leaf in marked:
        leaf.last = True
    return marked

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reshapes in other layouts: they stay reshapes, as all that goes last does so before and after."""

from __future__ import annotations

from iree.compiler import ir

from prepass.ir.axes import Axis, Group, Index
from prepass.ir.emit import Extents, relayout
from prepass.ir.expressions import Read, reassociation
from prepass.ir.layout.factors import wide
from prepass.ir.layout.layouts import Layout, Operand
from prepass.ir.layout.shapes import Shapes
from prepass.ir.match import NoMatch


def link(op: ir.Operation, shapes: Shapes) -> None:
    """Make what is grouped and what it is grouped to the same axes."""
    source, result = shapes.operand(op, 0), shapes.value(op.result)
    fine, coarse = (result, source) if op.name == "tensor.expand_shape" else (source, result)
    for whole, dims in zip(coarse, reassociation(op), strict=True):
        if not shapes.tie(whole, tuple(factor for dim in dims for factor in fine[dim])):
            raise NoMatch("its sizes cannot be factored alike", op)


def check(op: ir.Operation, shapes: Shapes) -> None:
    """Raise NoMatch where a reshape cannot follow."""
    source, result = shapes.operand(op, 0), shapes.value(op.result)
    if [leaf for group in source for leaf in wide(group)] != [leaf for group in result for leaf in wide(group)]:
        raise NoMatch("its sizes cannot be factored alike", op)
    for layout in (shapes.operand_layout(op, 0), shapes.layout(op.result)):
        if not layout.determined():
            raise NoMatch("a dynamic dim would be split in two dynamic dims", op)


def build(op: ir.Operation, shapes: Shapes, operand: Operand) -> list[ir.Value]:
    """The reshape between layouts."""
    before, after = shapes.operand_layout(op, 0), shapes.layout(op.result)
    value = operand(op.operands[0], before)
    leaves = [leaf for group in shapes.operand(op, 0) for leaf in wide(group)]
    # A factor may stand in several places, as in a square: it is its place that counts.
    axes = [Axis(leaf.extent) for leaf in leaves]
    source, target = _index(before, axes), _index(after, axes)
    return [relayout(value, source, target, _Sizes([Read(value, source)], _sizes(op, after, axes)))]


class _Sizes(Extents):
    """Extents that a tensor does not give, from the operands of the reshape."""

    def __init__(self, reads: list[Read], known: dict[Axis, ir.Value]) -> None:
        super().__init__(reads)
        self._known = known

    def value(self, axis: Axis) -> ir.Value:
        return self._known[axis] if axis in self._known else super().value(axis)


def _sizes(op: ir.Operation, layout: Layout, axes: list[Axis]) -> dict[Axis, ir.Value]:
    if op.name != "tensor.expand_shape":
        return {}
    type_ = ir.RankedTensorType(op.result.type)
    dims = [dim for dim in range(type_.rank) if type_.is_dynamic_dim(dim)]
    sizes = dict(zip(dims, list(op.operands)[1:], strict=True))
    groups = zip(layout.parts, _index(layout, axes), strict=True)
    return {
        group[0]: sizes[part.dim]
        for part, group in groups
        if part.pieces == 1 and part.dim in sizes and len(group) == 1
    }


def _index(layout: Layout, axes: list[Axis]) -> Index:
    """The dims of a layout over the factors of the program, which come in the program's order."""
    rest = iter(axes)
    groups: dict[tuple[int, int], Group] = {}
    for part in sorted(layout.parts, key=lambda part: (part.dim, part.piece)):
        groups[part.dim, part.piece] = tuple(next(rest) for _ in wide(part.factors))
    return tuple(groups[part.dim, part.piece] for part in layout.parts)

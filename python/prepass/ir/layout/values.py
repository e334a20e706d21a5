# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors brought from the program's layout into another, and back."""

from __future__ import annotations

from collections.abc import Mapping

from iree.compiler import ir
from iree.compiler.dialects import arith

from prepass.ir.axes import Axis, Index
from prepass.ir.emit import Extents, dim_size, index_constant, relayout
from prepass.ir.expressions import Read, element_type
from prepass.ir.layout.layouts import Layout
from prepass.ir.match import defining_op
from prepass.ir.sums import build_like


def laid_out_type(layout: Layout, element: ir.Type) -> ir.RankedTensorType:
    """The type of a tensor in a layout."""
    dynamic = ir.ShapedType.get_dynamic_size()
    return ir.RankedTensorType.get([dynamic if size is None else size for size in layout.shape], element)


def to_layout(value: ir.Value, layout: Layout) -> ir.Value:
    """`value`, as the program has it, in a layout; a transpose where elements move."""
    program, laid_out = _indices(layout)
    return relayout(value, program, laid_out, Extents([Read(value, program)]))


def to_program(value: ir.Value, layout: Layout) -> ir.Value:
    """`value`, which is in a layout, as the program has it."""
    program, laid_out = _indices(layout)
    return relayout(value, laid_out, program, Extents([Read(value, laid_out)]))


def reorder_units(value: ir.Value, before: Layout, after: Layout) -> ir.Value:
    """`value` in a layout that has its dims of extent 1 elsewhere."""
    if before == after:
        return value
    axes = {(part.dim, part.piece): Axis(part.extent) for part in before.parts}
    source, target = (tuple((axes[part.dim, part.piece],) for part in layout.parts) for layout in (before, after))
    return relayout(value, source, target, Extents([Read(value, source)]))


def free_value(value: ir.Value, layout: Layout) -> ir.Value:
    """A tensor that `is_free`, made in a layout."""
    op = defining_op(value)
    if op is None:
        raise ValueError("a block argument is not free")
    type_ = laid_out_type(layout, element_type(value))
    if op.name == "arith.constant":
        number = ir.DenseElementsAttr(op.attributes["value"]).get_splat_value()
        return arith.constant(type_, ir.DenseElementsAttr.get_splat(type_, number))
    if op.name == "linalg.fill":
        return build_like(op, [op.operands[0], free_value(op.operands[1], layout)], lambda new: [new[0]])
    return _empty(layout, type_, _dynamic_sizes(value, list(op.operands)))


def _empty(layout: Layout, type_: ir.Type, sizes: Mapping[int, ir.Value]) -> ir.Value:
    dynamic = []
    for part in layout.parts:
        if part.extent is not None:
            continue
        size = sizes[part.dim]
        for other in layout.parts:
            if other.dim == part.dim and other is not part:
                size = arith.divui(size, index_constant(other.extent))
        dynamic.append(size)
    return ir.Operation.create("tensor.empty", [type_], dynamic).result


def program_size(value: ir.Value, layout: Layout, dim: int) -> ir.Value:
    """The size of a dim of the program, from the tensor in its layout."""
    size = None
    for place, part in enumerate(layout.parts):
        if part.dim == dim:
            here = dim_size(value, place)
            size = here if size is None else arith.muli(size, here)
    if size is None:
        raise ValueError(f"no dim {dim}")
    return size


def _dynamic_sizes(value: ir.Value, sizes: list[ir.Value]) -> dict[int, ir.Value]:
    type_ = ir.RankedTensorType(value.type)
    return dict(zip([dim for dim in range(type_.rank) if type_.is_dynamic_dim(dim)], sizes, strict=True))


def _indices(layout: Layout) -> tuple[Index, Index]:
    """The dims of the program and those of a layout, over common axes; a part is an axis."""
    axes = {(part.dim, part.piece): Axis(part.extent) for part in layout.parts}
    ordered = sorted(axes)
    program = tuple(tuple(axes[key] for key in ordered if key[0] == dim) for dim in range(layout.rank))
    return program, tuple((axes[part.dim, part.piece],) for part in layout.parts)

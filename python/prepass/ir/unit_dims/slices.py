# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Slices and concatenations of tensors without their dims of size 1."""

from __future__ import annotations

from collections.abc import Collection

from iree.compiler import ir

from prepass.ir.expressions import tensor_sizes
from prepass.ir.match import NoMatch
from prepass.ir.unit_dims.loops import check_not_in_dispatch
from prepass.ir.unit_dims.views import with_dims, without_dims


def build_slice(op: ir.Operation) -> ir.Value | None:
    """A `tensor.extract_slice` of a tensor without its dims of size 1, or None when it has none."""
    source = tensor_sizes(op.operands[0])
    dims = {dim for dim, size in enumerate(source) if size == 1}
    if not dims:
        return None
    check_not_in_dispatch(op)
    offsets, sizes, strides = (list(ir.DenseI64ArrayAttr(op.attributes[f"static_{n}"])) for n in _PARTS)
    if ir.RankedTensorType(op.result.type).rank != len(source):
        raise NoMatch("the slice has fewer dims than what it is cut from", op)
    if any(offsets[dim] or sizes[dim] != 1 for dim in dims):
        raise NoMatch("where the slice is cut from a dim of size 1 is not known", op)
    kept = [dim for dim in range(len(source)) if dim not in dims]
    attributes = {
        f"static_{name}": ir.DenseI64ArrayAttr.get([values[dim] for dim in kept])
        for name, values in zip(_PARTS, (offsets, sizes, strides), strict=True)
    }
    attributes["operandSegmentSizes"] = op.attributes["operandSegmentSizes"]
    operands = [without_dims(op.operands[0], dims), *list(op.operands)[1:]]
    return with_dims(_create(op, operands, attributes, dims), dims)


def build_concat(op: ir.Operation) -> ir.Value | None:
    """A `tensor.concat` of tensors without the dims of size 1 that all of them have, or None when there are none."""
    along = ir.IntegerAttr(op.attributes["dim"]).value
    shape = tensor_sizes(op.result)
    dims = {dim for dim, size in enumerate(shape) if size == 1 and dim != along}
    if not dims or any(tensor_sizes(value)[dim] != 1 for value in op.operands for dim in dims):
        return None
    check_not_in_dispatch(op)
    before = sum(1 for dim in dims if dim < along)
    attributes = {"dim": ir.IntegerAttr.get(op.attributes["dim"].type, along - before)}
    return with_dims(_create(op, [without_dims(value, dims) for value in op.operands], attributes, dims), dims)


_PARTS = ("offsets", "sizes", "strides")


def _create(
    op: ir.Operation, operands: list[ir.Value], attributes: dict[str, ir.Attribute], dims: Collection[int]
) -> ir.Value:
    type_ = ir.RankedTensorType(op.result.type)
    shape = [size for dim, size in enumerate(type_.shape) if dim not in dims]
    smaller = ir.RankedTensorType.get(shape, type_.element_type)
    return ir.Operation.create(op.name, [smaller], operands, attributes).result

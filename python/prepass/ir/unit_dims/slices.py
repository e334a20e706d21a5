# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Slices and concatenations of tensors without their dims of size 1."""

from __future__ import annotations

from collections.abc import Collection

from iree.compiler import ir

from prepass.ir.expressions import tensor_sizes
from prepass.ir.match import NoMatch
from prepass.ir.unit_dims.loops import check_not_in_dispatch
from prepass.ir.unit_dims.views import with_dims, without_dims

_PARTS = ("offsets", "sizes", "strides")


def match_slice(op: ir.Operation) -> set[int]:
    """The dims of size 1 that a `tensor.extract_slice` can lose; raises NoMatch when they must stay."""
    source = tensor_sizes(op.operands[0])
    dims = {dim for dim, size in enumerate(source) if size == 1}
    if not dims:
        return dims
    check_not_in_dispatch(op)
    if ir.RankedTensorType(op.result.type).rank != len(source):
        raise NoMatch("the slice has fewer dims than what it is cut from", op)
    offsets, sizes, _ = _parts(op)
    if any(offsets[dim] or sizes[dim] != 1 for dim in dims):
        raise NoMatch("where the slice is cut from a dim of size 1 is not known", op)
    return dims


def build_slice(op: ir.Operation, dims: Collection[int]) -> ir.Value:
    """A `tensor.extract_slice` of a tensor without `dims`, given its type, at the current insertion point."""
    attributes: dict[str, ir.Attribute] = {"operandSegmentSizes": op.attributes["operandSegmentSizes"]}
    for name, values in zip(_PARTS, _parts(op), strict=True):
        kept = [value for dim, value in enumerate(values) if dim not in dims]
        attributes[f"static_{name}"] = ir.DenseI64ArrayAttr.get(kept)
    operands = [without_dims(op.operands[0], dims), *list(op.operands)[1:]]
    return with_dims(_create(op, operands, attributes, dims), dims)


def match_concat(op: ir.Operation) -> set[int]:
    """The dims of size 1 that all tensors of a `tensor.concat` have; raises NoMatch when they must stay."""
    along = ir.IntegerAttr(op.attributes["dim"]).value
    dims = {dim for dim, size in enumerate(tensor_sizes(op.result)) if size == 1 and dim != along}
    if not dims or any(tensor_sizes(value)[dim] != 1 for value in op.operands for dim in dims):
        return set()
    check_not_in_dispatch(op)
    return dims


def build_concat(op: ir.Operation, dims: Collection[int]) -> ir.Value:
    """A `tensor.concat` of tensors without `dims`, given its type, at the current insertion point."""
    along = ir.IntegerAttr(op.attributes["dim"]).value
    before = sum(1 for dim in dims if dim < along)
    attributes = {"dim": ir.IntegerAttr.get(op.attributes["dim"].type, along - before)}
    return with_dims(_create(op, [without_dims(value, dims) for value in op.operands], attributes, dims), dims)


def _parts(op: ir.Operation) -> list[list[int]]:
    """Offsets, sizes and strides of each dim, with a mark for those that are not known."""
    return [list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in _PARTS]


def _create(
    op: ir.Operation, operands: list[ir.Value], attributes: dict[str, ir.Attribute], dims: Collection[int]
) -> ir.Value:
    type_ = ir.RankedTensorType(op.result.type)
    shape = [size for dim, size in enumerate(type_.shape) if dim not in dims]
    smaller = ir.RankedTensorType.get(shape, type_.element_type)
    return ir.Operation.create(op.name, [smaller], operands, attributes).result

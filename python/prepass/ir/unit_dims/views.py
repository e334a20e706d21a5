# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors without some of their dims of size 1, and with them again."""

from __future__ import annotations

from collections.abc import Collection

from iree.compiler import ir

from prepass.ir.axes import Axis, Index
from prepass.ir.emit import Extents, relayout
from prepass.ir.expressions import Read, expand, tensor_sizes
from prepass.ir.match import defining_op
from prepass.ir.sums import build_like

_RESHAPES = ("tensor.expand_shape", "tensor.collapse_shape")


def without_dims(value: ir.Value, dims: Collection[int]) -> ir.Value:
    """`value` without `dims`, which have size 1, at the current insertion point.

    A value that reshapes made is read from before them; an empty or filled tensor is made again.
    """
    if not dims:
        return value
    op = defining_op(value)
    if op is not None and op.name in ("tensor.empty", "linalg.fill"):
        return _smaller_init(op, dims)
    index = tuple((Axis(size),) for size in tensor_sizes(value))
    target = tuple(group for dim, group in enumerate(index) if dim not in dims)
    source = _before_reshapes(Read(value, index))
    return relayout(source.value, source.index, target, Extents([Read(value, index), source]))


def with_dims(value: ir.Value, dims: Collection[int]) -> ir.Value:
    """`value` with dims of size 1 at the places `dims` of the result."""
    if not dims:
        return value
    index = tuple((Axis(size),) for size in tensor_sizes(value))
    groups = iter(index)
    target: Index = tuple(() if dim in dims else next(groups) for dim in range(len(index) + len(dims)))
    return relayout(value, index, target, Extents([Read(value, index)]))


def _before_reshapes(read: Read) -> Read:
    while (op := defining_op(read.value)) is not None and op.name in _RESHAPES:
        source = expand(read)
        if not isinstance(source, Read):
            break
        read = source
    return read


def _smaller_init(op: ir.Operation, dims: Collection[int]) -> ir.Value:
    type_ = ir.RankedTensorType(op.result.type)
    shape = [size for dim, size in enumerate(type_.shape) if dim not in dims]
    smaller = ir.RankedTensorType.get(shape, type_.element_type)
    if op.name == "tensor.empty":
        return ir.Operation.create("tensor.empty", [smaller], list(op.operands)).result
    init = without_dims(op.operands[1], dims)
    return build_like(op, [op.operands[0], init], lambda arguments: [arguments[0]])

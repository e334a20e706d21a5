# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of tensor dims, and how much one is larger than another."""

from __future__ import annotations

from iree.compiler import ir

from prepass.ir.expressions import tensor_sizes
from prepass.ir.match import defining_op
from prepass.ir.ranges import constant_integer

Size = ir.Value | int
_Root = tuple[object, ...]


def dim_size(value: ir.Value, dim: int) -> Size | None:
    """The size of a dim of a tensor; None when it is dynamic and not seen where the tensor is made."""
    size = tensor_sizes(value)[dim]
    if size is not None:
        return size
    op = defining_op(value)
    while op is not None and op.name in ("linalg.fill", "tensor.insert_slice"):
        op = defining_op(op.operands[1])
    if op is None or op.name != "tensor.empty":
        return None
    position = sum(1 for size in tensor_sizes(op.results[0])[:dim] if size is None)
    return op.operands[position]


def excess(larger: Size | None, smaller: Size) -> int | None:
    """How much one size is more than another, where that does not depend on dynamic sizes."""
    if larger is None:
        return None
    (root, more), (other, less) = _linear(larger), _linear(smaller)
    return more - less if root == other else None


def _linear(size: Size) -> tuple[_Root, int]:
    """A size as something dynamic plus a number."""
    if isinstance(size, int):
        return (), size
    number = constant_integer(size)
    if number is not None:
        return (), number
    op = defining_op(size)
    if op is None:
        return (size,), 0
    if op.name in ("arith.addi", "arith.subi"):
        left, right = (_linear(operand) for operand in op.operands)
        if right[0] == ():
            return left[0], left[1] + (right[1] if op.name == "arith.addi" else -right[1])
        if left[0] == () and op.name == "arith.addi":
            return right[0], left[1] + right[1]
    if op.name == "affine.apply" and len(op.operands) == 1:
        return _linear_map(op, size)
    if op.name == "tensor.dim" and (dim := constant_integer(op.operands[1])) is not None:
        static = tensor_sizes(op.operands[0])[dim]
        return ((), static) if static is not None else ((op.operands[0], dim), 0)
    return (size,), 0


def _linear_map(op: ir.Operation, size: ir.Value) -> tuple[_Root, int]:
    (expr,) = ir.AffineMapAttr(op.attributes["map"]).value.results
    if isinstance(expr, (ir.AffineDimExpr, ir.AffineSymbolExpr)):
        return _linear(op.operands[0])
    if isinstance(expr, ir.AffineAddExpr) and isinstance(expr.rhs, ir.AffineConstantExpr):
        if isinstance(expr.lhs, (ir.AffineDimExpr, ir.AffineSymbolExpr)):
            root, number = _linear(op.operands[0])
            return root, number + expr.rhs.value
    return (size,), 0

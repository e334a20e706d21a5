# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Building `iree_linalg_ext.attention`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg

from prepass.ir.attention.masks import to_f32
from prepass.ir.attention.match import Attention
from prepass.ir.attention.scores import Factor
from prepass.ir.axes import Group, Index, static_extent
from prepass.ir.emit import Extents, constant, emit_scalar, emit_tensor, empty, generic, relayout
from prepass.ir.expressions import (
    Apply,
    Argument,
    Constant,
    Expr,
    Read,
    Scalar,
    as_constant,
    axes_of,
    element_type,
    type_of,
)
from prepass.ir.targets.attention_shape import AttentionShape

OP_NAME = "iree_linalg_ext.attention"
_LOG2_E = math.log2(math.e)


def attention_shape(attention: Attention) -> AttentionShape:
    """The extents that choose a lowering config."""
    loops = attention.loops
    *groups, queries = loops.m
    _, value = attention.value
    return AttentionShape(
        batch=tuple(static_extent(loop) for loop in (*loops.batch, *groups)),
        m=static_extent(queries),
        n=static_extent(loops.n),
        k1=static_extent(loops.k1),
        k2=static_extent(loops.k2),
        element_type=str(attention.element_type),
        value_transposed=value.index(loops.n) < value.index(loops.k2),
        masked=attention.mask is not None,
    )


def build_attention(attention: Attention, result_type: ir.RankedTensorType) -> ir.Value:
    """Build the op at the current insertion point; returns a value of `result_type`, the program's layout."""
    extents = attention.extents
    operands = [attention.query, attention.key, attention.value]
    values = [_operand(source.read, dims, attention.element_type, extents) for source, dims in operands]
    indices: list[Index] = [dims for _, dims in operands] + [()]
    values.append(emit_scale(attention.scale))
    if attention.mask is not None:
        mask_index = attention.loops.mask_index(axes_of(attention.mask))
        values.append(emit_tensor(attention.mask, mask_index, ir.F32Type.get(), extents))
        indices.append(mask_index)
    result_dims = attention.loops.result_dims(attention.result)
    indices.append(result_dims)
    init = empty(result_dims, result_type.element_type, extents)
    maps = [ir.AffineMapAttr.get(_map(attention.loops.all, index)) for index in indices]
    op = ir.Operation.create(
        OP_NAME,
        [init.type],
        [*values, init],
        {"indexing_maps": ir.ArrayAttr.get(maps)},
        regions=1,
    )
    _build_region(op, attention.function)
    result = op.result
    if attention.zero_if_masked:
        result = _zero_masked_rows(result, result_dims, values[-1], indices[-2], attention.loops.k2, extents)
    return relayout(result, result_dims, attention.result.index, extents)


def emit_scale(factors: tuple[Factor, ...]) -> ir.Value:
    """The product of scale factors, an f32 value."""
    known = 1.0
    runtime: list[Factor] = []
    for factor in factors:
        number = as_constant(factor.expr)
        if number is None or (factor.inverse and number == 0):
            runtime.append(factor)
        else:
            known = known / number if factor.inverse else known * number
    scale = constant(known, ir.F32Type.get())
    for factor in runtime:
        value = emit_scalar(to_f32(factor.expr))
        scale = arith.divf(scale, value) if factor.inverse else arith.mulf(scale, value)
    return scale


def _operand(read: Read, dims: Index, element: ir.Type, extents: Extents) -> ir.Value:
    if type_of(read) == element:
        return relayout(read.value, read.index, dims, extents)
    return emit_tensor(Apply("arith.extf", (read,), element), dims, element, extents)


def _zero_masked_rows(
    result: ir.Value, dims: Index, mask: ir.Value, mask_index: Index, keys: Group, extents: Extents
) -> ir.Value:
    """`result` with the rows set to 0 that `mask` makes -inf for every key."""
    f32 = ir.F32Type.get()
    rows = tuple(loop for loop in mask_index if loop != keys)
    lowest = constant(-math.inf, f32)
    init = linalg.fill(lowest, outs=[empty(rows, f32, extents)])
    maps = [_map(mask_index, mask_index), _map(mask_index, rows)]
    largest = generic([mask], init, maps, lambda arguments: arith.maximumf(*arguments))

    def zero_if_masked(arguments: Sequence[ir.Value]) -> ir.Value:
        row, value, _ = arguments
        is_masked = arith.cmpf(arith.CmpFPredicate.OEQ, row, lowest)
        return arith.select(is_masked, constant(0.0, value.type), value)

    maps = [_map(dims, rows), _map(dims, dims), _map(dims, dims)]
    return generic([largest, result], empty(dims, element_type(result), extents), maps, zero_if_masked)


def _map(loops: Index, index: Index) -> ir.AffineMap:
    return ir.AffineMap.get(len(loops), 0, [ir.AffineExpr.get_dim(loops.index(loop)) for loop in index])


def _build_region(op: ir.Operation, function: Expr | None) -> None:
    """The op's region. Its argument is the score times log2(e), and so must its result be."""
    f32 = ir.F32Type.get()
    block = op.regions[0].blocks.append(f32, arg_locs=[op.location])
    with ir.InsertionPoint(block):
        score = block.arguments[0]
        if function is not None:
            score = arith.mulf(score, constant(1 / _LOG2_E, f32))
            score = emit_scalar(_in_f32(function, score))
            score = arith.mulf(score, constant(_LOG2_E, f32))
        ir.Operation.create("iree_linalg_ext.yield", [], [score])


def _in_f32(expr: Expr, argument: ir.Value) -> Expr:
    f32 = ir.F32Type.get()
    if isinstance(expr, Argument):
        return Scalar(argument)
    if isinstance(expr, Apply):
        return Apply(expr.name, tuple(_in_f32(operand, argument) for operand in expr.operands), f32)
    number = as_constant(expr)
    if number is None:
        raise ValueError("the function of the scores is not over constants")
    return Constant(float(number), f32)

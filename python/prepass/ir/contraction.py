# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions and contractions, named or generic, read as expressions."""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.axes import Axis, Group, split_group
from prepass.ir.expressions import (
    FLOAT_CASTS,
    Accumulator,
    Apply,
    Expr,
    Read,
    body_expr,
    head,
    loop_groups,
    loop_sizes,
    tensor_sizes,
)
from prepass.ir.match import defining_op


@dataclass(frozen=True)
class Reduction:
    """`combiner` over `axes` of `term`, starting from `init`.

    Attributes:
      op: The linalg op.
      combiner: The arith op that accumulates: "arith.addf", "arith.maximumf", …
    """

    op: ir.Operation
    combiner: str
    term: Expr
    axes: Group
    init: Expr


@dataclass(frozen=True)
class Contraction:
    """The sum over `axes` of `lhs` times `rhs`, starting from `init`."""

    op: ir.Operation
    lhs: Expr
    rhs: Expr
    axes: Group
    init: Expr


def read_reduction(read: Read, axes: Group | None = None) -> Reduction | None:
    """The reduction that computes `read`, or None.

    `axes` name the reduced positions, so that the terms of several reductions
    over the same positions compare equal; fresh axes are made by default.
    """
    op = defining_op(read.value)
    loops = loop_groups(op, read) if op is not None else None
    if op is None or loops is None or None not in loops:
        return None
    sizes = loop_sizes(op)
    reduced = [number for number, group in enumerate(loops) if group is None]
    if axes is None:
        axes = tuple(Axis(sizes[number]) for number in reduced)
    groups = split_group(axes, [sizes[number] for number in reduced])
    if groups is None:
        return None
    positions = dict(zip(reduced, groups, strict=True))
    points = [positions[number] if group is None else group for number, group in enumerate(loops)]
    number = ir.OpResult(read.value).result_number
    combined = _strip_casts(body_expr(op, number, points, reduction=True))
    if not isinstance(combined, Apply) or len(combined.operands) != 2:
        return None
    first, second = (_strip_casts(operand) for operand in combined.operands)
    if isinstance(first, Accumulator) == isinstance(second, Accumulator):
        return None
    term = combined.operands[1] if isinstance(first, Accumulator) else combined.operands[0]
    init = op.operands[len(op.operands) - len(op.results) + number]
    return Reduction(op, combined.name, term, axes, Read(init, read.index))


def read_contraction(read: Read) -> Contraction | None:
    """The contraction that computes `read`, or None."""
    reduction = read_reduction(read)
    if reduction is None or reduction.combiner != "arith.addf":
        return None
    product = head(reduction.term)
    if not isinstance(product, Apply) or product.name != "arith.mulf":
        return None
    lhs, rhs = product.operands
    return Contraction(reduction.op, lhs, rhs, reduction.axes, reduction.init)


def contraction_result(op: ir.Operation) -> tuple[Read, Contraction] | None:
    """The first result of `op` read at fresh axes, and the contraction that computes it, or None."""
    if not op.name.startswith("linalg.") or len(op.results) != 1 or not len(op.regions):
        return None
    if not isinstance(op.results[0].type, ir.RankedTensorType):
        return None
    index = tuple((Axis(size),) for size in tensor_sizes(op.results[0]))
    read = Read(op.results[0], index)
    contraction = read_contraction(read)
    return None if contraction is None else (read, contraction)


def _strip_casts(expr: Expr | None) -> Expr | None:
    while isinstance(expr, Apply) and expr.name in FLOAT_CASTS:
        expr = expr.operands[0]
    return expr

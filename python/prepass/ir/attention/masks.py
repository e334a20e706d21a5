# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masks as one f32 expression that is added to the scores.

Attention computes in f32 and multiplies the mask by log2(e), which overflows
for the most negative f32 and bf16 numbers. A row whose keys are all masked by
such a number is uniform in the program but would become NaN. `FLOOR` stands in
for them: it is so far below any score that a masked key still weighs exactly 0
beside one that is not, that score + FLOOR is FLOOR, and that many masks can be
added without overflow. -inf stays -inf: a row of it is NaN, as it was.
"""

from __future__ import annotations

import math

from iree.compiler import ir

from prepass.ir.expressions import Apply, Constant, Expr, as_constant, head, type_of, without_broadcasts

FLOOR = -1e37
_OEQ = 1
_OLE = 5
_LOWEST_F16 = -65504.0


def is_masking_fill(value: float, limit: float) -> bool:
    """Whether scores replaced by `value` take no part in the softmax."""
    return value == -math.inf or value <= limit


def add_masks(first: Expr | None, second: Expr | None) -> Expr | None:
    """The sum of two masks, where None is no mask."""
    if first is None or second is None:
        return second if first is None else first
    return Apply("arith.addf", (first, second), type_of(first))


def masked_fill(condition: Expr, mask: Expr | None, fill: float, *, keep_where: bool) -> Expr | None:
    """`mask` where `condition` is `keep_where`, elsewhere what replaces the score by `fill`."""
    f32 = ir.F32Type.get()
    kept = Constant(0.0, f32) if mask is None else mask
    filled = Constant(-math.inf if fill == -math.inf else FLOOR, f32)
    constant = as_constant(condition)
    if constant is not None:
        return mask if bool(constant) == keep_where else filled
    condition = without_broadcasts(condition)
    branches = (kept, filled) if keep_where else (filled, kept)
    return Apply("arith.select", (condition, *branches), f32)


def sanitize(term: Expr) -> Expr | None:
    """`term` in f32 with finite values that mean "masked" replaced by FLOOR; None when it adds nothing."""
    constant = as_constant(term)
    if constant is not None:
        # A finite constant shifts every score, which softmax does not see.
        return None if math.isfinite(constant) and constant > FLOOR else _sanitize(term)
    return _sanitize(term)


def _sanitize(term: Expr) -> Expr:
    f32 = ir.F32Type.get()
    lowest = _LOWEST_F16 if isinstance(type_of(term), ir.F16Type) else FLOOR
    constant = as_constant(term)
    if constant is not None:
        return Constant(FLOOR if -math.inf < constant <= lowest else float(constant), f32)
    expr = head(term)
    if isinstance(expr, Apply) and expr.name == "arith.select":
        condition, first, second = expr.operands
        return Apply("arith.select", (without_broadcasts(condition), _sanitize(first), _sanitize(second)), f32)
    term = without_broadcasts(term)
    value = to_f32(term)
    low = _compare(_OLE, value, lowest)
    finite = Apply("arith.xori", (_compare(_OEQ, value, -math.inf), _true()), ir.IntegerType.get_signless(1))
    masked = Apply("arith.andi", (low, finite), ir.IntegerType.get_signless(1))
    return Apply("arith.select", (masked, Constant(FLOOR, f32), value), f32)


def to_f32(expr: Expr) -> Expr:
    """A float expression as f32."""
    f32 = ir.F32Type.get()
    source = type_of(expr)
    if source == f32:
        return expr
    if isinstance(expr, Constant):
        return Constant(float(expr.value), f32)
    return Apply("arith.truncf" if isinstance(source, ir.F64Type) else "arith.extf", (expr,), f32)


def _compare(predicate: int, value: Expr, limit: float) -> Apply:
    attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
    operands = (value, Constant(limit, type_of(value)))
    return Apply("arith.cmpf", operands, ir.IntegerType.get_signless(1), (("predicate", attribute),))


def _true() -> Constant:
    return Constant(1, ir.IntegerType.get_signless(1))

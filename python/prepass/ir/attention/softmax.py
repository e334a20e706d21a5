# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recognizing softmax in an expression, whatever ops compute it.

softmax over k of S is exp(S - c) / Σk exp(S - c). It does not depend on c as
long as c does not vary along k, so the maximum itself need not be recognized:
torch's argmax, ONNX's reduce and JAX's guarded maximum are all some c.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import arith

from prepass.ir.axes import Axis, Group, leaves
from prepass.ir.contraction import read_reduction
from prepass.ir.expressions import (
    Apply,
    Expr,
    Read,
    as_constant,
    axes_of,
    descend,
    head,
    same,
    tensor_sizes,
)
from prepass.ir.match import NoMatch, defining_op

_PRODUCT_DEPTH = 4
_ACTIVATIONS = ("math.exp", "math.erf", "math.tanh")


@dataclass(frozen=True)
class Softmax:
    """The softmax of `scores`; `op` is the last op that computes it.

    Attributes:
      zero_if_masked: Whether rows whose scores are all -inf are 0, not NaN.
    """

    scores: Expr
    op: ir.Operation
    zero_if_masked: bool = False


def match_softmax(expr: Expr, keys: Group, root: ir.Operation, depth: int = _PRODUCT_DEPTH) -> Softmax | None:
    """The softmax over `keys` that `expr` is, up to casts and reshapes.

    None when `expr` has nothing of a softmax, looking through `depth` products.
    Raises NoMatch when it does, but is not one; the contraction that reads it
    is `root`.
    """
    op = _last_op(expr, root)
    expr = head(expr)
    if isinstance(expr, Read):
        return _match_named(expr, keys)
    if not isinstance(expr, Apply):
        return None
    if expr.name == "arith.mulf":
        return _match_product(expr, keys, op, depth)
    if expr.name == "arith.select":
        return _match_guarded(expr, keys, op)
    if expr.name != "arith.divf":
        return None
    numerator, divisor = expr.operands
    return _match_quotient(expr, keys, op) or _match_scaled(numerator, as_constant(divisor), keys, op, depth)


def computes_softmax(op: ir.Operation) -> bool:
    """Whether `op` is the last op of a softmax over any dim."""
    if op.name == "linalg.softmax":
        return True
    if op.name != "linalg.generic" or len(op.results) != 1:
        return False
    if not any(nested.operation.name == "arith.divf" for nested in op.regions[0].blocks[0]):
        return False
    index = tuple((Axis(size),) for size in tensor_sizes(op.results[0]))
    quotient = head(Read(op.results[0], index))
    if not isinstance(quotient, Apply) or quotient.name != "arith.divf":
        return False
    keys = axes_of(quotient.operands[0]) - axes_of(head(quotient.operands[1]))
    try:
        return bool(keys) and _match_quotient(quotient, tuple(keys), op) is not None
    except NoMatch:
        return False


def activation_in(expr: Expr, budget: int = 12) -> str | None:
    """The activation an elementwise expression applies, "math.exp" and so on, looking at `budget` ops; None without."""
    pending = [expr]
    while pending and budget:
        budget -= 1
        expr = head(pending.pop())
        if isinstance(expr, Apply):
            if expr.name in _ACTIVATIONS:
                return expr.name
            pending.extend(expr.operands)
    return None


def _match_named(read: Read, keys: Group) -> Softmax | None:
    op = defining_op(read.value)
    if op is None or op.name != "linalg.softmax":
        return None
    dimension = ir.IntegerAttr(op.attributes["dimension"]).value
    if leaves(read.index[dimension]) != leaves(keys):
        raise NoMatch("the softmax is not over the dim the contraction sums", op)
    return Softmax(Read(op.operands[0], read.index), op)


def _match_product(product: Apply, keys: Group, op: ir.Operation, depth: int) -> Softmax | None:
    for expr, factor in (product.operands, product.operands[::-1]):
        inverse = head(factor)
        if isinstance(inverse, Apply) and inverse.name == "arith.divf" and as_constant(inverse.operands[0]) == 1:
            return _match_quotient(Apply("arith.divf", (expr, inverse.operands[1]), product.type), keys, op)
        softmax = _match_scaled(expr, as_constant(factor), keys, op, depth)
        if softmax is not None:
            return softmax
    return None


def _match_scaled(expr: Expr, factor: float | None, keys: Group, op: ir.Operation, depth: int) -> Softmax | None:
    softmax = match_softmax(expr, keys, op, depth - 1) if depth else None
    if softmax is not None and factor != 1:
        raise NoMatch("the probabilities are multiplied before they weigh values, as live dropout does", op)
    return softmax


def _match_quotient(quotient: Apply, keys: Group, op: ir.Operation) -> Softmax | None:
    numerator, denominator = quotient.operands
    exponential = head(numerator)
    divisor = head(denominator)
    if not isinstance(exponential, Apply) or exponential.name != "math.exp" or not isinstance(divisor, Read):
        return None
    if axes_of(divisor) & set(leaves(keys)) and read_reduction(divisor) is not None:
        raise NoMatch("the softmax is not over the dim the contraction sums", op)
    reduction = read_reduction(divisor, keys)
    if reduction is None or reduction.combiner != "arith.addf":
        return None
    if not same(reduction.term, exponential) or as_constant(reduction.init) != 0:
        raise NoMatch("the divisor is not the sum of the exponentials it divides", op)
    return Softmax(_without_shift(exponential.operands[0], keys), op)


def _match_guarded(select: Apply, keys: Group, op: ir.Operation) -> Softmax | None:
    """torch's `_safe_softmax`: 0 where all scores are -inf."""
    condition, guarded, expr = select.operands
    softmax = match_softmax(expr, keys, op)
    if softmax is None:
        return None
    row = head(condition)
    reduction = read_reduction(row, keys) if isinstance(row, Read) else None
    if reduction is not None and reduction.combiner == "arith.andi" and as_constant(guarded) == 0:
        if _is_minus_infinity(head(reduction.term), softmax.scores):
            return Softmax(softmax.scores, op, zero_if_masked=True)
    raise NoMatch("a select replaces probabilities on a condition that is not understood", op)


def _is_minus_infinity(condition: Expr, scores: Expr) -> bool:
    """Whether `condition` is that `scores` equal -inf."""
    if not isinstance(condition, Apply) or condition.name != "arith.cmpf":
        return False
    ordered_equal = ir.IntegerAttr(dict(condition.attributes)["predicate"]).value == arith.CmpFPredicate.OEQ
    value, limit = condition.operands
    return ordered_equal and as_constant(limit) == -math.inf and same(value, scores)


def _without_shift(exponent: Expr, keys: Group) -> Expr:
    difference = head(exponent)
    if isinstance(difference, Apply) and difference.name == "arith.subf":
        scores, shift = difference.operands
        if not axes_of(shift) & set(leaves(keys)):
            return scores
    return exponent


def _last_op(expr: Expr, root: ir.Operation) -> ir.Operation:
    """The op that computes `expr`, below casts and reshapes."""
    op = root
    for part in descend(expr):
        if isinstance(part, Read):
            op = defining_op(part.value) or op
    return op

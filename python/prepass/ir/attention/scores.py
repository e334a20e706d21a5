# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recognizing attention scores: a function of a scaled contraction of Q and K, plus masks.

Scores are read from the softmax down to the contraction, and built back up as

    scores = function(scale · Σ Q K) + mask

which is what `iree_linalg_ext.attention` computes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from iree.compiler import ir

from prepass.ir.attention.masks import FLOOR, add_masks, is_masking_fill, masked_fill, sanitize
from prepass.ir.axes import Group, leaves
from prepass.ir.contraction import Contraction, read_contraction
from prepass.ir.expressions import (
    FLOAT_CASTS,
    Apply,
    Argument,
    Constant,
    Expr,
    Read,
    as_constant,
    axes_of,
    expand,
    type_of,
    without_broadcasts,
)
from prepass.ir.match import NoMatch, defining_op

# A mask can be scaled by these and still mask out what it did.
_MASK_SCALES = (1e-3, 10.0)
_POINTWISE = ("math.tanh", "math.exp", "math.absf")


@dataclass(frozen=True)
class Factor:
    """A uniform factor of the scores, or a divisor."""

    expr: Expr
    inverse: bool = False

    @property
    def name(self) -> str:
        """The op that applies it."""
        return "arith.divf" if self.inverse else "arith.mulf"


@dataclass(frozen=True)
class Scores:
    """function(scale · contraction) + mask.

    Attributes:
      contraction: Σ Q K.
      scale: The product of these factors.
      function: Applied to the scaled contraction, or None for the identity.
        An expression in which `Argument` stands for it.
      mask: Added last, an f32 expression, or None.
    """

    contraction: Contraction
    scale: tuple[Factor, ...] = ()
    function: Expr | None = None
    mask: Expr | None = None


class NotScores(NoMatch):
    """An expression with no contraction of Q and K in it."""


def match_scores(expr: Expr, keys: Group, fill_limit: float, root: ir.Operation) -> Scores:
    """Read `expr` as scores over `keys`.

    Finite `select` fills at or below `fill_limit` count as masking. Raises
    NoMatch when the expression is no such function, at the op that makes it so.
    """
    return _ScoresMatcher(keys, fill_limit).match(expr, root)


@dataclass
class _ScoresMatcher:
    keys: Group
    fill_limit: float
    budget: int = 64

    def match(self, expr: Expr, op: ir.Operation) -> Scores:
        self.budget -= 1
        while self.budget > 0:
            if isinstance(expr, Apply) and expr.name in FLOAT_CASTS:
                expr = expr.operands[0]
            elif isinstance(expr, Read):
                op = defining_op(expr.value) or op
                contraction = self._contraction(expr)
                if contraction is not None:
                    return self._add(Scores(contraction), contraction.init)
                expanded = expand(expr)
                if expanded is None:
                    break
                expr = expanded
            elif isinstance(expr, Apply):
                return self._match_op(expr, op)
            else:
                break
        raise NotScores("the softmax is not over scores: no contraction of Q and K leads to it", op)

    def _contraction(self, read: Read) -> Contraction | None:
        contraction = read_contraction(read)
        if contraction is None:
            return None
        keys, lhs, rhs = set(leaves(self.keys)), axes_of(contraction.lhs), axes_of(contraction.rhs)
        summed = set(leaves(contraction.axes))
        if not summed <= lhs & rhs or not keys <= lhs | rhs or keys & lhs & rhs:
            return None
        if keys and keys <= lhs:
            return replace(contraction, lhs=contraction.rhs, rhs=contraction.lhs)
        return contraction if keys <= rhs else None

    def _match_op(self, expr: Apply, op: ir.Operation) -> Scores:
        match expr.name:
            case "arith.addf":
                scores, other, _ = self._match_one_of(expr.operands, op)
                return self._add(scores, other)
            case "arith.subf":
                scores, other, first = self._match_one_of(expr.operands, op)
                if not first:
                    scores = self._multiply(scores, Factor(Constant(-1.0, expr.type)), op)
                    return self._add(scores, other)
                return self._add(scores, Apply("arith.negf", (other,), type_of(other)))
            case "arith.mulf":
                scores, other, _ = self._match_one_of(expr.operands, op)
                return self._multiply(scores, Factor(other), op)
            case "arith.divf":
                scores = self.match(expr.operands[0], op)
                return self._multiply(scores, Factor(expr.operands[1], inverse=True), op)
            case "arith.negf":
                return self._multiply(self.match(expr.operands[0], op), Factor(Constant(-1.0, expr.type)), op)
            case "arith.select":
                return self._select(expr, op)
            case "arith.maximumf" | "arith.maxnumf":
                return self._clamp(expr, op)
        if expr.name in _POINTWISE:
            scores = self.match(expr.operands[0], op)
            if scores.mask is not None:
                raise NoMatch(f"{expr.name} is applied to masked scores", op)
            return replace(scores, function=Apply(expr.name, (_function_of(scores),), expr.type))
        raise NotScores(f"{expr.name} is not understood as part of attention scores", op)

    def _match_one_of(self, operands: tuple[Expr, ...], op: ir.Operation) -> tuple[Scores, Expr, bool]:
        """The operand that is scores, the other operand, and whether the scores come first."""
        first, second = operands
        if len(axes_of(first)) < len(axes_of(second)):
            scores, other, swapped = self._match_one_of((second, first), op)
            return scores, other, not swapped
        try:
            return self.match(first, op), second, True
        except NotScores as miss:
            if as_constant(second) is not None:
                raise
            try:
                return self.match(second, op), first, False
            except NotScores:
                raise miss from None

    def _add(self, scores: Scores, term: Expr) -> Scores:
        return replace(scores, mask=add_masks(scores.mask, sanitize(term)))

    def _multiply(self, scores: Scores, factor: Factor, op: ir.Operation) -> Scores:
        factor = Factor(without_broadcasts(factor.expr), factor.inverse)
        if axes_of(factor.expr):
            raise NoMatch("the scores are scaled by a tensor, not by one number", op)
        if scores.mask is not None:
            scores = replace(scores, mask=self._scaled_mask(scores.mask, factor, op))
        if scores.function is None:
            return replace(scores, scale=(*scores.scale, factor))
        if as_constant(factor.expr) is None:
            raise NoMatch("the function applied to the scores depends on a runtime value", op)
        return replace(scores, function=Apply(factor.name, (scores.function, factor.expr), type_of(factor.expr)))

    def _scaled_mask(self, mask: Expr, factor: Factor, op: ir.Operation) -> Expr:
        number = as_constant(factor.expr)
        magnitude = 0.0 if not number else 1 / number if factor.inverse else number
        if not _MASK_SCALES[0] <= magnitude <= _MASK_SCALES[1]:
            raise NoMatch("masked scores are scaled by a number that is not known, or not of the order of 1", op)
        return Apply(factor.name, (mask, Constant(float(number or 0), type_of(mask))), type_of(mask))

    def _select(self, expr: Apply, op: ir.Operation) -> Scores:
        condition, *branches = expr.operands
        scores, fill, first = self._match_one_of(tuple(branches), op)
        value = as_constant(fill)
        if value is None:
            raise NoMatch("masked scores are replaced by values that are not one constant", op)
        if not is_masking_fill(value, self.fill_limit):
            raise NoMatch(f"masked scores are replaced by {value:g}, which does not mask them out", op)
        return replace(scores, mask=masked_fill(condition, scores.mask, float(value), keep_where=first))

    def _clamp(self, expr: Apply, op: ir.Operation) -> Scores:
        scores, floor, _ = self._match_one_of(expr.operands, op)
        value = as_constant(floor)
        if value is None or value > -1e30:
            raise NoMatch("the scores are clamped", op)
        if scores.mask is None:
            return scores
        f32 = type_of(scores.mask)
        return replace(scores, mask=Apply(expr.name, (scores.mask, Constant(FLOOR, f32)), f32))


def _function_of(scores: Scores) -> Expr:
    return Argument() if scores.function is None else scores.function

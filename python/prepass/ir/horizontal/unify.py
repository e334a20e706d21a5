# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One expression in the place of several alike, as of one bias after each of several contractions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from prepass.ir.expressions import Apply, Constant, Expr, Read, Scalar, type_of
from prepass.ir.horizontal.region import Output
from prepass.ir.match import NoMatch

Leaf = Read | Constant

# What leaves every number as it is: -0 does so for 0 and for -0.
_NEUTRAL = {"arith.addf": -0.0, "arith.mulf": 1.0}


def unify(outputs: Sequence[Output], make: Callable[[Sequence[Leaf]], object]) -> Expr:
    """The expression that is each output's, over the first member's result and what `make` makes of other leaves.

    An output without a bias or a factor that another one has gets one that changes nothing. Raises NoMatch when the
    outputs are computed in different ways.
    """
    return _Unification(outputs, make).unify([output.expr for output in outputs])


class _Unification:
    def __init__(self, outputs: Sequence[Output], make: Callable[[Sequence[Leaf]], object]) -> None:
        self._results = [output.members[0].op.results[0] for output in outputs]
        self._first = outputs[0].members[0]
        self._make = make
        self._done: dict[tuple[int, ...], tuple[Sequence[Expr], Expr]] = {}

    def unify(self, exprs: Sequence[Expr]) -> Expr:
        key = tuple(map(id, exprs))
        if key not in self._done:
            self._done[key] = exprs, self._unify(exprs)
        return self._done[key][1]

    def _unify(self, exprs: Sequence[Expr]) -> Expr:
        if all(self._is_result(expr, number) for number, expr in enumerate(exprs)):
            return self._first.result
        first = exprs[0]
        if len(set(map(type_of, exprs))) > 1:
            raise NoMatch("their results are computed in different ways", self._first.op)
        if all(self._is_leaf(expr) for expr in exprs):
            return self._unify_leaves(exprs)
        if all(isinstance(expr, Scalar) and expr == first for expr in exprs):
            return first
        if all(isinstance(expr, Apply) and _alike(expr, first) for expr in exprs):
            operands = zip(*(expr.operands for expr in exprs), strict=True)
            return replace(first, operands=tuple(self.unify(list(operand)) for operand in operands))
        return self._unify_with_neutral(exprs)

    def _unify_leaves(self, leaves: Sequence[Leaf]) -> Expr:
        if all(isinstance(leaf, Constant) and repr(leaf.value) == repr(leaves[0].value) for leaf in leaves):
            return leaves[0]
        return self._make(leaves)

    def _unify_with_neutral(self, exprs: Sequence[Expr]) -> Expr:
        """An op on a leaf that some have and some have not."""
        for name, neutral in _NEUTRAL.items():
            split = [self._split(expr, name) for expr in exprs]
            if not any(split):
                continue
            rest = [found[0] if found else expr for found, expr in zip(split, exprs, strict=True)]
            number = Constant(neutral, type_of(exprs[0]))
            leaves = [found[1] if found else number for found in split]
            return Apply(name, (self.unify(rest), self._unify_leaves(leaves)), type_of(exprs[0]))
        raise NoMatch("their results are computed in different ways", self._first.op)

    def _split(self, expr: Expr, name: str) -> tuple[Expr, Leaf] | None:
        if not isinstance(expr, Apply) or expr.name != name:
            return None
        first, second = expr.operands
        for rest, leaf in ((first, second), (second, first)):
            if self._is_leaf(leaf) and not self._is_leaf(rest):
                return rest, leaf
        return None

    def _is_result(self, expr: Expr, number: int) -> bool:
        return isinstance(expr, Read) and expr.value == self._results[number]

    def _is_leaf(self, expr: Expr) -> bool:
        return isinstance(expr, Constant) or (isinstance(expr, Read) and expr.value not in self._results)


def _alike(a: Apply, b: Apply) -> bool:
    return a.name == b.name and len(a.operands) == len(b.operands) and a.attributes == b.attributes

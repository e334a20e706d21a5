# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tensors a contraction operand can be read from: itself, or what it was transposed, broadcast, cast from."""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.attention.scores import Factor
from prepass.ir.expressions import FLOAT_CASTS, Apply, Expr, Read, axes_of, element_type, expand, without_broadcasts


@dataclass(frozen=True)
class Source:
    """A tensor that holds an operand, up to uniform factors.

    Attributes:
      depth: How many ops lie between it and the contraction.
    """

    read: Read
    factors: tuple[Factor, ...]
    depth: int

    @property
    def element_type(self) -> ir.Type:
        return element_type(self.read.value)


def sources(expr: Expr, *, scaled: bool) -> list[Source]:
    """Every tensor `expr` can be read from, nearest first.

    Reads through reshapes, transposes, broadcasts and casts, and when `scaled`
    through multiplication by uniform factors. A tensor wider than what a cast
    narrows it to is not a source: the narrowing rounds.
    """
    found: list[Source] = []
    factors: tuple[Factor, ...] = ()
    narrowest = 64
    while True:
        if isinstance(expr, Apply) and expr.name in FLOAT_CASTS:
            expr = expr.operands[0]
        elif isinstance(expr, Apply) and scaled and (split := _split_factor(expr)):
            expr, factor = split
            factors = (*factors, factor)
        elif isinstance(expr, Read):
            width = ir.FloatType(element_type(expr.value)).width
            if width <= narrowest:
                narrowest = width
                found.append(Source(expr, factors, len(found)))
            expanded = expand(expr)
            if expanded is None:
                return found
            expr = expanded
        else:
            return found


def _split_factor(expr: Apply) -> tuple[Expr, Factor] | None:
    if expr.name not in ("arith.mulf", "arith.divf"):
        return None
    first, second = expr.operands
    factor = without_broadcasts(second)
    if not axes_of(factor):
        return first, Factor(factor, inverse=expr.name == "arith.divf")
    factor = without_broadcasts(first)
    return None if axes_of(factor) or expr.name == "arith.divf" else (second, Factor(factor))

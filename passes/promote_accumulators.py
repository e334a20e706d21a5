# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accumulate in f32 or i32, and truncate once at the end.

A sum in f16 is infinite beyond 65504, and one in bf16 stops growing at 256 terms of equal size. For gfx942 IREE has no
matrix instructions that accumulate in half precision, and does not compile most contractions and convolutions that do.

Before:

    %fill = linalg.fill ins(%zero : f16) outs(%empty : tensor<64xf16>) -> tensor<64xf16>
    %sum = linalg.generic {... ["parallel", "reduction"]} ins(%x : tensor<64x640xf16>) outs(%fill : tensor<64xf16>) {
    ^bb0(%in: f16, %acc: f16):
      %next = arith.addf %in, %acc : f16
      linalg.yield %next : f16
    } -> tensor<64xf16>
    %mean = linalg.generic ... ins(%sum : tensor<64xf16>) { ... arith.divf %in, %c640 : f16 ... } -> tensor<64xf16>

After:

    %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
    %sum = linalg.generic {... ["parallel", "reduction"]} ins(%x : tensor<64x640xf16>) outs(%fill : tensor<64xf32>) {
    ^bb0(%in: f16, %acc: f32):
      %wide = arith.extf %in : f16 to f32
      %next = arith.addf %wide, %acc : f32
      linalg.yield %next : f32
    } -> tensor<64xf32>
    %wide_mean = linalg.generic ... ins(%sum : tensor<64xf32>) { ... arith.divf %in, %c640 : f32 ... } -> tensor<64xf32>
    %mean = linalg.generic ... ins(%wide_mean : tensor<64xf32>) { ... arith.truncf %in : f32 to f16 ... }

Named ops stay named. The terms of a sum, such as squares, are computed wide too. The sum of the squares of a norm does
not fit f16 even where the variance does, so `carry` says where the end is at which sums of one tensor are truncated:

- `none`: at the sum;
- `statistics`: after elementwise ops that read nothing but sums, as those that make a mean, a variance and its root;
- `norms`: also after those that combine such a statistic with a tensor, as `(x - mean) * rstd`, and after those that
  scale or offset the result along some dims, as the affine part of a norm.

A statistic that was accumulated wide and is truncated too early is carried likewise, as in the GroupNorm of torch.
Division by the number of terms, or multiplication by its reciprocal, is by the number itself, and not by what is left
of it in f16, where 2^18 is infinite. docs/precision.md has the measurements.

Left alone when

- it accumulates in another type than those of `types`, as when it is wide already;
- it is of a kind that `kinds` does not name;
- it does not add: maxima, minima and products;
- it adds nothing to its result, or uses the running sum for more than adding to it;
- it has several results, as an argmax;
- its body, or that of an op that reads a statistic, has an op that is not known to compute the same in a wider type.

i8 accumulators wrap around, and the truncated i32 sum is the same to the bit; so nothing of it is carried further.

Source: https://pytorch.org/docs/stable/notes/numerical_accuracy.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from iree.compiler import ir

from prepass.ir.casts.wide_values import WideValue, WideValues
from prepass.ir.casts.widen import is_float, match_widenable
from prepass.ir.elementwise import (
    VIEWS,
    cast_tensor,
    casts_only,
    is_elementwise,
    is_truncation,
    tensor_inputs,
    walk_tensor_ops,
)
from prepass.ir.emit import erase_dead_producers
from prepass.ir.expressions import element_type
from prepass.ir.match import NoMatch, defining_op, has_one_user, is_dead
from prepass.ir.sums import Kind, Sum, build_wide_sum, match_sum, reduces
from prepass.pipeline.base import Pass, PassContext
from prepass.pipeline.options import option

_Narrow = Literal["f16", "bf16", "i8"]


def _match_promotable(op: ir.Operation, kinds: Sequence[str], types: Sequence[str]) -> Sum:
    found = match_sum(op)
    if str(found.accumulator) not in types:
        raise NoMatch(f"it accumulates in {found.accumulator}, which is not to be promoted", op)
    if found.kind not in kinds:
        raise NoMatch(f"it is a {found.kind}, which are not to be promoted", op)
    match_widenable(op, found.accumulator)
    return found


def _match_term(value: ir.Value, narrow: ir.Type) -> ir.Operation | None:
    """The elementwise op that computes the terms of a sum, if nothing else reads them and it can compute them wide."""
    op = defining_op(value)
    if op is None or not has_one_user(value) or not is_elementwise(op) or casts_only(op):
        return None
    try:
        match_widenable(op, narrow)
    except NoMatch:
        return None
    return op


def _wide_type(narrow: ir.Type) -> ir.Type:
    return ir.F32Type.get() if is_float(narrow) else ir.IntegerType.get_signless(32)


class _Promotion:
    """One run over a program, op by op in order. What it replaces stays, unread, so that values keep their names."""

    def __init__(self, options: PromoteAccumulatorsPass, context: PassContext) -> None:
        self._options = options
        self._context = context
        self._wide_values = WideValues(options.carry, ir.F32Type.get())

    def visit(self, op: ir.Operation) -> None:
        """Rewrite an op, or raise NoMatch."""
        if op.name in VIEWS:
            self._wide_values.see_view(op)
        elif reduces(op):
            self._promote(_match_promotable(op, self._options.kinds, self._options.types))
        elif is_elementwise(op):
            self._carry(op)

    def _promote(self, found: Sum) -> None:
        op, wide = found.op, _wide_type(found.accumulator)
        self._context.applied(op, f"accumulates in {wide}")
        self._context.count(f"{found.kind}s")
        inputs = tensor_inputs(op)
        carries = found.is_of_one_tensor and is_float(wide) and self._options.carry != "none"
        if carries:
            terms = {value: self._build_term(value, found.accumulator) for value in inputs}
            inputs = [terms[value] for value in inputs]
        with ir.InsertionPoint(op), op.location:
            value = build_wide_sum(found, inputs, wide)
        truncated = self._truncate_to(op, value)
        if carries:
            self._wide_values.add(truncated, WideValue("statistic", value, found.count))

    def _build_term(self, value: ir.Value, narrow: ir.Type) -> ir.Value:
        roles = ("statistic", "normalized") if has_one_user(value) else ("statistic",)
        wide = self._wide_values.wide(value, *roles)
        term = _match_term(value, narrow) if wide == value and element_type(value) == narrow else None
        if term is None:
            return wide
        with ir.InsertionPoint(term), term.location:
            return self._wide_values.build_wide(term, narrow)

    def _carry(self, op: ir.Operation) -> None:
        narrow = self._wide_values.match_extended(op)
        if narrow is not None:
            with ir.InsertionPoint(op), op.location:
                op.result.replace_all_uses_with(self._wide_values.build_wide(op, narrow))
            return
        role = self._wide_values.match_role(op)
        narrow = element_type(op.result)
        if role is None or str(narrow) not in self._options.types:
            return
        if is_truncation(op):
            self._wide_values.add(op.result, WideValue(role, op.operands[0]))
            return
        self._context.applied(op, "computes in f32, as the sum that it reads does")
        self._context.count("carried")
        with ir.InsertionPoint(op), op.location:
            value = self._wide_values.build_wide(op, narrow)
        count = self._wide_values.count_of(op)
        self._wide_values.add(self._truncate_to(op, value), WideValue(role, value, count))

    def _truncate_to(self, op: ir.Operation, value: ir.Value) -> ir.Value:
        """Put `value`, truncated, in the place of what `op` computes."""
        with ir.InsertionPoint(op), op.location:
            truncated = cast_tensor(value, element_type(op.result))
        op.result.replace_all_uses_with(truncated)
        return truncated


@dataclass(frozen=True)
class PromoteAccumulatorsPass(Pass):
    """Accumulate in f32 or i32, and truncate once at the end."""

    name = "prepass-promote-accumulators"
    dependent_dialects = ("arith", "linalg", "tensor")
    kinds: tuple[Kind, ...] = option(
        ("contraction", "convolution", "reduction"), help="What to promote: contraction, convolution, reduction."
    )
    types: tuple[_Narrow, ...] = option(("f16", "bf16", "i8"), help="The accumulators to promote: f16, bf16, i8.")
    carry: Literal["none", "statistics", "norms"] = option(
        "norms", help="How far the f32 sum of one tensor is carried before it is truncated."
    )

    def run(self, op: ir.Operation, context: PassContext) -> None:
        promotion = _Promotion(self, context)
        for candidate in walk_tensor_ops(op):
            try:
                promotion.visit(candidate)
            except NoMatch as miss:
                context.missed_match(miss)
        if context.counters:
            erase_dead_producers([dead.results[0] for dead in walk_tensor_ops(op) if is_dead(dead)])

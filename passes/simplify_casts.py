# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Remove casts that change nothing, and move the others to where they fuse.

Before:

    %wide = linalg.generic ... ins(%x : tensor<4096x640xf16>) { ... arith.extf %in : f16 to f32 ... }
    %product = linalg.matmul ins(%wide, %wide_weight : tensor<4096x640xf32>, tensor<640x640xf32>) ...
    %reshaped = tensor.expand_shape %product ... : tensor<4096x640xf32> into tensor<2x2048x640xf32>
    %half = linalg.generic ... ins(%reshaped : tensor<2x2048x640xf32>) { ... arith.truncf %in : f32 to f16 ... }

After:

    %product = linalg.matmul ins(%x, %weight : tensor<4096x640xf16>, tensor<640x640xf16>) outs(... f32) ...
    %half = linalg.generic ... ins(%product : tensor<4096x640xf32>) { ... arith.truncf %in : f32 to f16 ... }
    %reshaped = tensor.expand_shape %half ... : tensor<4096x640xf16> into tensor<2x2048x640xf16>

With `mode=exact` every number stays what it was:

- casts and square roots of constants are folded, casts of casts joined where they do not round, and a division by a
  power of two is a multiplication;
- a contraction or a sum whose operands are all extended reads them narrow; products of f16 or bf16 are exact in f32;
- a truncation after reshapes and transposes moves before them, to the op that computes what it truncates;
- an extension moves after reshapes and transposes, and out of an elementwise op that it ends, to contractions that so
  come to read all their operands narrow. With one operand narrow and the other wide IREE uses no matrix instructions on
  gfx942, so an extension that would end like that stays.

With `mode=fast` roundings are dropped too: of a truncation whose every reader extends it again, in a body or from op to
op; a division by any constant is a multiplication; `math.rsqrt` of constants is folded.

Left alone when, each with a remark,

- it would drop a rounding, which mode=exact keeps;
- the divisor is no power of two, with mode=exact, or the reciprocal of the divisor is too small to have all its digits;
- how a target rounds math.rsqrt is not known, or whether it rounds to bf16 in between, with mode=exact;
- the operands of a contraction are not all extended from one of f16 and bf16, it accumulates in another type than f32,
  or its body is not scalar arithmetic;
- others read the tensor in its wide type, before a truncation that would move;
- others read the truncated tensor, with mode=fast: a contraction, or an op that computes with it as it is.

Source: https://mlir.llvm.org/docs/Dialects/ArithOps/#arithtruncf-arithtruncfop
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from iree.compiler import ir

from prepass.ir.casts.scalars import SCALAR_OPS, simplified
from prepass.ir.casts.tensors import (
    build_extending,
    build_hoisted,
    build_reading,
    build_sunk,
    build_yielding,
    extended_source,
    match_extended_inputs,
    match_hoistable,
    match_sinkable,
    match_trailing_extension,
    match_trailing_truncation,
    moves,
    reads_extended,
)
from prepass.ir.elementwise import cast_tensor, is_elementwise, is_truncation, walk_tensor_ops
from prepass.ir.emit import erase_dead_producers
from prepass.ir.expressions import element_type
from prepass.ir.match import NoMatch, defining_op, find_ops
from prepass.ir.sums import match_sum, reduces
from prepass.pipeline.base import Pass, PassContext
from prepass.pipeline.options import option


def _scalar_ops(root: ir.Operation) -> list[ir.Operation]:
    return find_ops(root, lambda op: op.name in SCALAR_OPS)


def _match_truncated_inputs(op: ir.Operation, *, exact: bool) -> dict[int, tuple[ir.Operation, ir.Value]]:
    """The operands of `op` that are truncated only to be extended: what computes them, and the value in its body."""
    found: dict[int, tuple[ir.Operation, ir.Value]] = {}
    for number, operand in enumerate(list(op.operands)[: -len(op.results)]):
        producer = defining_op(operand)
        value = match_trailing_truncation(producer) if producer is not None else None
        if producer is None or value is None or not reads_extended(op, number, value.type):
            continue
        if exact:
            raise NoMatch("it would drop a rounding, which mode=exact keeps", op)
        if not all(reads_extended(use.owner.operation, use.operand_number, value.type) for use in operand.uses):
            raise NoMatch("others read the truncated tensor", op)
        found[number] = (producer, value)
    return found


class _Simplification:
    """One run over a program; each op is replaced before the next is looked at."""

    def __init__(self, context: PassContext, *, exact: bool) -> None:
        self._context = context
        self._exact = exact
        self._wide: dict[ir.Value, ir.Value] = {}

    def visit_scalar(self, op: ir.Operation) -> None:
        """Simplify a scalar op, or raise NoMatch."""
        with ir.InsertionPoint(op), op.location:
            value = simplified(op, exact=self._exact)
        if value is not None:
            self._replace(op, value, "simplified", "scalars")

    def visit_move(self, op: ir.Operation) -> None:
        """Sink an extension below a reshape or transpose."""
        source = match_sinkable(op) if moves(op) else None
        if source is not None:
            with ir.InsertionPoint(op), op.location:
                value = build_sunk(op, source)
            self._replace(op, value, "moves the narrow tensor, which is extended after it", "extensions moved")

    def visit_truncation(self, op: ir.Operation) -> None:
        """Hoist a truncation above reshapes and transposes, or raise NoMatch."""
        passed = match_hoistable(op) if is_elementwise(op) and is_truncation(op) else []
        if passed:
            value = build_hoisted(op, passed)
            self._replace(op, value, "truncates before the tensor is reshaped or transposed", "truncations moved")

    def visit_extension(self, op: ir.Operation) -> None:
        """Let an elementwise op yield what it computed before it extended it."""
        value = match_trailing_extension(op) if is_elementwise(op) else None
        if value is not None:
            with ir.InsertionPoint(op), op.location:
                extended = cast_tensor(build_yielding(op, value), element_type(op.result))
            self._replace(op, extended, "yields a narrow tensor, which its readers extend", "extensions moved")

    def visit_sum(self, op: ir.Operation) -> None:
        """Let a contraction or a sum extend its operands itself, or raise NoMatch."""
        sources = match_extended_inputs(match_sum(op)) if reduces(op) and _reads_extension(op) else None
        if sources is not None:
            with ir.InsertionPoint(op), op.location:
                value = build_extending(match_sum(op), sources)
            self._replace(op, value, "reads narrow operands", "extensions removed")

    def visit_reader(self, op: ir.Operation) -> None:
        """Let an op read what was truncated and is extended in it, or raise NoMatch."""
        if len(op.results) != 1 or not (is_elementwise(op) or reduces(op)):
            return
        found = _match_truncated_inputs(op, exact=self._exact)
        if not found:
            return
        for producer, value in found.values():
            if producer.result not in self._wide:
                with ir.InsertionPoint(producer), producer.location:
                    self._wide[producer.result] = build_yielding(producer, value)
        with ir.InsertionPoint(op), op.location:
            value = build_reading(op, {n: self._wide[producer.result] for n, (producer, _) in found.items()})
        self._replace(op, value, "reads a wide tensor that was truncated and extended", "truncations removed")

    def _replace(self, op: ir.Operation, value: ir.Value, message: str, counter: str) -> None:
        self._context.applied(op, message)
        self._context.count(counter)
        op.result.replace_all_uses_with(value)
        erase_dead_producers([op.result])


def _reads_extension(op: ir.Operation) -> bool:
    return len(op.results) == 1 and any(extended_source(operand) is not None for operand in list(op.operands)[:-1])


@dataclass(frozen=True)
class SimplifyCastsPass(Pass):
    """Remove casts that change nothing, and move the others to where they fuse."""

    name = "prepass-simplify-casts"
    dependent_dialects = ("arith", "linalg", "tensor")
    mode: Literal["exact", "fast"] = option("exact", help="Whether every number stays what it was, or roundings go.")

    def run(self, op: ir.Operation, context: PassContext) -> None:
        run = _Simplification(context, exact=self.mode == "exact")
        steps = [
            (_scalar_ops, run.visit_scalar),
            (walk_tensor_ops, run.visit_truncation),
            (walk_tensor_ops, run.visit_extension),
            (walk_tensor_ops, run.visit_move),
            (walk_tensor_ops, run.visit_reader),
            (walk_tensor_ops, run.visit_sum),
        ]
        for find, visit in steps:
            for candidate in find(op):
                try:
                    visit(candidate)
                except NoMatch as miss:
                    context.missed_match(miss)

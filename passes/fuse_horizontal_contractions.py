# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compute contractions that share an operand with one op, and write each result as it is read.

The projections to Q, K and V read one tensor, as do those of a gate and what it gates, and those of a time embedding.

Before:

    %q = linalg.matmul ins(%x, %wq : tensor<8192x640xf16>, tensor<640x640xf16>) ...
    %k = linalg.matmul ins(%x, %wk : ...) ...
    %v = linalg.matmul ins(%x, %wv : ...) ...
    (each truncated, given a bias, cut into heads [2, 4096, 10, 64] and transposed to [2, 10, 4096, 64])
    %o = iree_linalg_ext.attention ins(%qt, %kt, %vt, %scale) ...

After:

With a result for each, which is what the target has if it has a full tile for it:

    %qkv:3 = linalg.generic ins(%x, %wq, %wk, %wv : tensor<2x4096x640xf16>, tensor<10x64x640xf16>, ...)
        outs(... : tensor<2x10x4096x64xf32>, tensor<2x10x4096x64xf32>, tensor<2x10x64x4096xf32>)
    %biased:3 = linalg.generic ins(%qkv#0, %qkv#1, %qkv#2, %bq, %bk, %bv : ...) { ... }
    %o = iree_linalg_ext.attention ins(%biased#0, %biased#1, %biased#2, %scale) ...

Or with one result, by weights that are packed when the program is loaded:

    %w = tensor.concat dim(0) %wq, %wk, %wv : ...
    %qkv = linalg.generic ins(%x, %w : tensor<4096x4096xf16>, tensor<48x128x4096xf16>)
        outs(... : tensor<48x4096x128xf32>)
    %q = tensor.extract_slice %qkv[0, 0, 0] [32, 4096, 128] [1, 1, 1] : ...
    %k = tensor.extract_slice %qkv[32, 0, 0] [8, 4096, 128] [1, 1, 1] : ...

Where many are packed, as K and V of the attention of all layers to one text, attention reads its part at an offset that
IREE does not fold into its dispatch, so that the attention of equal layers is one executable.

What follows each contraction elementwise, with nothing but constants along its columns, goes with it: casts, biases,
scales, and reshapes and transposes, which become the layout of the result. With a result for each, so does an op that
reads several of them, as SiLU of the gate times the other. V is written with the keys innermost, which is what
attention is fastest with. Attention whose K and V are copied for the query heads that share them reads them uncopied.
Of the two forms the target decides, and `form` overrides it. Every number stays what it was.

Left alone when

- it accumulates onto a tensor, its products are rounded before they are added, or both operands have a batch dim;
- a weight or bias is computed from what comes after the first of the contractions, as from its result;
- the results are cut into dims of different sizes;
- with a result for each: they have different numbers of columns, the target has no full tile for the shape, or a
  result is read transposed in several places;
- packed: a weight or bias is no constant or parameter, or is read elsewhere too, so that packing would copy it; the
  results are computed in different ways; an elementwise op reads several, which would not fuse with slices; or a slice
  would have to be copied for what reads it;
- the target is not better off: llvm-cpu, dynamic rows, or few rows and large weights, as in decoding.

Source: https://arxiv.org/abs/1909.08053
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from iree.compiler import ir

from prepass.ir.attention.build import OP_NAME as ATTENTION
from prepass.ir.attention.shared_heads import build_shared_heads, match_shared_heads
from prepass.ir.axes import Axis
from prepass.ir.elementwise import walk_tensor_ops
from prepass.ir.emit import erase_dead_producers
from prepass.ir.expressions import element_type, tensor_sizes
from prepass.ir.horizontal.build import availability
from prepass.ir.horizontal.members import Member, find_groups, read_member, shared_source
from prepass.ir.horizontal.packed import PackedPlan, build_packed, plan_packed, replace_packed
from prepass.ir.horizontal.region import find_outputs
from prepass.ir.horizontal.results import ResultsPlan, build_results, innermost, plan_results, replace_results
from prepass.ir.horizontal.weights import Weights
from prepass.ir.match import NoMatch, walk_ops
from prepass.ir.targets import Target
from prepass.ir.targets.horizontal import (
    Form,
    HorizontalShape,
    NotWorthIt,
    gains_from_shared_heads,
    horizontal_forms,
    results_fit,
)
from prepass.pipeline.base import Pass, PassContext
from prepass.pipeline.options import option

Plan = ResultsPlan | PackedPlan

_FEWEST = 2
_SAYS = {"results": "with a result for each", "packed": "by packed weights"}


def _match_forms(members: Sequence[Member], target: Target | None, form: str) -> tuple[Form, ...]:
    if form != "auto":
        return (form,)
    weights = [ir.RankedTensorType(member.weight.value.type) for member in members]
    sizes = [math.prod(type_.shape) * ir.FloatType(type_.element_type).width // 8 for type_ in weights]
    first = members[0]
    shape = HorizontalShape(tuple(axis.extent for axis in first.m), max(sizes), str(element_type(first.op.results[0])))
    try:
        return horizontal_forms(target, shape)
    except NotWorthIt as miss:
        raise NoMatch(miss.reason, first.op) from miss


def _share_heads(op: ir.Operation, context: PassContext) -> None:
    """Let attention read K and V as they are where each head of them is copied for several of Q."""
    try:
        found = match_shared_heads(op)
    except NoMatch as miss:
        context.missed_match(miss)
        return
    if found is None:
        return
    context.applied(op, "reads the heads of K and V that several heads of Q share as they are")
    context.count("shared-heads")
    with ir.InsertionPoint(op), op.location:
        value = build_shared_heads(op, *found)
    op.results[0].replace_all_uses_with(value)
    operands = list(op.operands)
    op.erase()
    erase_dead_producers(operands)


class _Fusion:
    """One run over a program."""

    def __init__(self, form: str, weights: Weights, context: PassContext) -> None:
        self._form = form
        self._weights = weights
        self._context = context

    def fuse(self, ops: list[ir.Operation]) -> None:
        """Join contractions of one operand, all or those of them that can be."""
        source = shared_source(ops, self._weights)
        members = self._legal(ops, source)
        if len(members) < _FEWEST:
            return
        try:
            forms = _match_forms(members, self._context.target, self._form)
        except NoMatch as miss:
            self._context.missed_match(miss)
            return
        try:
            self._join([member.op for member in members], source, forms)
        except NoMatch as miss:
            by_columns: dict[int, list[ir.Operation]] = {}
            for member in members:
                by_columns.setdefault(math.prod(axis.extent or 0 for axis in member.n), []).append(member.op)
            if len(by_columns) == 1:
                self._context.missed_match(miss)
                return
            for part in by_columns.values():
                self._fuse_part(part, source, miss, forms)

    def _fuse_part(self, ops: list[ir.Operation], source: ir.Value, miss: NoMatch, forms: Sequence[Form]) -> None:
        """Join those of equal width, where all cannot be."""
        try:
            if len(ops) < _FEWEST:
                raise NoMatch(miss.reason, ops[0])
            self._join(ops, source, forms)
        except NoMatch as other:
            self._context.missed_match(other)

    def _legal(self, ops: Sequence[ir.Operation], source: ir.Value) -> list[Member]:
        members: list[Member] = []
        for op in ops:
            index = tuple((Axis(size),) for size in tensor_sizes(op.results[0]))
            try:
                member = read_member(op, index, source)
                if not availability(members[0].op if members else op, self._weights)(member.weight.value):
                    raise NoMatch("its weight is computed after the first contraction of the shared operand", op)
            except NoMatch as miss:
                self._context.missed_match(miss)
                continue
            members.append(member)
        return members

    def _join(self, ops: list[ir.Operation], source: ir.Value, forms: Sequence[Form]) -> None:
        """Join all of `ops`, or raise NoMatch for the last form that was tried."""
        for form in forms:
            try:
                plan = self._plan(ops, source, form)
                break
            except NoMatch as miss:
                last = miss
        else:
            raise last
        for member in plan.members:
            self._context.applied(member.op, f"one of {len(plan.members)} that are computed at once, {_SAYS[form]}")
        self._context.count(form)
        replaced = [output.value for output in plan.outputs]
        if isinstance(plan, ResultsPlan):
            replace_results(plan, build_results(plan))
        else:
            replace_packed(plan, build_packed(plan))
        erase_dead_producers(replaced)

    def _plan(self, ops: list[ir.Operation], source: ir.Value, form: Form) -> Plan:
        outputs = find_outputs(ops, source, availability(ops[0], self._weights), join=form == "results")
        if form == "packed":
            return plan_packed(outputs, self._weights)
        results = plan_results(outputs)
        if self._form == "auto" and not results_fit(self._context.target, *innermost(results)):
            raise NoMatch("no full tile computes several results of this shape", ops[0])
        return results


@dataclass(frozen=True)
class FuseHorizontalContractionsPass(Pass):
    """Compute contractions that share an operand with one op."""

    name = "prepass-fuse-horizontal-contractions"
    followed_by = ("prepass-configure-contractions",)
    dependent_dialects = ("arith", "iree_linalg_ext", "linalg", "math", "tensor")
    form: Literal["auto", "results", "packed"] = option(
        "auto", help="The form: as the target has it best, or one of the two wherever it is right."
    )

    def run(self, op: ir.Operation, context: PassContext) -> None:
        if self.form != "auto" or gains_from_shared_heads(context.target):
            for attention in walk_ops(op, ATTENTION):
                _share_heads(attention, context)
        weights = Weights(op)
        fusion = _Fusion(self.form, weights, context)
        for group in find_groups(walk_tensor_ops(op), weights):
            fusion.fuse(group)

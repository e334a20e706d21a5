# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Write the result of a contraction as it is read, and read its weight as it is stored.

Below O2 IREE leaves a transpose that follows a contraction and a bias, as to heads of attention, in a dispatch of its
own. A weight that an exporter copies for each batch is kept so when the program is loaded, at its transposed size.

Before:

    %wt = linalg.transpose ins(%w : tensor<640x640xf16>) ...
    %wb = linalg.generic ins(%wt : ...) outs(... : tensor<2x640x640xf16>) { a copy for each batch }
    %0 = linalg.batch_matmul ins(%x, %wb : tensor<2x4096x640xf16>, tensor<2x640x640xf16>) ...
    %1 = linalg.generic ins(%0, %bias : ...) outs(... : tensor<2x4096x640xf16>) { truncf, addf }
    %2 = tensor.expand_shape %1 ... into tensor<2x4096x10x64xf16>
    %3 = linalg.transpose ins(%2 : ...) outs(... : tensor<2x10x4096x64xf16>) permutation = [0, 2, 1, 3]

After:

    %0 = linalg.generic ins(%x, %w : tensor<2x4096x640xf16>, tensor<10x64x640xf16>)
        outs(... : tensor<2x10x4096x64xf32>) { the contraction }
    %3 = linalg.generic ins(%0, %bias : ...) outs(... : tensor<2x10x4096x64xf16>) { truncf, addf }

It is for contractions of a tensor with a constant or parameter. V of attention is written with the keys innermost,
which attention is fastest with. Every number stays what it was.

Left alone when

- nothing is transposed or copied;
- it accumulates onto a tensor, its products are rounded before they are added, or both operands have a batch dim;
- the target does not gain from it: llvm-cpu, a kernel for few rows, and targets of which nothing is known.

Source: https://iree.dev/developers/performance/profiling/
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from iree.compiler import ir

from prepass.ir.axes import index_leaves
from prepass.ir.elementwise import VIEWS, walk_tensor_ops
from prepass.ir.emit import erase_dead_producers
from prepass.ir.horizontal.build import availability
from prepass.ir.horizontal.members import Member, lone_source
from prepass.ir.horizontal.region import find_outputs
from prepass.ir.horizontal.results import ResultsPlan, build_results, plan_results, replace_results
from prepass.ir.horizontal.weights import Weights
from prepass.ir.match import NoMatch, defining_op
from prepass.ir.sums import reduces
from prepass.ir.targets import Target
from prepass.ir.targets.horizontal import NotWorthIt, check_layouts
from prepass.pipeline.base import Pass, PassContext
from prepass.pipeline.options import option


def _match(op: ir.Operation, weights: Weights, target: Target | None, when: str) -> ResultsPlan | None:
    """What to build, None when it is as it should be already."""
    source = lone_source(op, weights)
    if source is None:
        return None
    outputs = find_outputs([op], source, availability(op, weights), join=False)
    plan = plan_results(outputs)
    if _is_as_read(plan) and _is_as_stored(plan.members[0]):
        return None
    try:
        if when == "gains":
            check_layouts(target, tuple(axis.extent for axis in plan.members[0].m))
    except NotWorthIt as miss:
        raise NoMatch(miss.reason, op) from miss
    return plan


def _is_as_read(plan: ResultsPlan) -> bool:
    (written, _), member = plan.layouts[0], plan.members[0]
    return index_leaves(written) == index_leaves(plan.alignment.index(member.result.index))


def _is_as_stored(member: Member) -> bool:
    """Whether the weight is an operand, reshaped at most."""
    for value in member.op.operands:
        while (op := defining_op(value)) is not None and op.name in VIEWS:
            value = op.operands[0]
        if value == member.weight.value:
            return True
    return False


@dataclass(frozen=True)
class FoldContractionLayoutsPass(Pass):
    """Write the result of a contraction as it is read, and read its weight as it is stored."""

    name = "prepass-fold-contraction-layouts"
    dependent_dialects = ("arith", "iree_linalg_ext", "linalg", "math", "tensor")
    when: Literal["gains", "always"] = option("gains", help="Only where the target gains from it, or wherever right.")

    def run(self, op: ir.Operation, context: PassContext) -> None:
        weights = Weights(op)
        # What follows a contraction is erased with it, so only those are collected.
        for candidate, plan in context.matches(
            [found for found in walk_tensor_ops(op) if reduces(found)],
            lambda candidate: _match(candidate, weights, context.target, self.when),
        ):
            context.applied(candidate, "writes its result as it is read, and reads its weight as it is stored")
            context.count("folded")
            replaced = [output.value for output in plan.outputs]
            replace_results(plan, build_results(plan))
            erase_dead_producers(replaced)

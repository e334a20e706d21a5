# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Drop the loops that run once, so that linear layers of batch 1 are plain matrix products.

At batch 1 a linear layer is a `linalg.batch_matmul` of one matrix, with a weight that is copied into a tensor with a
batch dim. Below O2 IREE takes the unit dim away from elementwise ops and not from named contractions. The reshapes
between the two keep casts, biases and activations in dispatches of their own, and the copy of the weight is transposed
and kept when the program is loaded. Here every op loses its unit dims before, and reshapes are left at the edges alone.

Before:

    %w1 = linalg.generic {indexing_maps = [(a, b, c) -> (b, c), (a, b, c) -> (a, b, c)], ...}
        ins(%w : tensor<640x640xf16>) outs(... : tensor<1x640x640xf16>)
    %0 = linalg.batch_matmul ins(%x, %w1 : tensor<1x4096x640xf16>, tensor<1x640x640xf16>)
        outs(%zero : tensor<1x4096x640xf32>)
    %1 = linalg.generic {...} ins(%0, %bias : tensor<1x4096x640xf32>, tensor<640xf16>)
        outs(... : tensor<1x4096x640xf16>) { truncf, addf }

After:

    %x0 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<1x4096x640xf16> into tensor<4096x640xf16>
    %0 = linalg.matmul ins(%x0, %w : tensor<4096x640xf16>, tensor<640x640xf16>) outs(%zero : tensor<4096x640xf32>)
    %1 = linalg.generic {...} ins(%0, %bias : tensor<4096x640xf32>, tensor<640xf16>)
        outs(... : tensor<4096x640xf16>) { truncf, addf }
    %2 = tensor.expand_shape %1 [[0, 1], [2]] : tensor<4096x640xf16> into tensor<1x4096x640xf16>

It drops parallel loops of linalg ops, batch loops of attention, and dims of slices and concatenations. A reduction over
one element stays: it adds that to what it starts from. A bias that a convolution of uneven sizes starts from is added
behind it, where it loses its unit dims with what follows.

Left alone when

- the target multiplies a batch of one matrix faster than the matrix, as llvm-cpu does, and `matrices` is `auto`;
- it is in a dispatch already;
- it reads windows of its operands, as convolutions do;
- its lowering config names the loops that it has;
- a tensor has an encoding;
- the slice has fewer dims than what it is cut from;
- where the slice is cut from a dim of size 1 is not known.

Source: https://mlir.llvm.org/docs/Dialects/Linalg/
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from iree.compiler import ir

from prepass.ir.emit import erase_dead_producers
from prepass.ir.expressions import tensor_sizes
from prepass.ir.match import NoMatch, find_ops
from prepass.ir.targets.contractions import wants_batch_of_one
from prepass.ir.unit_dims.accumulators import add_bias_behind, adds_onto_bias
from prepass.ir.unit_dims.build import build_without_loops
from prepass.ir.unit_dims.loops import ATTENTION, match_unit_loops
from prepass.ir.unit_dims.slices import build_concat, build_slice, match_concat, match_slice
from prepass.pipeline.base import Pass, PassContext
from prepass.pipeline.options import option

_CUTS = {"tensor.extract_slice": (match_slice, build_slice), "tensor.concat": (match_concat, build_concat)}


def _match(op: ir.Operation, keeps_matrices: str) -> Callable[[], Sequence[ir.Value]] | None:
    """What builds the results of an op without unit dims; None where there is nothing to drop.

    `keeps_matrices` names the target if products of matrices are to keep their batch.
    """
    if op.name in _CUTS:
        match, build = _CUTS[op.name]
        dims = match(op)
        return (lambda: [build(op, dims)]) if dims else None
    found = match_unit_loops(op)
    if found is None:
        return None
    if keeps_matrices and (
        _is_matrices(op) or any(_is_matrices(use.owner.operation) for result in op.results for use in result.uses)
    ):
        raise NoMatch(f"{keeps_matrices} multiplies a batch of one matrix faster than the matrix", op)
    return lambda: build_without_loops(found)


def _is_matrices(op: ir.Operation) -> bool:
    """Whether an op multiplies matrices of more than a row and a column; what writes their copies stays with it."""
    return op.name == "linalg.batch_matmul" and 1 not in tensor_sizes(op.result)[1:]


def _is_candidate(op: ir.Operation) -> bool:
    if op.name in (*_CUTS, ATTENTION):
        return True
    return op.name.startswith("linalg.") and len(op.regions) == 1


@dataclass(frozen=True)
class FoldUnitDimsPass(Pass):
    """Drop the loops that run once, so that linear layers of batch 1 are plain matrix products."""

    name = "prepass-fold-unit-dims"
    dependent_dialects = ("arith", "iree_linalg_ext", "linalg", "tensor")
    matrices: Literal["auto", "always"] = option(
        "auto", help="Whether products of matrices lose their batch on targets, too, that are faster with it."
    )

    def run(self, op: ir.Operation, context: PassContext) -> None:
        target = context.target
        keeps = target.name if target and self.matrices == "auto" and wants_batch_of_one(target) else ""
        for convolution in find_ops(op, adds_onto_bias):
            context.applied(convolution, "its bias is added behind it")
            context.count("biases")
            add_bias_behind(convolution)
        candidates = find_ops(op, _is_candidate, ir.WalkOrder.PRE_ORDER)
        for candidate, build in context.matches(candidates, lambda candidate: _match(candidate, keeps)):
            context.applied(candidate, "unit dims dropped")
            context.count("folded")
            with ir.InsertionPoint(candidate), candidate.location:
                values = build()
            operands = list(candidate.operands)
            for result, value in zip(candidate.results, values, strict=True):
                result.replace_all_uses_with(value)
            candidate.erase()
            erase_dead_producers(operands)

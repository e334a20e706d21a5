# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lay K out with the keys innermost, where the target reads it so.

An attention kernel of llvm-cpu computes a few rows of scores at a time, as vectors along the
keys. With the channels innermost it transposes each tile of K in registers, once for every
few queries; one transpose of all of K takes a hundredth of that.

Before:

    %o = iree_linalg_ext.attention {indexing_maps = [..., (b, m, n, k1, k2) -> (b, k2, k1), ...]}
        ins(%q, %k, %v, %scale : tensor<20x1024x64xf32>, tensor<20x1024x64xf32>, tensor<20x1024x64xf32>, f32) ...

After:

    %t = linalg.generic ins(%k : tensor<20x1024x64xf32>) outs(%empty : tensor<20x64x1024xf32>) {yield}
    %kt = iree_tensor_ext.compute_barrier.start %t : tensor<20x64x1024xf32>
    %o = iree_linalg_ext.attention {indexing_maps = [..., (b, m, n, k1, k2) -> (b, k1, k2), ...]}
        ins(%q, %kt, %v, %scale : tensor<20x1024x64xf32>, tensor<20x64x1024xf32>, tensor<20x1024x64xf32>, f32) ...

The barrier keeps the transpose from folding back into the op. What computes K may still take
it up.

Left alone when, each with a remark that says so:

- no target is known, or the target does not ask for it: another than llvm-cpu, K is laid out
  so already, or queries that are few or of a dynamic number would not pay for the copy;
- the loops are not those of attention.

Source: https://iree.dev/reference/mlir-dialects/LinalgExt/#iree_linalg_extattention-linalgextattentionop
"""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.attention.build import OP_NAME
from prepass.ir.attention.read import read_attention_shape
from prepass.ir.axes import Axis
from prepass.ir.barriers import keep_layout
from prepass.ir.emit import Extents, relayout
from prepass.ir.expressions import Read, tensor_sizes
from prepass.ir.match import NoMatch, walk_ops
from prepass.ir.targets import Target
from prepass.ir.targets.attention import wants_transposed_keys
from prepass.pipeline.base import Pass, PassContext

_KEY = 1  # The operand's place.


def _match_key_map(op: ir.Operation, target: Target | None) -> ir.AffineMap:
    """The indexing map of K, where K is to be transposed."""
    if target is None:
        raise NoMatch("no target is known", op)
    if not wants_transposed_keys(target, read_attention_shape(op)):
        raise NoMatch(f"{target.name} does not ask for another layout of K", op)
    return ir.AffineMapAttr(ir.ArrayAttr(op.attributes["indexing_maps"])[_KEY]).value


def _build_transposed(op: ir.Operation, key_map: ir.AffineMap) -> None:
    """Give the op a K whose innermost dim is the one of the last loop, the keys."""
    loops = [ir.AffineDimExpr(expr).position for expr in key_map.results]
    keys = loops.index(key_map.n_dims - 1)
    order = [dim for dim in range(len(loops)) if dim != keys] + [keys]
    op.operands[_KEY] = keep_layout(_transpose(op.operands[_KEY], order))
    maps = list(ir.ArrayAttr(op.attributes["indexing_maps"]))
    results = [key_map.results[dim] for dim in order]
    maps[_KEY] = ir.AffineMapAttr.get(ir.AffineMap.get(key_map.n_dims, 0, results))
    op.attributes["indexing_maps"] = ir.ArrayAttr.get(maps)


def _transpose(value: ir.Value, order: list[int]) -> ir.Value:
    index = tuple((Axis(size),) for size in tensor_sizes(value))
    return relayout(value, index, tuple(index[dim] for dim in order), Extents([Read(value, index)]))


@dataclass(frozen=True)
class TransposeAttentionKeysPass(Pass):
    """Lay K out with the keys innermost, where the target reads it so."""

    name = "prepass-transpose-attention-keys"
    followed_by = ("prepass-configure-attention",)
    dependent_dialects = ("arith", "iree_tensor_ext", "linalg", "tensor")

    def run(self, op: ir.Operation, context: PassContext) -> None:
        for attention, key_map in context.matches(
            walk_ops(op, OP_NAME), lambda attention: _match_key_map(attention, context.target)
        ):
            with ir.InsertionPoint(attention), attention.location:
                _build_transposed(attention, key_map)
            context.applied(attention, "K laid out with the keys innermost")
            context.count("transposed")

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
    %padded = tensor.pad %t high[0, 0, 16] : tensor<20x64x1024xf32> to tensor<20x64x1040xf32>
    %kept = iree_tensor_ext.compute_barrier.start %padded : tensor<20x64x1040xf32>
    %kt = tensor.extract_slice %kept[0, 0, 0] [20, 64, 1024] [1, 1, 1]
    %o = iree_linalg_ext.attention {indexing_maps = [..., (b, m, n, k1, k2) -> (b, k1, k2), ...]}
        ins(%q, %kt, %v, %scale : tensor<20x1024x64xf32>, tensor<20x64x1024xf32>, tensor<20x1024x64xf32>, f32) ...

The barrier keeps the transpose from folding back into the op. What computes K may still take
it up. Rows are a line of the cache longer than there are keys, where they would all fall in a
few sets of the cache; what is added is written once and never read.

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
from prepass.ir.attention.read import operand_maps, read_attention_shape
from prepass.ir.axes import Axis
from prepass.ir.barriers import keep_layout
from prepass.ir.emit import Extents, constant, extract_slice, pad_high, relayout
from prepass.ir.expressions import Read, loop_positions, tensor_sizes
from prepass.ir.match import NoMatch, walk_ops
from prepass.ir.targets import Target
from prepass.ir.targets.attention import key_row_padding, wants_transposed_keys
from prepass.pipeline.base import Pass, PassContext

_KEY = 1  # The operand's place.


@dataclass(frozen=True)
class _Match:
    """A K that is to be transposed.

    Attributes:
      map: Its indexing map.
      padding: By how many elements its rows in memory are to be longer than there are keys.
    """

    map: ir.AffineMap
    padding: int


def _match_keys(op: ir.Operation, target: Target | None) -> _Match:
    if target is None:
        raise NoMatch("no target is known", op)
    shape = read_attention_shape(op)
    if not wants_transposed_keys(target, shape):
        raise NoMatch(f"{target.name} does not ask for another layout of K", op)
    return _Match(operand_maps(op)[_KEY], key_row_padding(target, shape))


def _build_transposed(op: ir.Operation, match: _Match) -> None:
    """Give the op a K whose innermost dim is the one of the last loop, the keys."""
    loops = loop_positions(match.map)
    keys = loops.index(match.map.n_dims - 1)
    order = [dim for dim in range(len(loops)) if dim != keys] + [keys]
    op.operands[_KEY] = _keep(_transpose(op.operands[_KEY], order), match.padding)
    maps = operand_maps(op)
    maps[_KEY] = ir.AffineMap.get(match.map.n_dims, 0, [match.map.results[dim] for dim in order])
    op.attributes["indexing_maps"] = ir.ArrayAttr.get([ir.AffineMapAttr.get(each) for each in maps])


def _keep(value: ir.Value, padding: int) -> ir.Value:
    """A tensor that keeps its layout, and whose rows are longer in memory."""
    if not padding:
        return keep_layout(value)
    type_ = ir.RankedTensorType(value.type)
    padded = pad_high(value, type_.rank - 1, padding, constant(0.0, type_.element_type))
    return extract_slice(keep_layout(padded), [0] * type_.rank, type_)


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
        for attention, match in context.matches(
            walk_ops(op, OP_NAME), lambda attention: _match_keys(attention, context.target)
        ):
            context.applied(attention, "K laid out with the keys innermost")
            context.count("transposed")
            with ir.InsertionPoint(attention), attention.location:
                _build_transposed(attention, match)

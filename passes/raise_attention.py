# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Raise decomposed attention to `iree_linalg_ext.attention`.

The program is read as arithmetic, not as a list of op patterns: from a contraction whose
operand is a softmax over the contracted dim, through the scores, to the contraction of Q
and K. How a frontend splits that into ops, casts, transposes, reshapes and broadcasts does
not matter. K and V heads that are shared by groups of queries stay unexpanded.

Before:

    %s = linalg.batch_matmul ins(%q, %kt : tensor<20x4096x64xf16>, tensor<20x64x4096xf16>) ...
    %x = tensor.expand_shape %s [[0, 1], [2], [3]] output_shape [2, 10, 4096, 4096] ...
    %p = linalg.softmax dimension(3) ins(%x : tensor<2x10x4096x4096xf16>) ...
    %y = tensor.collapse_shape %p [[0, 1], [2], [3]] ...
    %o = linalg.batch_matmul ins(%y, %v : tensor<20x4096x4096xf16>, tensor<20x4096x64xf16>) ...

After:

    %o = iree_linalg_ext.attention
        {indexing_maps = [(b, m, n, k1, k2) -> (b, m, k1), (b, k1, k2), (b, k2, n), (), (b, m, n)]}
        ins(%q, %kt, %v, %scale) outs(%empty) {^bb0(%score: f32): iree_linalg_ext.yield %score}

Rounding: scores, softmax and scale are computed in f32, where the program may round to f16
or bf16 in between. A `select` whose fill is a finite number up to `fill-limit` masks its
keys out, which is exact as long as some key that is kept scores 104 more than the fill; a
row with no key left is uniform, as in the program. Masks keep -inf and its NaN rows.

Left alone when, each with a remark that says so:

- the softmax is not over the dim the contraction sums;
- the divisor is not the sum of the exponentials it divides;
- the probabilities are multiplied before they weigh values, as live dropout does;
- a select replaces probabilities on a condition that is not understood;
- an activation (SiLU, GELU, tanh), not a softmax, feeds the contraction;
- no contraction reads the probabilities (a router, a classifier);
- the probabilities or the scores have another use;
- no contraction of Q and K leads to the softmax, or an op on the way is not understood;
- the scores are scaled by a tensor, clamped, or scaled after masking by an odd number;
- a nonlinear function is applied to masked scores, or depends on a runtime value;
- masked scores are replaced by a tensor, or by a number above `fill-limit`;
- the mask is one number for all scores;
- the contraction with the values accumulates onto a tensor;
- Q, K, V and the result do not line up as attention, are not f16, bf16 or f32, or have a
  dynamic size that cannot be computed from Q, K and V;
- the target has no config that is right for the shape, or none is known and the head dim is
  above 128, which llvm-cpu computes wrongly without one.

Source: https://iree.dev/reference/mlir-dialects/LinalgExt/#iree_linalg_extattention-linalgextattentionop
"""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.attention.build import attention_shape, build_attention
from prepass.ir.attention.match import Attention, match_attention, unweighted_softmaxes
from prepass.ir.emit import erase_dead_producers
from prepass.ir.expressions import indexing_maps
from prepass.ir.match import NoMatch, find_ops
from prepass.ir.targets import Target
from prepass.ir.targets.attention import attention_attributes
from prepass.ir.targets.attention_shape import NoConfig
from prepass.ir.targets.llvm_cpu import LARGEST_DEFAULT_HEAD_DIM
from prepass.pipeline.base import Pass, PassContext
from prepass.pipeline.options import option


def _match_target(attention: Attention, target: Target | None, op: ir.Operation) -> None:
    """Raise NoMatch where the target would compute the op wrongly, whatever `prepass-configure-attention` does."""
    shape = attention_shape(attention)
    if target is None and (shape.k1 is None or shape.k1 > LARGEST_DEFAULT_HEAD_DIM):
        raise NoMatch("no target is known, and llvm-cpu needs a lowering config for such a head dim", op)
    try:
        if target is not None:
            attention_attributes(target, shape)
    except NoConfig as miss:
        raise NoMatch(miss.reason, op) from miss


def _narrowing_user(op: ir.Operation) -> ir.Operation | None:
    """The op that only truncates the result of `op`, which attention can do itself."""
    uses = list(op.result.uses)
    user = uses[0].owner.operation if len(uses) == 1 else None
    if user is None or user.name != "linalg.generic" or len(user.operands) != 2:
        return None
    body = [nested.operation for nested in user.regions[0].blocks[0]]
    truncates = [nested.name for nested in body] == ["arith.truncf", "linalg.yield"]
    is_elementwise = all(m == ir.AffineMap.get_identity(m.n_dims) for m in indexing_maps(user) or [])
    return user if truncates and is_elementwise and uses[0].operand_number == 0 else None


def _raise(op: ir.Operation, context: PassContext, fill_limit: float) -> ir.Value | None:
    """Raise the attention that ends in `op`; returns the value that is no longer read."""
    attention = match_attention(op, fill_limit)
    if attention is None:
        return None
    _match_target(attention, context.target, op)
    root = _narrowing_user(op) or op
    context.applied(root, "raised to iree_linalg_ext.attention")
    context.count("raised")
    with ir.InsertionPoint(root), root.location:
        result = build_attention(attention, ir.RankedTensorType(root.result.type))
    root.result.replace_all_uses_with(result)
    return root.result


@dataclass(frozen=True)
class RaiseAttentionPass(Pass):
    """Raise decomposed attention to `iree_linalg_ext.attention`."""

    name = "prepass-raise-attention"
    followed_by = ("prepass-configure-attention",)
    dependent_dialects = ("arith", "iree_linalg_ext", "linalg", "math", "tensor")
    fill_limit: float = option(-1e4, help="Scores that a select replaces by a number up to this are masked out.")

    def run(self, op: ir.Operation, context: PassContext) -> None:
        replaced: list[ir.Value] = []
        explained: list[ir.Operation] = []
        candidates = find_ops(op, lambda nested: nested.name.startswith("linalg."))
        for candidate in candidates:
            try:
                value = _raise(candidate, context, self.fill_limit)
            except NoMatch as miss:
                context.missed_match(miss)
                explained.append(candidate)
            else:
                if value is not None:
                    replaced.append(value)
                    explained.append(candidate)
        for softmax in unweighted_softmaxes(candidates, explained):
            context.missed(softmax, "no contraction over the softmax dim reads the probabilities")
        erase_dead_producers(replaced)

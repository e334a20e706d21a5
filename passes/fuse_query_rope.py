# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rotate the query in the dispatch of its attention.

Each query is read by one workgroup alone, so its rotary embedding there costs no work twice
and saves a dispatch and a round trip through memory. A key is read by every workgroup, so
its rotation stays outside and runs once. The query must stay out of LDS; the config that
`prepass-configure-attention` gives keeps it in registers.

Before:

    %q = ... // A rotary embedding of %x, in any of its spellings.
    %o = iree_linalg_ext.attention
        {indexing_maps = [(b, m, n, k1, k2) -> (b, m, k1), (b, m, n, k1, k2) -> (b, k2, k1), ...]}
        ins(%q, %k, %v, %scale : tensor<24x4608x128xbf16>, tensor<24x4608x128xbf16>, ...)

After:

    %k2 = tensor.expand_shape %k [[0], [1], [2, 3]] : ... into tensor<24x4608x2x64xbf16>
    %o = flow.dispatch.region -> (tensor<24x4608x128xbf16>) {
      %q = linalg.generic ins(%x0, %x1, %cos, %sin) ... -> tensor<24x4608x2x64xbf16>
      %r = iree_linalg_ext.attention
          {indexing_maps = [(b, m, n, c, i, k2) -> (b, m, c, i), (b, m, n, c, i, k2) -> (b, k2, c, i), ...]}
          ins(%q, %k2, %v, %scale : ...)
      flow.return %r : tensor<24x4608x128xbf16>
    }

The channels become two loops, the two of a pair and the pairs, so that both channels of a
pair are loaded as rows; where only some are rotated, blocks of a row and the channels of a
block. Where pairs are neighbours, query and key both get the first channels of all pairs,
then the second ones: scores do not depend on the order. What only transposes or reshapes the
result becomes part of the attention.

Run it after prepass-raise-attention and before prepass-canonicalize-rope, which takes the
rotations that are left.

Left alone when, each with a remark that says so:

- the loops are not those of attention;
- the query is not a rotary embedding, or one that prepass-canonicalize-rope would leave alone;
- the query is rotated in pairs of neighbours and the key is not, or other channels of it are;
- the rotated query, or a key that must change the order of its channels, has another use;
- `fuse=auto`, and no target is known, or a rotation in the attention gains nothing there:
  the target is not gfx942, queries are few or dynamic, the query would not fit its registers, or
  the channels that are rotated are too few for a matrix instruction;
- `fuse=never`.

Source: https://iree.dev/reference/mlir-dialects/LinalgExt/#iree_linalg_extattention-linalgextattentionop
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from iree.compiler import ir

from prepass.ir.attention.build import OP_NAME
from prepass.ir.match import NoMatch, walk_ops
from prepass.ir.rope.fuse import RotatedAttention, fuse_query, match_rotated_attention
from prepass.ir.rope.tables import Tables
from prepass.ir.targets import Target
from prepass.ir.targets.attention import reason_to_rotate_apart
from prepass.pipeline.base import Pass, PassContext
from prepass.pipeline.options import option


def _match(op: ir.Operation, target: Target | None, fuse: str) -> RotatedAttention:
    attention = match_rotated_attention(op)
    if fuse == "always":
        return attention
    if fuse == "never":
        raise NoMatch("the rotation stays outside: fuse=never", op)
    if target is None:
        raise NoMatch("no target is known", op)
    reason = reason_to_rotate_apart(target, attention.shape)
    if reason is not None:
        raise NoMatch(reason, op)
    return attention


@dataclass(frozen=True)
class FuseQueryRopePass(Pass):
    """Rotate the query in the dispatch of its attention."""

    name = "prepass-fuse-query-rope"
    followed_by = ("prepass-configure-attention",)
    dependent_dialects = ("arith", "complex", "flow", "iree_linalg_ext", "iree_tensor_ext", "linalg", "math", "tensor")
    fuse: Literal["auto", "always", "never"] = option(
        "auto", help="Whether the rotation goes into the attention: where the target gains by it, or as said."
    )

    def run(self, op: ir.Operation, context: PassContext) -> None:
        tables = Tables()
        # One that is in a region was fused before.
        candidates = [found for found in walk_ops(op, OP_NAME) if found.parent.operation.name != "flow.dispatch.region"]
        for candidate, attention in context.matches(
            candidates, lambda candidate: _match(candidate, context.target, self.fuse)
        ):
            context.applied(candidate, "the query is rotated in the attention")
            context.count("fused")
            with ir.InsertionPoint(candidate), candidate.location:
                fuse_query(attention, tables)

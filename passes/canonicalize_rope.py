# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bring rotary embeddings to one form that vectorizes.

Exporters spell a rotary embedding in many ways: halves that are sliced, negated and
concatenated; pairs that are unbound and stacked; 2x2 matrices; complex numbers; strided
slices; a gather with divisions and selects inside. IREE makes of them 3 to 11 dispatches
that load the partner of a channel two bytes at a time. The program is read as arithmetic
on channels, whatever ops it takes, and becomes one generic whose loads and stores are all
of whole rows.

Before:

    %x1 = tensor.extract_slice %x[0, 0, 64] [24, 4608, 64] [1, 1, 1] ...
    %n = linalg.generic ins(%x1) ... { arith.negf }
    %x0 = tensor.extract_slice %x[0, 0, 0] [24, 4608, 64] [1, 1, 1] ...
    %r = tensor.concat dim(2) %n, %x0 ...
    %a = linalg.generic ins(%x, %cos) ... { arith.mulf }
    %b = linalg.generic ins(%r, %sin) ... { arith.mulf }
    %y = linalg.generic ins(%a, %b) ... { arith.addf } -> tensor<24x4608x128xf16>

After:

    // Halves: the channels of a pair, c = 0 and c = 1, are rows of their own.
    %y = linalg.generic {indexing_maps = [(h, t, c, i) -> (h, t, i), (h, t, c, i) -> (h, t, i),
        (h, t, c, i) -> (t, i), ..., (h, t, c, i) -> (h, t, c, i)]}
        ins(%x0, %x1, %cos0, %cos1, %sin0, %sin1) outs(%empty : tensor<24x4608x2x64xf16>)
    // Neighbours: a pair is read and written as one integer.
    %p = iree_tensor_ext.bitcast %x : tensor<4608x24x128xbf16> -> tensor<4608x24x64xi32>
    %q = linalg.generic ins(%p, %cos, %sin) outs(%empty : tensor<4608x24x64xi32>)
    %y = iree_tensor_ext.bitcast %q : tensor<4608x24x64xi32> -> tensor<4608x24x128xbf16>

    // Only the first 32 of 128 channels: rows of 8 blocks, of which c = 0 and c = 1 are rotated.
    %y = linalg.generic ins(%x0, %x1, %cos0, ..., %x : ..., tensor<24x4608x8x16xf16>)
        outs(%empty : tensor<24x4608x8x16xf16>) { linalg.index 2 ... arith.select ... }

Every product and sum is the program's, in the program's type and order, so results are the
same up to what a backend contracts to fused multiply-adds. Cosines and sines that are
computed a head, or stand in memory such that no vector can load them, are put in tables, by
one generic for all that one tensor of angles gives. Transposes and casts behind the rotation
become part of it. Channels that are not rotated are selected, which leaves their bits as they are.

Left alone when, each with a remark that says so:

- the partner of a channel has another partner: pairs of the wrong stride;
- the signs are not those of a rotation: y0 = x0·c + x1·s;
- the two channels of a pair have different tables;
- the channels of a row are not next to each other in memory;
- the rotated channels have another use;
- the channels that are not rotated come from elsewhere, or the row does not split into few blocks
  of which the rotated ones are whole: what is rotated is vectorized, their concatenation stays;
- an entry of a table is read from a place that is no dim of a tensor.

Source: https://arxiv.org/abs/2104.09864
"""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.emit import erase_dead_producers
from prepass.ir.match import find_ops, is_dead
from prepass.ir.rope.build import build_rotation
from prepass.ir.rope.match import match_rotation
from prepass.ir.rope.rotation import NotARotation, Rotation
from prepass.ir.rope.tables import Tables
from prepass.pipeline.base import Pass, PassContext

_ROOTS = ("tensor.collapse_shape", "tensor.concat", "tensor.insert_slice")


def _is_candidate(op: ir.Operation) -> bool:
    return (op.name.startswith("linalg.") and len(op.results) == 1) or op.name in _ROOTS


def _match(op: ir.Operation) -> Rotation | None:
    rotation = None if is_dead(op) else match_rotation(op.result)
    return None if rotation is None or rotation.is_canonical else rotation


@dataclass(frozen=True)
class CanonicalizeRopePass(Pass):
    """Bring rotary embeddings to one form that vectorizes."""

    name = "prepass-canonicalize-rope"
    followed_by = ("prepass-configure-rope",)
    dependent_dialects = ("arith", "complex", "flow", "iree_tensor_ext", "linalg", "math", "tensor")

    def run(self, op: ir.Operation, context: PassContext) -> None:
        tables, done, explained, replaced = Tables(), set(), set(), []
        for candidate in reversed(find_ops(op, _is_candidate, ir.WalkOrder.PRE_ORDER)):
            if candidate in done:
                continue
            try:
                rotation = _match(candidate)
                if rotation is None:
                    continue
                rotation = tables.settle(rotation)
            except NotARotation as miss:
                if miss.op not in explained:
                    context.missed_match(miss)
                explained.update(miss.ops)
                continue
            form = "pairs of neighbours" if rotation.interleaved else "halves"
            context.applied(candidate, f"rotation of {form} vectorized")
            context.count("canonicalized")
            with ir.InsertionPoint(candidate), candidate.location:
                value = build_rotation(rotation)
            candidate.result.replace_all_uses_with(value)
            done.update(rotation.ops)
            replaced.append(candidate.result)
        erase_dead_producers(replaced)

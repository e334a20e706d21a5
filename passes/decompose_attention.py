# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Turn small attention into two contractions and a softmax, where a CPU is faster with them.

For llvm-cpu the attention kernel computes rows of scores in registers and saves the memory
of the scores. Where all scores fit the cache there is little to save, and the larger tiles of
two contractions win: for 12 heads of 128 tokens (BERT), and for 8 heads of 1024 tokens when
the head dim is 128, where IREE's vector limit leaves the kernel a row or two at a time.

Before:

    %o = iree_linalg_ext.attention {indexing_maps = [...]}
        ins(%q, %k, %v, %scale : tensor<12x128x64xf32>, tensor<12x128x64xf32>, tensor<12x128x64xf32>, f32) ...

After:

    %s = linalg.generic ins(%q, %k : ...) outs(%zeros : tensor<12x128x128xf32>) {mulf, addf}
    %t = linalg.generic ins(%s) outs(%empty : tensor<12x128x128xf32>) {mulf by %scale}
    %p = linalg.softmax dimension(2) ins(%t : tensor<12x128x128xf32>) ...
    %o = linalg.generic ins(%p, %v : ...) outs(%zeros : tensor<12x128x64xf32>) {mulf, addf}

A float mask is added, a mask of bits selects -inf, as the op does. Scores, softmax and sums are f32, whatever
the type of Q, K and V.

With `when=always` it is done for every target and size, as a reference that attention kernels can be compared with.

Left alone when, each with a remark that says so:

- no target is known, or the target computes this attention as fast in one kernel: another
  than llvm-cpu, other than f32, a dynamic size, sizes that do not fill vectors, or scores
  that do not fit the cache; with `when=always` only a dynamic size;
- the region changes the scores;
- the mask is of numbers that are neither floats nor bits;
- the loops are not those of attention.

Source: https://iree.dev/reference/mlir-dialects/LinalgExt/#iree_linalg_extattention-linalgextattentionop
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg

from prepass.ir.attention.build import OP_NAME
from prepass.ir.attention.read import operand_maps, read_attention_shape
from prepass.ir.casts.widen import cast
from prepass.ir.elementwise import cast_tensor
from prepass.ir.emit import constant, generic
from prepass.ir.expressions import element_type, loop_positions, tensor_sizes
from prepass.ir.match import NoMatch, walk_ops
from prepass.ir.targets import Target
from prepass.ir.targets.attention import decomposed_is_faster
from prepass.pipeline.base import Pass, PassContext
from prepass.pipeline.options import option


@dataclass(frozen=True)
class _Operands:
    """An attention op with static f32 operands, each with the map that places its dims in the loops."""

    query: ir.Value
    key: ir.Value
    value: ir.Value
    scale: ir.Value
    mask: ir.Value | None
    init: ir.Value
    maps: tuple[ir.AffineMap, ...]

    @property
    def mask_map(self) -> ir.AffineMap:
        return self.maps[4]

    @property
    def scores_loops(self) -> list[int]:
        """The loops of the scores: those of the result without V's channels, then the keys."""
        channels = {*loop_positions(self.maps[2])} - {*loop_positions(self.maps[0])} - {*loop_positions(self.maps[1])}
        return [loop for loop in loop_positions(self.maps[-1]) if loop not in channels] + [self.maps[0].n_dims - 1]


def _match_operands(op: ir.Operation, target: Target | None, when: str) -> _Operands:
    shape = read_attention_shape(op)
    if when == "always":
        if None in (*shape.batch, shape.m, shape.n, shape.k1, shape.k2):
            raise NoMatch("a size is dynamic", op)
    elif target is None:
        raise NoMatch("no target is known", op)
    elif not decomposed_is_faster(target, shape):
        raise NoMatch(f"{target.name} computes this attention as fast in one kernel", op)
    block = op.regions[0].blocks[0]
    if len(list(block.operations)) != 1 or block.operations[0].operands[0] != block.arguments[0]:
        raise NoMatch("the region changes the scores", op)
    query, key, value, scale, *rest = op.operands
    mask = rest[0] if shape.masked else None
    if mask is not None and not isinstance(element_type(mask), ir.FloatType) and str(element_type(mask)) != "i1":
        raise NoMatch("the mask is of numbers that are neither floats nor bits", op)
    maps = tuple(operand_maps(op))
    return _Operands(query, key, value, scale, mask, rest[-1], maps)


def _build_decomposed(operands: _Operands) -> ir.Value:
    query_map, key_map, value_map, *_, result_map = operands.maps
    loops = operands.scores_loops
    extents = _extents(operands)
    scores_map = ir.AffineMap.get(query_map.n_dims, 0, [ir.AffineExpr.get_dim(loop) for loop in loops])
    scores_type = ir.RankedTensorType.get([extents[loop] for loop in loops], ir.F32Type.get())
    products = _contract(operands.query, operands.key, scores_type, (query_map, key_map, scores_map))
    scores = _scale_and_mask(products, operands, loops)
    dimension = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), len(loops) - 1)
    init = ir.Operation.create("tensor.empty", [scores_type]).result
    weights = ir.Operation.create("linalg.softmax", [scores_type], [scores, init], {"dimension": dimension}).result
    result = ir.RankedTensorType(operands.init.type)
    wide = ir.RankedTensorType.get(result.shape, ir.F32Type.get())
    value = _contract(weights, operands.value, wide, (scores_map, value_map, result_map))
    return value if result == wide else cast_tensor(value, result.element_type)


def _contract(left: ir.Value, right: ir.Value, type_: ir.Type, maps: Sequence[ir.AffineMap]) -> ir.Value:
    """The contraction of two operands, in f32, over the loops that the result does not have."""
    used = sorted({loop for m in maps for loop in loop_positions(m)})
    place = {loop: number for number, loop in enumerate(used)}
    compressed = [
        ir.AffineMap.get(len(used), 0, [ir.AffineExpr.get_dim(place[d]) for d in loop_positions(m)]) for m in maps
    ]
    empty = ir.Operation.create("tensor.empty", [type_]).result
    zeros = linalg.fill(constant(0.0, ir.F32Type.get()), outs=[empty])

    def multiply_add(arguments: Sequence[ir.Value]) -> ir.Value:
        left, right = (cast(argument, type_.element_type) for argument in arguments[:2])
        return arith.addf(arith.mulf(left, right), arguments[2])

    return generic([left, right], zeros, compressed, multiply_add)


def _scale_and_mask(scores: ir.Value, operands: _Operands, loops: Sequence[int]) -> ir.Value:
    rank = len(loops)
    identity = ir.AffineMap.get_identity(rank)
    inputs, maps = [scores], [identity]
    if operands.mask is not None:
        inputs.append(operands.mask)
        dims = [ir.AffineExpr.get_dim(loops.index(loop)) for loop in loop_positions(operands.mask_map)]
        maps.append(ir.AffineMap.get(rank, 0, dims))

    scale = cast(operands.scale, ir.F32Type.get())

    def body(arguments: Sequence[ir.Value]) -> ir.Value:
        scaled = arith.mulf(arguments[0], scale)
        return scaled if operands.mask is None else _masked(scaled, arguments[1])

    init = ir.Operation.create("tensor.empty", [scores.type]).result
    return generic(inputs, init, [*maps, identity], body)


def _masked(score: ir.Value, mask: ir.Value) -> ir.Value:
    """The score under a mask element, a float to add or a bit that keeps it."""
    if isinstance(mask.type, ir.IntegerType):
        return arith.select(mask, score, constant(-math.inf, score.type))
    return arith.addf(score, cast(mask, score.type))


def _extents(operands: _Operands) -> dict[int, int]:
    tensors = zip((operands.query, operands.key, operands.value), operands.maps, strict=False)
    return {
        loop: size or 0
        for tensor, affine_map in tensors
        for loop, size in zip(loop_positions(affine_map), tensor_sizes(tensor), strict=True)
    }


@dataclass(frozen=True)
class DecomposeAttentionPass(Pass):
    """Turn small attention into two contractions and a softmax, where a CPU is faster with them."""

    name = "prepass-decompose-attention"
    dependent_dialects = ("arith", "linalg", "tensor")
    when: Literal["gains", "always"] = option("gains", help="Only where the target gains from it, or wherever right.")

    def run(self, op: ir.Operation, context: PassContext) -> None:
        for attention, operands in context.matches(
            walk_ops(op, OP_NAME), lambda attention: _match_operands(attention, context.target, self.when)
        ):
            context.applied(attention, "decomposed into two contractions and a softmax")
            context.count("decomposed")
            with ir.InsertionPoint(attention), attention.location:
                attention.result.replace_all_uses_with(_build_decomposed(operands))
            attention.erase()

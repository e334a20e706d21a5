# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention whose K and V are copied for each query head that shares them, made to read them as they are."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from prepass.ir.attention.build import OP_NAME
from prepass.ir.attention.loops import Loops, find_loops
from prepass.ir.attention.operands import sources
from prepass.ir.attention.read import operand_maps
from prepass.ir.axes import Axis, Index, index_leaves
from prepass.ir.emit import Extents, empty, relayout
from prepass.ir.expressions import Read, element_type, tensor_sizes
from prepass.ir.match import NoMatch

_MASK = 4
_OPERANDS = 3


def match_shared_heads(op: ir.Operation) -> tuple[list[Read], Loops] | None:
    """What Q, K, V, the result and the mask are read from, and the loops; None when no head is copied."""
    maps = operand_maps(op)
    axes = _loop_axes(op, maps)
    reads = [_read(value, map_, axes) for value, map_ in zip(op.operands, maps, strict=False)]
    result = _read(op.results[0], maps[-1], axes)
    furthest = [_furthest(read) for read in reads[:_OPERANDS]]
    copied = [
        len(index_leaves(far.index)) < len(index_leaves(near.index)) for far, near in zip(furthest, reads, strict=False)
    ]
    if not any(copied):
        return None
    mask = reads[_MASK : len(maps) - 1]
    mask_axes = {axis for read in mask for axis in index_leaves(read.index)}
    loops = find_loops(*furthest, result, mask_axes, merge_batch=False)
    if loops is None or None in (axis.extent for loop in loops.all for axis in loop):
        raise NoMatch("the dims of Q, K, V and the result do not line up as attention", op)
    return [*furthest, *mask, result], loops


def build_shared_heads(op: ir.Operation, reads: Sequence[Read], loops: Loops) -> ir.Value:
    """The op with these operands at the current insertion point; its body is taken from `op`, which is to be erased."""
    query, key, value, *mask, result = reads
    extents = Extents([])
    dims = [loops.query_dims(query), loops.key_dims(key), loops.value_dims(value)]
    values = [relayout(read.value, read.index, index, extents) for read, index in zip(reads, dims, strict=False)]
    values.append(op.operands[_OPERANDS])
    indices: list[Index] = [*dims, ()]
    for read in mask:
        index = loops.mask_index(set(index_leaves(read.index)))
        values.append(relayout(read.value, read.index, index, extents))
        indices.append(index)
    result_dims = loops.result_dims(result)
    init = empty(result_dims, element_type(op.results[0]), extents)
    maps = [ir.AffineMapAttr.get(_map(loops.all, index)) for index in (*indices, result_dims)]
    attributes = {name: op.attributes[name] for name in op.attributes} | {"indexing_maps": ir.ArrayAttr.get(maps)}
    made = ir.Operation.create(OP_NAME, [init.type], [*values, init], attributes, regions=1)
    op.regions[0].blocks[0].append_to(made.regions[0])
    return relayout(made.results[0], result_dims, result.index, extents)


def _loop_axes(op: ir.Operation, maps: Sequence[ir.AffineMap]) -> list[Axis]:
    sizes: list[int | None] = [None] * maps[0].n_dims
    for operand, map_ in zip(op.operands, maps, strict=True):
        if not map_.is_projected_permutation:
            raise NoMatch("an indexing map is not a projected permutation", op)
        if isinstance(operand.type, ir.RankedTensorType):
            for size, expr in zip(tensor_sizes(operand), map_.results, strict=True):
                sizes[expr.position] = size if size is not None else sizes[expr.position]
    return [Axis(size) for size in sizes]


def _read(value: ir.Value, map_: ir.AffineMap, axes: Sequence[Axis]) -> Read:
    return Read(value, tuple((axes[ir.AffineDimExpr(expr).position],) for expr in map_.results))


def _furthest(read: Read) -> Read:
    """The same elements as far up as they are only moved."""
    same = [found.read for found in sources(read, scaled=False) if found.element_type == element_type(read.value)]
    return same[-1]


def _map(loops: Index, index: Index) -> ir.AffineMap:
    return ir.AffineMap.get(len(loops), 0, [ir.AffineExpr.get_dim(loops.index(loop)) for loop in index])

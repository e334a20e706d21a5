# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Putting the rotation of the query into the dispatch of its attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.attention.build import OP_NAME
from prepass.ir.attention.read import loop_kinds
from prepass.ir.axes import Axis, Group, Index, index_leaves, leaves, resolve
from prepass.ir.elementwise import VIEWS, moves_only
from prepass.ir.emit import Extents, empty, erase_dead_producers, relayout
from prepass.ir.expressions import Read, element_type, expand, tensor_sizes
from prepass.ir.match import NoMatch, has_one_user, is_dead
from prepass.ir.rope.build import Blocks, build_blocks, each_axis
from prepass.ir.rope.inputs import axes_map
from prepass.ir.rope.match import match_rotation
from prepass.ir.rope.regions import open_region, sizes_of, tensor_type
from prepass.ir.rope.rotation import NotARotation, Rotation
from prepass.ir.rope.tables import Tables
from prepass.ir.targets.attention_shape import AttentionShape

_QUERY, _KEY = 0, 1
_LOOPS = ("n", "k1", "k2")


@dataclass(frozen=True)
class RotatedAttention:
    """An attention whose query is a rotation.

    Attributes:
      op: The attention.
      kinds: What each of its loops is: "batch", "m", "n", "k1" or "k2".
      maps: The loops of each operand's dims.
      query: The rotation of the query.
      key: That of the key, if it is one; where pairs are neighbours its channels must change places.
    """

    op: ir.Operation
    kinds: tuple[str, ...]
    maps: tuple[tuple[int, ...], ...]
    query: Rotation
    key: Rotation | None

    @property
    def shape(self) -> AttentionShape:
        """The extents of the loops, with those that IREE drops left out."""
        op, kinds, maps = self.op, self.kinds, self.maps
        sizes = {
            loop: size
            for operand, dims in zip(op.operands, maps, strict=True)
            if _is_tensor(operand)
            for loop, size in zip(dims, tensor_sizes(operand), strict=True)
        }
        last = {kind: next((sizes[n] for n in reversed(range(len(kinds))) if kinds[n] == kind), 1) for kind in _LOOPS}
        queries = [n for n, kind in enumerate(kinds) if kind == "m" and sizes[n] != 1]
        return AttentionShape(
            batch=tuple(sizes[n] for n, kind in enumerate(kinds) if kind == "batch"),
            m=sizes[queries[-1]] if queries else 1,
            n=last["n"],
            k1=last["k1"],
            k2=last["k2"],
            element_type=str(element_type(op.operands[_QUERY])),
            value_transposed=kinds[maps[2][-1]] == "k2",
            key_transposed=False,
            masked=len(maps) == 6,
            k1_loops=2,
            k1_width=self.query.block_width(packed=False),
        )


def match_rotated_attention(op: ir.Operation) -> RotatedAttention:
    """Raises NoMatch where the query is no rotation, or the key not the one that goes with it."""
    kinds, maps = loop_kinds(op)
    if "" in kinds:
        raise NoMatch("the loops are not those of attention", op)
    query = _match_operand(op, maps, _QUERY, kinds)
    if query is None:
        raise NoMatch("the query is not a rotary embedding", op)
    try:
        key = _match_operand(op, maps, _KEY, kinds)
    except NotARotation:
        if query.interleaved:
            raise
        key = None
    if query.interleaved:
        if key is None or not key.interleaved:
            raise NoMatch("the query is rotated in pairs of neighbours and the key is not", op)
        if _order(key) != _order(query):
            raise NoMatch("other channels are rotated in the query than in the key", op)
    return RotatedAttention(op, tuple(kinds), tuple(map(tuple, maps)), query, key)


def _order(rotation: Rotation) -> tuple[int | None, ...]:
    """What the order of the channels depends on in which a rotation is built."""
    row = rotation.row
    return (rotation.half.extent,) if row is None else (rotation.half.extent, row.begin, row.channels)


def _match_operand(
    op: ir.Operation, maps: Sequence[Sequence[int]], number: int, kinds: Sequence[str]
) -> Rotation | None:
    value = op.operands[number]
    name = ("query", "key")[number]
    if kinds[maps[number][-1]] != "k1":
        return None
    rotation = match_rotation(value)
    if rotation is not None and not has_one_user(value):
        raise NoMatch(f"the rotated {name} has another use", op)
    return rotation


def fuse_query(attention: RotatedAttention, tables: Tables) -> None:
    """Replace the attention by one in a dispatch region, together with the rotation of its query.

    What only transposes and reshapes the result becomes part of the attention.
    """
    op, query = attention.op, tables.settle(attention.query)
    blocks = Blocks(query)
    loops = _loops(attention, query, blocks)
    values = list(op.operands)
    extents = Extents([Read(v, _index(d, loops)) for v, d in zip(values, attention.maps, strict=True) if _is_tensor(v)])
    indices = [_index(dims, loops) for dims in attention.maps]
    if query.interleaved and attention.key is not None:
        values[_KEY] = _build_key(tables.settle(attention.key))
    for number in range(_KEY if attention.key is None else _KEY + 1, len(values) - 1):
        values[number], indices[number] = _unmoved(values[number], indices[number])
    operands = [_flatten(values[n], indices[n], extents) for n in range(_KEY, len(values) - 1)]
    written = _match_written(op)
    result_dims = [attention.maps[-1][dim] for dim in written.order]
    result_axes = _leaves(result_dims, loops)
    region = open_region([tensor_type(result_axes, element_type(op.result))], sizes_of(result_axes, extents))
    with ir.InsertionPoint(region.regions[0].blocks[0]):
        operands = [(build_blocks(query, blocks), tuple(blocks.loops)), *operands]
        init = empty(tuple((axis,) for axis in result_axes), element_type(op.result), extents)
        operands.append((init, tuple(result_axes)))
        result = _build_attention(op, operands, _leaves(range(len(loops)), loops))
        ir.Operation.create("flow.return", [], [result])
    value = relayout(region.result, each_axis(result_axes), resolve(_index(result_dims, loops)), extents)
    if written.value != op.result:
        value = relayout(value, tuple(written.groups[dim] for dim in written.order), written.index, Extents([]))
    written.value.replace_all_uses_with(value)
    erase_dead_producers([written.value])
    if is_dead(op):
        producers = list(op.operands)
        op.erase()
        erase_dead_producers(producers)


@dataclass(frozen=True)
class _Written:
    """How the result of an attention is written.

    Attributes:
      value: The result, or what only transposes and reshapes make of it.
      order: The dims of the result in the order in which `value` has them.
      groups: What each dim of the result is in `value`.
      index: The dims of `value`.
    """

    value: ir.Value
    order: tuple[int, ...]
    groups: Index
    index: Index


def _match_written(op: ir.Operation) -> _Written:
    rank = ir.RankedTensorType(op.result.type).rank
    best = _Written(op.result, tuple(range(rank)), (), ())
    value = op.result
    while has_one_user(value) and _only_moves(user := next(iter(value.uses)).owner.operation):
        value = user.result
        found = _read_moves(value, op.result)
        if found is not None:
            best = found
    return best


def _only_moves(op: ir.Operation) -> bool:
    if len(op.results) != 1 or not _is_tensor(op.result) or None in tensor_sizes(op.result):
        return False
    return op.name in VIEWS or (op.name.startswith("linalg.") and len(op.operands) == 2 and moves_only(op))


def _read_moves(value: ir.Value, source: ir.Value) -> _Written | None:
    index = tuple((Axis(size),) for size in tensor_sizes(value))
    read: object = Read(value, index)
    while isinstance(read, Read) and read.value != source:
        read = expand(read)
    if not isinstance(read, Read):
        return None
    groups, order = resolve(read.index), list(index_leaves(index))
    dims = sorted(range(len(groups)), key=lambda dim: order.index(groups[dim][0]) if groups[dim] else -1)
    if [axis for dim in dims for axis in groups[dim]] != order:
        return None
    return _Written(value, tuple(dims), groups, index)


def _loops(attention: RotatedAttention, query: Rotation, blocks: Blocks) -> list[Axis]:
    """An axis a loop; those of the query are the rows of its rotation."""
    loops: dict[int, Axis] = dict(zip(attention.maps[_QUERY], query.rows, strict=False))
    channels = Axis((blocks.axis.extent or 0) * (blocks.inside.extent or 0))
    channels.parts = (blocks.axis, blocks.inside)
    loops[attention.maps[_QUERY][-1]] = channels
    for operand, dims in zip(attention.op.operands, attention.maps, strict=True):
        for size, loop in zip(tensor_sizes(operand) if _is_tensor(operand) else (), dims, strict=True):
            loops.setdefault(loop, Axis(size))
    return [loops[number] for number in range(len(attention.kinds))]


def _index(dims: Sequence[int], loops: Sequence[Axis]) -> Index:
    return tuple((loops[loop],) for loop in dims)


def _leaves(dims: Sequence[int], loops: Sequence[Axis]) -> list[Axis]:
    return [axis for loop in dims for axis in leaves((loops[loop],))]


def _unmoved(value: ir.Value, index: Index) -> tuple[ir.Value, Index]:
    """What a tensor is a transpose, a broadcast or a reshape of; the attention can read that as well."""
    read = Read(value, index) if _is_tensor(value) else None
    while read is not None:
        value, index = read.value, read.index
        below = expand(read)
        read = below if isinstance(below, Read) and index_leaves(below.index) else None
    return value, index


def _flatten(value: ir.Value, index: Index, extents: Extents) -> tuple[ir.Value, Group]:
    """A tensor with a dim for each loop that is left, and these loops."""
    if not _is_tensor(value):
        return value, ()
    axes = index_leaves(index)
    return relayout(value, index, tuple((axis,) for axis in axes), extents), axes


def _build_key(key: Rotation) -> ir.Value:
    """The rotated key in the order of its channels that the query will have: all first ones, then all second ones."""
    blocks = Blocks(key)
    target = (*(leaves((axis,)) for axis in key.rows), (blocks.axis, blocks.inside))
    return relayout(build_blocks(key, blocks), each_axis(blocks.loops), target, blocks.inputs.extents)


def _build_attention(
    op: ir.Operation, operands: Sequence[tuple[ir.Value, Sequence[Axis]]], loops: Sequence[Axis]
) -> ir.Value:
    maps = [ir.AffineMapAttr.get(axes_map(loops, axes)) for _, axes in operands]
    attributes = {name: op.attributes[name] for name in op.attributes}
    attributes["indexing_maps"] = ir.ArrayAttr.get(maps)
    values = [value for value, _ in operands]
    built = ir.Operation.create(OP_NAME, [values[-1].type], values, attributes, regions=1)
    op.regions[0].blocks[0].append_to(built.regions[0])
    return built.result


def _is_tensor(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Building a rotation in a form that vectorizes.

Halves: one generic over (rows…, c, i) that reads both channels of a pair as rows of their own,
and of which c picks one. Neighbours: one generic over (rows…, i) that reads a pair as one integer.
Either way all loads and stores are of rows, and nothing is written with a stride. Where only some
channels are rotated, a row is blocks of that size: c, or a loop of its own, picks the rotated ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith

from prepass.ir.axes import Axis, Index, leaves
from prepass.ir.emit import Extents, constant, empty, generic, loop_index, relayout
from prepass.ir.expressions import element_type
from prepass.ir.rope.elements import Element, Node
from prepass.ir.rope.inputs import Inputs, emit_nodes
from prepass.ir.rope.operands import bitcast, pairs_type
from prepass.ir.rope.rotation import Rotation, at_part
from prepass.ir.rope.unify import unify


class Blocks:
    """What `build_blocks` computes, and what it reads: made first, as it need not be in the same place.

    Attributes:
      axis: Counts the blocks of a row: its two halves, or smaller ones where some channels are not rotated.
      inside: Counts the channels of a block.
      loops: Of the generic.
      nodes: The block where there is but one expression for both halves. Otherwise the rotated blocks in order.
      unrotated: What the other blocks are.
    """

    def __init__(self, rotation: Rotation) -> None:
        row, width = rotation.row, rotation.block_width(packed=False)
        self.unrotated: Element | None = None
        self.axis = Axis(2 if row is None else row.channels // width)
        self.inside = rotation.half if row is None else Axis(width)
        self.loops = [*leaves(rotation.rows), self.axis, self.inside]
        self.inputs = Inputs(self.loops, self.inside)
        if row is None:
            self.nodes: list[Node] = [unify(*rotation.channels, self.axis, rotation)]
        else:
            self.nodes = [node for channel in rotation.channels for node in _parts(channel, rotation.half, self.inside)]
            self.unrotated = row.element(rotation, self.axis, self.inside, packed=False)
        self.inputs.add([*self.nodes, *([self.unrotated] if self.unrotated else [])])


def _parts(node: Node, half: Axis, inside: Axis) -> list[Node]:
    """What a node is in each part of a half."""
    return [at_part(node, half, inside, part) for part in range((half.extent or 1) // (inside.extent or 1))]


def build_rotation(rotation: Rotation) -> ir.Value:
    """The rotated tensor, in the type and layout of the program's."""
    grouped = tuple(leaves((axis,)) for axis in rotation.rows)
    if not rotation.interleaved:
        blocks = Blocks(rotation)
        value = build_blocks(rotation, blocks)
        last = (blocks.axis, blocks.inside)
        return relayout(value, each_axis(blocks.loops), (*grouped, last), blocks.inputs.extents)
    value, loops, extents = _build_pairs(rotation)
    type_ = ir.RankedTensorType(rotation.result.type)
    sizes = list(ir.RankedTensorType(value.type).shape)
    if type_.shape[-1] == 2:
        loops, shape = [*loops, Axis(2)], [*sizes, 2]
        last = ((rotation.half,), (loops[-1],))
    else:
        loops[-1] = Axis(sizes[-1] * 2)
        shape = [*sizes[:-1], sizes[-1] * 2]
        last = (tuple(loops[len(leaves(rotation.rows)) :]),)
    value = bitcast(value, ir.RankedTensorType.get(shape, type_.element_type))
    return relayout(value, each_axis(loops), (*grouped, *last), extents)


def build_blocks(rotation: Rotation, blocks: Blocks) -> ir.Value:
    """The rotated tensor with dims (rows…, c, i), c being which channel of a pair, whatever layout it is read in.

    Where only some channels are rotated c counts blocks of the row, and two of them are such.
    """
    inputs, row = blocks.inputs, rotation.row

    def body(arguments: Sequence[ir.Value]) -> ir.Value:
        leaf, at_block = inputs.leaf(arguments), _position_compared(len(blocks.loops) - 2)
        if row is None or blocks.unrotated is None:
            return emit_nodes(blocks.nodes, leaf, at_block(0))[0]
        first = row.begin // (blocks.inside.extent or 1)
        return _select(at_block, first, emit_nodes(blocks.nodes, leaf), leaf(blocks.unrotated))

    init = empty(each_axis(blocks.loops), element_type(rotation.result), inputs.extents)
    return generic(inputs.values, init, [*inputs.maps, ir.AffineMap.get_identity(len(blocks.loops))], body)


def _build_pairs(rotation: Rotation) -> tuple[ir.Value, list[Axis], Extents]:
    """The rotated tensor with dims (rows…, i), or (rows…, c, i) where c counts blocks, of pairs as integers."""
    row, half, element = rotation.row, rotation.half, element_type(rotation.result)
    inside = half if row is None else Axis(rotation.block_width(packed=True))
    width = inside.extent or 1
    block = [] if row is None else [Axis(row.channels // (2 * width))]
    loops = [*leaves(rotation.rows), *block, inside]
    inputs = Inputs(loops, inside)
    parts = list(zip(*(_parts(channel, half, inside) for channel in rotation.channels), strict=True))
    unrotated = [row.element(rotation, axis, inside, packed=True) for axis in block if row is not None]
    inputs.add([*(node for part in parts for node in part), *unrotated])

    def body(arguments: Sequence[ir.Value]) -> ir.Value:
        values = iter(emit_nodes([node for part in parts for node in part], inputs.leaf(arguments)))
        pairs = [_pack(low, high, element) for low, high in zip(values, values, strict=True)]
        if row is None:
            return pairs[0]
        at_block = _position_compared(len(loops) - 2)
        return _select(at_block, row.begin // (2 * width), pairs, inputs.argument(unrotated[0], arguments))

    init = empty(each_axis(loops), pairs_type(element), inputs.extents)
    maps = [*inputs.maps, ir.AffineMap.get_identity(len(loops))]
    return generic(inputs.values, init, maps, body), loops, inputs.extents


def _select(
    at_block: Callable[[int], ir.Value], first: int, rotated: Sequence[ir.Value], unrotated: ir.Value
) -> ir.Value:
    """The value of one of the rotated blocks, which begin with `first`, or of another."""
    value = unrotated
    for number, block in reversed(list(enumerate(rotated))):
        value = arith.select(at_block(first + number), block, value)
    return value


def _position_compared(loop: int) -> Callable[[int], ir.Value]:
    """What tells whether a loop of the generic whose body is built is at a position."""
    where = loop_index(loop)
    return lambda position: arith.cmpi(arith.CmpIPredicate.eq, where, constant(position, where.type))


def _pack(low: ir.Value, high: ir.Value, element: ir.Type) -> ir.Value:
    width = ir.FloatType(element).width
    bits, wide = ir.IntegerType.get_signless(width), pairs_type(element)
    low, high = (arith.extui(wide, arith.bitcast(bits, value)) for value in (low, high))
    return arith.ori(low, arith.shli(high, constant(width, wide)))


def each_axis(axes: Sequence[Axis]) -> Index:
    """A dim for each axis."""
    return tuple((axis,) for axis in axes)

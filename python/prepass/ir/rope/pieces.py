# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables that are put together from pieces along the channels, as for positions of several dims.

Image models give the first channels to one coordinate and the next to another. Their tables are
concatenations of repeated cosines, a dozen small dispatches; here each entry is computed where
it stands, from what the pieces are computed from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import arith

from prepass.ir.axes import Axis
from prepass.ir.elementwise import clone_body, has_plain_body
from prepass.ir.emit import constant, loop_index
from prepass.ir.expressions import Apply, indexing_maps, tensor_sizes
from prepass.ir.match import defining_op
from prepass.ir.rope.elements import Element, Node, at, expand, node_type
from prepass.ir.rope.places import Place

_LARGEST = 200


@dataclass(frozen=True)
class Piece:
    """Entries `begin` to `begin` + the extent of `axis`, which counts them from 0."""

    begin: int
    axis: Axis
    node: Node


@dataclass(frozen=True)
class Pieces:
    """An entry of a table that is one of several, by where it stands."""

    pieces: tuple[Piece, ...]

    @property
    def type(self) -> ir.Type:
        """The scalar type of the entry."""
        return node_type(self.pieces[0].node)


def match_pieces(node: Node, half: Axis) -> Pieces | None:
    """The pieces of an element of a concatenation along the pairs; None when it is no such thing."""
    op = defining_op(node.value) if isinstance(node, Element) else None
    if not isinstance(node, Element) or op is None or op.name != "tensor.concat":
        return None
    dim = ir.IntegerAttr(op.attributes["dim"]).value
    place = node.places[dim].resolved()
    if len(place.terms) != 1 or place.terms[0][0] is not half:
        return None
    unit = place.terms[0][1]
    if place.constant >= unit:
        return None
    pieces: list[Piece] = []
    begin = 0
    for operand in op.operands:
        size = tensor_sizes(operand)[dim]
        if size is None or size % unit or size == unit:
            return None
        axis = Axis(size // unit)
        here = at(axis).scaled(unit) + Place((), place.constant)
        read = Element(operand, (*node.places[:dim], here, *node.places[dim + 1 :]))
        pieces.append(Piece(begin, axis, expand_all(read)))
        begin += size // unit
    return Pieces(tuple(pieces)) if begin == half.extent else None


def expand_all(node: Node) -> Node:
    """A node over what is neither moved nor computed element by element."""
    left = _LARGEST

    def visit(node: Node) -> Node:
        nonlocal left
        left -= 1
        if left < 0:
            return node
        if isinstance(node, Element):
            below = expand(node)
            return node if below is None else visit(below)
        if isinstance(node, Apply):
            return Apply(node.name, tuple(visit(operand) for operand in node.operands), node.type, node.attributes)
        return node

    return visit(node)


def emit_pieces(
    pieces: Pieces, position: Callable[[Axis], ir.Value], half: Axis, emit: Callable[[Node, Callable], ir.Value]
) -> ir.Value:
    """The value of the entry at the position that the loops of a generic have.

    `emit` computes a node, given what reads the elements that depend on a piece's axis.
    """
    where = position(half)
    result: ir.Value | None = None
    for piece in reversed(pieces.pieces):

        def read(element: Element, piece: Piece = piece) -> ir.Value | None:
            return _extract(element, piece, position, where)

        value = emit(piece.node, read)
        if result is None:
            result = value
            continue
        end = constant(piece.begin + (piece.axis.extent or 0), where.type)
        is_before = arith.cmpi(arith.CmpIPredicate.ult, where, end)
        result = arith.select(is_before, value, result)
    if result is None:
        raise ValueError("a table without pieces")
    return result


def depends_on(element: Element, axis: Axis) -> bool:
    """Whether an element is read at a place that an axis counts."""
    return any(other is axis for place in element.places for other, _ in place.resolved().terms)


def _extract(element: Element, piece: Piece, position: Callable[[Axis], ir.Value], where: ir.Value) -> ir.Value | None:
    if not depends_on(element, piece.axis):
        return None
    index = where.type
    # Outside of the piece the entry is not taken, but it is read.
    below = arith.maxsi(where, constant(piece.begin, index))
    inside = arith.subi(below, constant(piece.begin, index))
    inside = arith.minsi(inside, constant((piece.axis.extent or 1) - 1, index))
    indices = [_index(place.resolved(), piece, inside, position) for place in element.places]
    counted = _counted(element.value, indices)
    if counted is not None:
        return counted
    type_ = ir.RankedTensorType(element.value.type).element_type
    return ir.Operation.create("tensor.extract", [type_], [element.value, *indices]).result


def _counted(value: ir.Value, indices: Sequence[ir.Value]) -> ir.Value | None:
    """The element of a tensor that is computed of where it stands alone, as an `arange` is: it needs no tensor."""
    op = defining_op(value)
    if op is None or op.name != "linalg.generic" or len(op.operands) != 1 or not has_plain_body(op):
        return None
    body = op.regions[0].blocks[0]
    ops = [inner.operation for inner in body.operations]
    reads = any(inner.name.split(".")[0] == "tensor" for inner in ops)
    if reads or any(operand == body.arguments[0] for inner in ops for operand in inner.operands):
        return None
    if indexing_maps(op) != [ir.AffineMap.get_identity(len(indices))]:
        return None
    where = {
        inner.result: indices[ir.IntegerAttr(inner.attributes["dim"]).value]
        for inner in ops
        if inner.name == "linalg.index"
    }
    return clone_body(op, where)[0]


def _index(place: Place, piece: Piece, inside: ir.Value, position: Callable[[Axis], ir.Value]) -> ir.Value:
    total = constant(place.constant, inside.type)
    for axis, unit in place.terms:
        value = inside if axis is piece.axis else position(axis)
        total = arith.addi(total, arith.muli(value, constant(unit, inside.type)))
    return total


def loop_indices(loops: Sequence[Axis]) -> Callable[[Axis], ir.Value]:
    """What gives the position of a loop in the body of a generic."""

    def position(axis: Axis) -> ir.Value:
        return loop_index(list(loops).index(axis))

    return position

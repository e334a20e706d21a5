# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of cosines and sines that the program does not have, or has in a layout that no vector can load."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from iree.compiler import ir

from prepass.ir.axes import Axis, leaves
from prepass.ir.emit import empty, generics
from prepass.ir.expressions import Apply, Constant, Scalar
from prepass.ir.match import defining_op
from prepass.ir.rope.elements import Element, Node, at, node_type
from prepass.ir.rope.inputs import Inputs, emit_nodes
from prepass.ir.rope.operands import is_expressible, is_readable
from prepass.ir.rope.pieces import Pieces, depends_on, emit_pieces, expand_all, loop_indices, match_pieces
from prepass.ir.rope.regions import open_region, sizes_of, tensor_type
from prepass.ir.rope.rotation import NotARotation, Rotation, elements_of

UNREADABLE = "an entry of a table is read from a place that is no dim of a tensor"


class Tables:
    """The tables made for the rotations of a program, each once."""

    def __init__(self) -> None:
        self._made: dict[tuple, list[ir.Value]] = {}

    def settle(self, rotation: Rotation) -> Rotation:
        """The rotation reading tables where it would compute entries.

        The tables are made where the last tensor they are computed from is.
        """
        wanted = self._wanted(rotation)
        if not wanted:
            return rotation
        entries = list(wanted.values())
        for element in (element for entry in entries for element in _operands(entry)):
            if not is_expressible(element):
                raise NotARotation(UNREADABLE, rotation.ops)
        axes = _axes(entries, rotation)
        keys = [_entry_key(entry, axes) for entry in entries]
        distinct = dict(zip(keys, entries, strict=True))
        key = tuple(distinct)
        if key not in self._made:
            self._made[key] = _build(list(distinct.values()), axes, rotation)
        tables = dict(zip(distinct, self._made[key], strict=True))
        places = tuple(at(axis) for axis in axes)
        found = {node: Element(tables[key], places) for node, key in zip(wanted, keys, strict=True)}
        low, high = (_substitute(node, found) for node in rotation.channels)
        return replace(rotation, channels=(low, high))

    def _wanted(self, rotation: Rotation) -> dict[Node, Node | Pieces]:
        """The entries that no tensor of the program gives by rows, and what they are computed from."""
        wanted: dict[Node, Node | Pieces] = {}
        for node in (table for channel in rotation.channels for table in _tables(channel, rotation)):
            base = _without_signs(node)
            if isinstance(base, (Constant, Scalar)):
                continue
            pieces, computed = match_pieces(base, rotation.half), expand_all(base)
            readable = isinstance(base, Element) and is_readable(base, rotation.half, rotation.interleaved)
            if pieces is not None or not readable or _has_function(computed):
                wanted[base] = pieces or computed
        return wanted


def _has_function(node: Node) -> bool:
    """Whether a cosine or the like is computed."""
    if not isinstance(node, Apply):
        return False
    return node.name.startswith("math.") or any(_has_function(operand) for operand in node.operands)


def _tables(node: Node, rotation: Rotation) -> list[Node]:
    """The parts of a channel that are computed without the channels of the source."""
    if not any(is_channel(element, rotation) for element in elements_of(node)):
        return [node]
    if not isinstance(node, Apply):
        return []
    return [table for operand in node.operands for table in _tables(operand, rotation)]


def is_channel(element: Element, rotation: Rotation) -> bool:
    """Whether an element is one of the source that is rotated."""
    places = tuple(place.resolved() for place in element.places)
    return element.value == rotation.source and places in (rotation.low, rotation.high)


def _without_signs(node: Node) -> Node:
    while isinstance(node, Apply) and node.name in ("arith.extf", "arith.negf"):
        node = node.operands[0]
    return node


def _all_elements(entry: Node | Pieces) -> list[Element]:
    nodes = [piece.node for piece in entry.pieces] if isinstance(entry, Pieces) else [entry]
    return [element for node in nodes for element in elements_of(node)]


def _operands(entry: Node | Pieces) -> list[Element]:
    """The elements that are operands of the generic; those that depend on a piece are extracted in its body."""
    pieces = entry.pieces if isinstance(entry, Pieces) else ()
    return [element for element in _all_elements(entry) if not any(depends_on(element, piece.axis) for piece in pieces)]


def _axes(entries: Sequence[Node | Pieces], rotation: Rotation) -> list[Axis]:
    """The axes that tables vary along, pairs last."""
    used = {
        axis
        for entry in entries
        for element in _all_elements(entry)
        for place in element.places
        for axis, _ in place.resolved().terms
    }
    return [axis for axis in leaves(rotation.rows) if axis in used] + [rotation.half]


def _entry_key(entry: Node | Pieces, axes: Sequence[Axis]) -> tuple:
    """Equal for entries that are equal, whatever the axes of their pieces are called."""
    if isinstance(entry, Pieces):
        return tuple((piece.begin, _key(piece.node, [*axes, piece.axis])) for piece in entry.pieces)
    return _key(entry, axes)


def _key(node: Node, axes: Sequence[Axis]) -> tuple:
    if isinstance(node, Element):
        places = (place.resolved() for place in node.places)
        return node.value, *((*((axes.index(a), c) for a, c in place.terms), place.constant) for place in places)
    if isinstance(node, Apply):
        return node.name, node.attributes, *(_key(operand, axes) for operand in node.operands)
    return (node.value,)


def _build(entries: Sequence[Node | Pieces], axes: Sequence[Axis], rotation: Rotation) -> list[ir.Value]:
    """The tables; cosines in a dispatch region, as IREE would compute them for every head in the kernel."""
    with _after_sources(entries, rotation):
        inputs = Inputs(axes, None)
        inputs.add([element for entry in entries for element in _operands(entry)])
        if all(_is_constant(value) for value in _sources(entries)) or not any(map(_computes, entries)):
            return _build_generic(entries, axes, inputs, rotation.half)
        types = [tensor_type(axes, _type(entry)) for entry in entries]
        region = open_region(types, sizes_of(axes, inputs.extents) * len(entries))
        with ir.InsertionPoint(region.regions[0].blocks[0]):
            ir.Operation.create("flow.return", [], _build_generic(entries, axes, inputs, rotation.half))
        return list(region.results)


def _type(entry: Node | Pieces) -> ir.Type:
    return entry.type if isinstance(entry, Pieces) else node_type(entry)


def _computes(entry: Node | Pieces) -> bool:
    nodes = [piece.node for piece in entry.pieces] if isinstance(entry, Pieces) else [entry]
    return any(_has_function(node) for node in nodes)


def _is_constant(value: ir.Value) -> bool:
    op = defining_op(value)
    return op is not None and op.name in ("arith.constant", "util.global.load")


def _build_generic(
    entries: Sequence[Node | Pieces], axes: Sequence[Axis], inputs: Inputs, half: Axis
) -> list[ir.Value]:
    position = loop_indices(axes)
    index = tuple((axis,) for axis in axes)
    inits = [empty(index, _type(entry), inputs.extents) for entry in entries]
    maps = [*inputs.maps, *[ir.AffineMap.get_identity(len(axes))] * len(entries)]

    def body(arguments: Sequence[ir.Value]) -> list[ir.Value]:
        leaf = inputs.leaf(arguments)

        def emit(node: Node, extract: Callable[[Element], ir.Value | None]) -> ir.Value:
            (value,) = emit_nodes([node], lambda element: extract(element) or leaf(element))
            return value

        whole = iter(emit_nodes([entry for entry in entries if not isinstance(entry, Pieces)], leaf))
        return [
            emit_pieces(entry, position, half, emit) if isinstance(entry, Pieces) else next(whole) for entry in entries
        ]

    return generics(inputs.values, inits, maps, body)


def _after_sources(entries: Sequence[Node | Pieces], rotation: Rotation) -> ir.InsertionPoint:
    """Where all that tables are computed from is there."""
    block = rotation.ops[0].block
    sources = [defining_op(value) for value in _sources(entries)]
    waiting = {op for op in sources if op is not None and op.block == block}
    for op in block.operations:
        if not waiting:
            return ir.InsertionPoint(op.operation)
        waiting.discard(op.operation)
    raise ValueError("a tensor is read after the block it is made in")


def _sources(entries: Sequence[Node | Pieces]) -> list[ir.Value]:
    nodes = [node for e in entries for node in ([p.node for p in e.pieces] if isinstance(e, Pieces) else [e])]
    return [value for node in nodes for value in _values(node)]


def _values(node: Node) -> list[ir.Value]:
    if isinstance(node, (Element, Scalar)):
        return [node.value]
    return [value for operand in node.operands for value in _values(operand)] if isinstance(node, Apply) else []


def _substitute(node: Node, found: dict[Node, Element]) -> Node:
    if node in found:
        return found[node]
    if not isinstance(node, Apply):
        return node
    return replace(node, operands=tuple(_substitute(operand, found) for operand in node.operands))

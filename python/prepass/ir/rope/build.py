# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Building a rotation in a form that vectorises.

Halves: one generic over (rows…, c, i) that reads both channels of a pair as rows of their own,
and of which c picks one. Neighbours: one generic over (rows…, i) that reads a pair as one integer.
Either way all loads and stores are of rows, and nothing is written with a stride.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith

from prepass.ir.axes import Axis, Index, leaves
from prepass.ir.emit import Extents, constant, empty, generic, relayout
from prepass.ir.expressions import Apply, Constant, Read, Scalar, element_type
from prepass.ir.rope.elements import Element, Node
from prepass.ir.rope.match import Rotation, elements_of
from prepass.ir.rope.operands import Operand, bitcast, is_packed, packed_part, pairs_type, row_operand
from prepass.ir.rope.unify import ONE_OF, unify

Leaf = Callable[[Element], ir.Value]


class Inputs:
    """The inputs of a generic, each tensor once."""

    def __init__(self, loops: Sequence[Axis], half: Axis | None) -> None:
        self._loops = list(loops)
        self._half = half
        self._numbers: dict[tuple, int] = {}
        self.operands: list[Operand] = []

    def add(self, nodes: Sequence[Node]) -> None:
        """Read the elements that nodes are computed from."""
        for element in (element for node in nodes for element in elements_of(node)):
            key = self._key(element)
            if key not in self._numbers:
                self._numbers[key] = len(self.operands)
                self.operands.append(row_operand(element, self._half))

    @property
    def values(self) -> list[ir.Value]:
        """The tensors."""
        return [operand.value for operand in self.operands]

    @property
    def maps(self) -> list[ir.AffineMap]:
        """Their indexing maps."""
        return [axes_map(self._loops, operand.axes) for operand in self.operands]

    @property
    def extents(self) -> Extents:
        """Where the extents of the loops are found."""
        return Extents([Read(operand.value, tuple((axis,) for axis in operand.axes)) for operand in self.operands])

    def leaf(self, arguments: Sequence[ir.Value]) -> Leaf:
        """What gives the value of an element from the block arguments."""

        def value(element: Element) -> ir.Value:
            argument = arguments[self._numbers[self._key(element)]]
            if not is_packed(element, self._half):
                return argument
            return _unpack(argument, element_type(element.value), packed_part(element))

        return value

    def _key(self, element: Element) -> tuple:
        places = [(place.terms, place.constant) for place in (place.resolved() for place in element.places)]
        if is_packed(element, self._half):
            terms, number = places[-1]
            places[-1] = terms, number - packed_part(element)
        return element.value, tuple(places)


def axes_map(loops: Sequence[Axis], axes: Sequence[Axis]) -> ir.AffineMap:
    """The indexing map of a tensor whose dims are some of the loops."""
    return ir.AffineMap.get(len(loops), 0, [ir.AffineExpr.get_dim(list(loops).index(axis)) for axis in axes])


class Halves:
    """What `build_halves` computes, and what it reads: made first, as it need not be in the same place."""

    def __init__(self, rotation: Rotation, rows: Sequence[Axis], pair: Axis) -> None:
        self.node = unify(*rotation.channels, pair, rotation)
        self.inputs = Inputs([*rows, pair, rotation.half], rotation.half)
        self.inputs.add([self.node])


def build_rotation(rotation: Rotation) -> ir.Value:
    """The rotated tensor, in the type and layout of the program's."""
    if not rotation.interleaved:
        pair, rows = Axis(2), leaves(rotation.rows)
        halves = Halves(rotation, rows, pair)
        value = build_halves(rotation, rows, pair, halves)
        index = each_axis([*rows, pair, rotation.half])
        return relayout(value, index, (*_grouped(rotation), (pair, rotation.half)), halves.inputs.extents)
    value, extents = _build_pairs(rotation)
    type_ = ir.RankedTensorType(rotation.result.type)
    rows = each_axis(leaves(rotation.rows))
    if type_.shape[-1] == 2:
        pair = Axis(2)
        index, last = (*rows, (rotation.half,), (pair,)), ((rotation.half,), (pair,))
    else:
        channels = Axis((rotation.half.extent or 0) * 2)
        index, last = (*rows, (channels,)), ((channels,),)
    sizes = list(ir.RankedTensorType(value.type).shape)
    shape = [*sizes, 2] if type_.shape[-1] == 2 else [*sizes[:-1], sizes[-1] * 2]
    value = bitcast(value, ir.RankedTensorType.get(shape, type_.element_type))
    return relayout(value, index, (*_grouped(rotation), *last), extents)


def build_halves(rotation: Rotation, rows: Sequence[Axis], pair: Axis, halves: Halves) -> ir.Value:
    """The rotated tensor with dims (rows…, c, i), c being which channel of a pair, whatever layout it is read in."""
    loops = [*rows, pair, rotation.half]

    def body(arguments: Sequence[ir.Value]) -> ir.Value:
        dim = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), len(rows))
        which = ir.Operation.create("linalg.index", [ir.IndexType.get()], attributes={"dim": dim}).result
        is_low = arith.cmpi(arith.CmpIPredicate.eq, which, constant(0, ir.IndexType.get()))
        (result,) = emit_nodes([halves.node], halves.inputs.leaf(arguments), is_low)
        return result

    init = empty(each_axis(loops), element_type(rotation.result), halves.inputs.extents)
    maps = [*halves.inputs.maps, ir.AffineMap.get_identity(len(loops))]
    return generic(halves.inputs.values, init, maps, body)


def _build_pairs(rotation: Rotation) -> tuple[ir.Value, Extents]:
    loops = [*leaves(rotation.rows), rotation.half]
    inputs = Inputs(loops, rotation.half)
    inputs.add(rotation.channels)
    element = element_type(rotation.result)

    def body(arguments: Sequence[ir.Value]) -> ir.Value:
        low, high = emit_nodes(rotation.channels, inputs.leaf(arguments))
        return _pack(low, high, element)

    init = empty(each_axis(loops), pairs_type(element), inputs.extents)
    maps = [*inputs.maps, ir.AffineMap.get_identity(len(loops))]
    return generic(inputs.values, init, maps, body), inputs.extents


def emit_nodes(nodes: Sequence[Node], leaf: Leaf, is_low: ir.Value | None = None) -> list[ir.Value]:
    """The values of nodes, what they share being computed once. `is_low` picks one of two channels."""
    values: dict[int, ir.Value] = {}
    elements: dict[Element, ir.Value] = {}

    def emit(node: Node) -> ir.Value:
        if isinstance(node, Element):
            if node not in elements:
                elements[node] = leaf(node)
            return elements[node]
        if id(node) not in values:
            values[id(node)] = make(node)
        return values[id(node)]

    def make(node: Node) -> ir.Value:
        if isinstance(node, Constant):
            return constant(node.value, node.type)
        if isinstance(node, Scalar):
            return node.value
        if not isinstance(node, Apply):
            raise TypeError(f"not a node: {node}")
        operands = [emit(operand) for operand in node.operands]
        if node.name == ONE_OF:
            return arith.select(is_low, *operands)
        return ir.Operation.create(node.name, [node.type], operands, dict(node.attributes)).result

    return [emit(node) for node in nodes]


def _unpack(pair: ir.Value, element: ir.Type, part: int) -> ir.Value:
    width = ir.FloatType(element).width
    if part:
        pair = arith.shrui(pair, constant(width, pair.type))
    return arith.bitcast(element, arith.trunci(ir.IntegerType.get_signless(width), pair))


def _pack(low: ir.Value, high: ir.Value, element: ir.Type) -> ir.Value:
    width = ir.FloatType(element).width
    bits, wide = ir.IntegerType.get_signless(width), pairs_type(element)
    low, high = (arith.extui(wide, arith.bitcast(bits, value)) for value in (low, high))
    return arith.ori(low, arith.shli(high, constant(width, wide)))


def each_axis(axes: Sequence[Axis]) -> Index:
    """A dim for each axis."""
    return tuple((axis,) for axis in axes)


def _grouped(rotation: Rotation) -> Index:
    """The rows of the result, dim by dim."""
    return tuple(leaves((axis,)) for axis in rotation.rows)

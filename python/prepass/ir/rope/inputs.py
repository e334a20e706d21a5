# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a generic that rotates reads, and how its body computes from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith

from prepass.ir.axes import Axis
from prepass.ir.emit import Extents, constant
from prepass.ir.expressions import Apply, Constant, Read, Scalar, element_type
from prepass.ir.rope.elements import Element, Node
from prepass.ir.rope.operands import Operand, is_packed, packed_part, row_operand
from prepass.ir.rope.rotation import elements_of
from prepass.ir.rope.unify import ONE_OF

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
            argument = self.argument(element, arguments)
            if not is_packed(element, self._half):
                return argument
            return _unpack(argument, element_type(element.value), packed_part(element))

        return value

    def argument(self, element: Element, arguments: Sequence[ir.Value]) -> ir.Value:
        """The block argument that holds an element, both of its pair where it is one of neighbours."""
        return arguments[self._numbers[self._key(element)]]

    def _key(self, element: Element) -> tuple:
        places = [(place.terms, place.constant) for place in (place.resolved() for place in element.places)]
        if is_packed(element, self._half):
            terms, number = places[-1]
            places[-1] = terms, number - packed_part(element)
        return element.value, tuple(places)


def axes_map(loops: Sequence[Axis], axes: Sequence[Axis]) -> ir.AffineMap:
    """The indexing map of a tensor whose dims are some of the loops."""
    return ir.AffineMap.get(len(loops), 0, [ir.AffineExpr.get_dim(list(loops).index(axis)) for axis in axes])


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

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a rotary embedding is, once it is recognized."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from iree.compiler import ir

from prepass.ir.axes import Axis
from prepass.ir.expressions import Apply, Constant, Scalar, tensor_sizes
from prepass.ir.match import NoMatch
from prepass.ir.rope.elements import Element, Node, at
from prepass.ir.rope.places import Place, Places, constant


@dataclass(frozen=True)
class Row:
    """The channels of a row of which only some are rotated; the others are those of the source as they are.

    Attributes:
      channels: Those of the result.
      begin: The first one that is rotated.
      shift: How many channels further up the source has each.
    """

    channels: int
    begin: int
    shift: int

    def element(self, rotation: Rotation, block: Axis, inside: Axis, *, packed: bool) -> Element:
        """The channel of the source at a position in a block, or the first of the pair there."""
        step = 2 if packed else 1
        return self.source_element(rotation, at(block).scaled((inside.extent or 1) * step) + at(inside).scaled(step))

    def source_element(self, rotation: Rotation, channel: Place) -> Element:
        """Where the source has a channel of the result; its last dim may count more than channels, such as heads."""
        *rows, last = rotation.low
        others = Place(tuple(term for term in last.terms if term[0] is not rotation.half), self.shift)
        return Element(rotation.source, (*rows, others + channel))


@dataclass(frozen=True)
class Rotation:
    """A tensor whose last dim is that of another with its pairs of channels rotated.

    Attributes:
      result: The rotated tensor.
      rows: The axes of its other dims, in order.
      half: The axis that counts pairs.
      interleaved: Whether a pair is two neighbours; otherwise it is the same channel of two halves.
      source: The tensor that is rotated.
      low, high: Where the two channels of a pair are read.
      channels: The two channels of the result, over elements of `source` and of tables.
      ops: Read through between the result and the arithmetic, the op that defines the result first.
      row: Where only some channels of the last dim are rotated.
    """

    result: ir.Value
    rows: tuple[Axis, ...]
    half: Axis
    interleaved: bool
    source: ir.Value
    low: Places
    high: Places
    channels: tuple[Node, Node]
    ops: tuple[ir.Operation, ...]
    row: Row | None = None

    def block_width(self, *, packed: bool) -> int:
        """How wide a block is, so that whole blocks are rotated: in channels, or in pairs that are read packed."""
        half = self.half.extent or 1
        if self.row is None:
            return half
        step = 2 if packed else 1
        return math.gcd(half, self.row.channels // step, self.row.begin // step)

    @property
    def is_canonical(self) -> bool:
        """Whether the program has the form that `build_halves` gives."""
        op = self.ops[-1]
        if self.row is not None:
            return False
        if op.name != "linalg.generic" or tensor_sizes(op.result)[-2:] != [2, self.half.extent]:
            return False
        names = [inner.operation.name for inner in op.regions[0].blocks[0].operations]
        return "linalg.index" in names and "tensor.extract" not in names


class NotARotation(NoMatch):
    """Something like a rotation that is none, or that cannot be built.

    Attributes:
      ops: What was read through, the op that defines the result first.
    """

    def __init__(self, reason: str, ops: tuple[ir.Operation, ...]) -> None:
        super().__init__(reason, ops[-1])
        self.ops = ops


def alike(a: Node, b: Node) -> bool:
    """Whether two nodes are equal but for the constants in their places."""
    if isinstance(a, Element) and isinstance(b, Element):
        if a.value != b.value:
            return False
        pairs = zip(a.places, b.places, strict=True)
        return all(p.resolved().terms == q.resolved().terms for p, q in pairs)
    if isinstance(a, Apply) and isinstance(b, Apply):
        if a.name != b.name or len(a.operands) != len(b.operands) or a.attributes != b.attributes:
            return False
        return all(alike(x, y) for x, y in zip(a.operands, b.operands, strict=True))
    if isinstance(a, Constant) and isinstance(b, Constant):
        return a.value == b.value
    return isinstance(a, Scalar) and isinstance(b, Scalar) and a.value == b.value


def at_part(node: Node, half: Axis, inside: Axis, part: int) -> Node:
    """A node at the pairs of one part of a half, which `inside` counts."""
    if isinstance(node, Element):
        return Element(node.value, tuple(_place_at_part(place.resolved(), half, inside, part) for place in node.places))
    if isinstance(node, Apply):
        return replace(node, operands=tuple(at_part(operand, half, inside, part) for operand in node.operands))
    return node


def _place_at_part(place: Place, half: Axis, inside: Axis, part: int) -> Place:
    others = Place(tuple(term for term in place.terms if term[0] is not half), place.constant)
    count = dict(place.terms).get(half, 0)
    return others + (at(inside) + constant(part * (inside.extent or 1))).scaled(count)


def elements_of(node: Node) -> Iterator[Element]:
    """The elements a node is computed from."""
    if isinstance(node, Element):
        yield node
    elif isinstance(node, Apply):
        for operand in node.operands:
            yield from elements_of(operand)

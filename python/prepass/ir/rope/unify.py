# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One expression for both channels of a pair, so that a thread computes the one it writes and not both."""

from __future__ import annotations

from dataclasses import replace

from prepass.ir.axes import Axis
from prepass.ir.expressions import Apply, Constant, Scalar
from prepass.ir.rope.elements import Element, Node, node_type
from prepass.ir.rope.operands import is_packed, is_readable
from prepass.ir.rope.places import Place
from prepass.ir.rope.rotation import Rotation

ONE_OF = "one of two channels"


def unify(low: Node, high: Node, pair: Axis, rotation: Rotation) -> Node:
    """The node that is `low` where `pair` is 0 and `high` where it is 1; each op rounds as it did.

    Where the two differ, an `Apply` of ONE_OF picks. A difference of two products is a sum with
    one negated, which is the same number.
    """
    if low == high:
        return low
    if isinstance(low, Apply) and isinstance(high, Apply):
        if low.name != high.name:
            low, high = _as_sum(low), _as_sum(high)
        if (low.name == "arith.negf") != (high.name == "arith.negf"):
            return _unify_negated(low, high, pair, rotation)
        if low.name == high.name and low.type == high.type and low.attributes == high.attributes:
            operands = zip(low.operands, high.operands, strict=True)
            return replace(low, operands=tuple(unify(a, b, pair, rotation) for a, b in operands))
    if _is_negated(low) or _is_negated(high):
        return _unify_negated(low, high, pair, rotation)
    if isinstance(low, Element) and isinstance(high, Element):
        joined = _join(low, high, pair, rotation)
        if joined is not None:
            return joined
    if isinstance(low, (Constant, Scalar)) and type(low) is type(high) and low.value == high.value:
        return low
    return Apply(ONE_OF, (low, high), node_type(low))


def _as_sum(node: Apply) -> Apply:
    if node.name != "arith.subf":
        return node
    first, second = node.operands
    return Apply("arith.addf", (first, Apply("arith.negf", (second,), node.type)), node.type, node.attributes)


def _is_negated(node: Node) -> bool:
    return isinstance(node, Apply) and node.name == "arith.negf"


def _unify_negated(low: Node, high: Node, pair: Axis, rotation: Rotation) -> Node:
    """One channel negates what the other does not."""
    is_low = _is_negated(low)
    negated, plain = (low, high) if is_low else (high, low)
    assert isinstance(negated, Apply)
    (inner,) = negated.operands
    same = unify(*((inner, plain) if is_low else (plain, inner)), pair, rotation)
    opposite = replace(negated, operands=(same,))
    return Apply(ONE_OF, (opposite, same) if is_low else (same, opposite), negated.type)


def _join(low: Element, high: Element, pair: Axis, rotation: Rotation) -> Element | None:
    """An entry that stands half a row further for the second channel, read as a row of its own."""
    half = rotation.half
    if low.value != high.value or low.value == rotation.source or half.extent is None or is_packed(low, half):
        return None
    first, second = ([place.resolved() for place in element.places] for element in (low, high))
    moved = Place(first[-1].terms, first[-1].constant + half.extent)
    if first[:-1] != second[:-1] or second[-1] != moved:
        return None
    last = first[-1] + Place(((pair, half.extent),))
    joined = Element(low.value, (*first[:-1], last))
    return joined if is_readable(joined, half, rotation.interleaved) else None

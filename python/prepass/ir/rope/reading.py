# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One reading of a tensor as a rotary embedding: as pairs of neighbours (2·i, 2·i + 1), or as two halves (i, D/2 + i).

It is one if it gives

    y0 = x0·c0 - x1·s0
    y1 = x1·c1 + x0·s1

with x0 and x1 elements of one tensor, and the tables the same for both channels of a pair.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from iree.compiler import ir

from prepass.ir.axes import Axis
from prepass.ir.expressions import Apply, tensor_sizes
from prepass.ir.match import has_one_user
from prepass.ir.rope.elements import Element, Node, at
from prepass.ir.rope.operands import is_readable
from prepass.ir.rope.places import Places, constant
from prepass.ir.rope.rotation import NotARotation, Rotation, alike, elements_of
from prepass.ir.rope.terms import Product, Sum, match_sum


@dataclass(frozen=True)
class _Picks:
    """Which factor of each product is the channel, and at which view; products in the order of the program."""

    value: ir.Value
    low: Places
    high: Places
    chosen: tuple[tuple[int, int], ...]


def match_reading(value: ir.Value, interleaved: bool, window: tuple[int, int] | None = None) -> Rotation | None:
    """The rotation that a tensor is in this reading, None when it is nothing like one.

    `window` is the first of the channels that are read, and their number; all of the last dim by default.
    Raises NotARotation when the tensor is like a rotation and is not, or is one that no form here can express.
    """
    sizes = tensor_sizes(value)
    begin, channels = window or (0, sizes[-1])
    if interleaved and channels == 2 and len(sizes) > 1 and sizes[-2] is not None:
        half = Axis(sizes[-2])
        rows = tuple(Axis(size) for size in sizes[:-2])
        heads = [(at(half), constant(part)) for part in (0, 1)]
    elif channels is not None and channels % 2 == 0 and channels >= 4:
        half = Axis(channels // 2)
        rows = tuple(Axis(size) for size in sizes[:-1])
        pair, other = (at(half).scaled(2), 1) if interleaved else (at(half), channels // 2)
        heads = [(pair + constant(begin + part * other),) for part in (0, 1)]
    else:
        return None
    outer = tuple(at(axis) for axis in rows)
    sums: list[Sum] = []
    for head in heads:
        found = match_sum(Element(value, (*outer, *head)))
        if found is None:
            return None
        sums.append(found)
    if half.parts is not None:
        return None
    ops = tuple(dict.fromkeys(op for sum_ in sums for op in sum_.ops))
    picks = _pick_channels(sums, ops)
    return None if picks is None else _arrange(value, rows, half, interleaved, sums, picks, ops)


def _pick_channels(sums: list[Sum], ops: tuple[ir.Operation, ...]) -> _Picks | None:
    """Find the tensor that every product reads, at one of two places.

    Raises NotARotation when there is one but the places are not those of pairs.
    """
    products = [product for sum_ in sums for product in sum_.products]
    best: tuple[tuple[int, int], _Picks] | None = None
    crossed = False
    for value in _common_values(products):
        options = [list(_views_of(product, value)) for product in products]
        for combination in itertools.product(*options):
            places = [view for _, _, view in combination]
            if len({*places[:2]}) != 2:
                continue
            if {*places[:2]} != {*places[2:]}:
                crossed = True
                continue
            low, high = sorted(places[:2], key=lambda place: [part.constant for part in place])
            picks = _Picks(value, low, high, tuple((factor, depth) for factor, depth, _ in combination))
            rank = (len({axis for place in low for axis, _ in place.terms}), sum(depth for _, depth, _ in combination))
            if best is None or rank > best[0]:
                best = rank, picks
    if best is None and crossed:
        raise NotARotation("the partner of a channel has another partner", ops)
    return None if best is None else best[1]


def _common_values(products: list[Product]) -> list[ir.Value]:
    common: list[ir.Value] | None = None
    for product in products:
        values = [node.value for factor in product.factors for node, _ in factor.views if isinstance(node, Element)]
        common = values if common is None else [value for value in common if value in values]
    return list(dict.fromkeys(common or []))


def _views_of(product: Product, value: ir.Value) -> Iterator[tuple[int, int, Places]]:
    for number, factor in enumerate(product.factors):
        for depth, (node, _) in enumerate(factor.views):
            if isinstance(node, Element) and node.value == value:
                yield number, depth, tuple(place.resolved() for place in node.places)


def _arrange(
    value: ir.Value,
    rows: tuple[Axis, ...],
    half: Axis,
    interleaved: bool,
    sums: list[Sum],
    picks: _Picks,
    ops: tuple[ir.Operation, ...],
) -> Rotation:
    if not is_readable(Element(picks.value, picks.low), half, interleaved):
        raise NotARotation("the channels of a row are not next to each other", ops)
    channels: list[Node] = []
    own: list[tuple[Node, int]] = []
    partner: list[tuple[Node, int]] = []
    chosen = iter(picks.chosen)
    for sum_, first in zip(sums, (picks.low, picks.high), strict=True):
        terms: list[Node] = []
        for number, product in enumerate(sum_.products):
            factor, depth = next(chosen)
            channel, table = product.factors[factor], product.factors[1 - factor]
            node, _ = channel.views[depth]
            places = tuple(place.resolved() for place in node.places)
            entry = _resolved(table.rebuilt(-1))
            pair = (channel.rebuilt(depth, Element(picks.value, places)), entry)
            terms.append(product.rebuilt(pair if factor == 0 else pair[::-1]))
            sign = product.negated + channel.negations(depth) + table.negations(-1)
            sign += number == 1 and sum_.op.name == "arith.subf"
            (own if places == first else partner).append((_positive(entry), sign % 2))
        channels.append(sum_.rebuilt((terms[0], terms[1])))
    _match_tables(own, partner, ops)
    _match_chain(ops)
    first_channel, second_channel = channels
    return Rotation(
        value,
        rows,
        half,
        interleaved,
        picks.value,
        picks.low,
        picks.high,
        (first_channel, second_channel),
        ops,
    )


def _match_tables(own: list[tuple[Node, int]], partner: list[tuple[Node, int]], ops: tuple[ir.Operation, ...]) -> None:
    (cosine, cosine_sign), (other_cosine, other_sign) = own
    if not alike(cosine, other_cosine) or not alike(partner[0][0], partner[1][0]):
        raise NotARotation("the two channels of a pair have different tables", ops)
    if _tensors([cosine]) and _tensors([cosine]) == _tensors([partner[0][0]]) and _entries(own, partner) == 4:
        return  # A 2x2 matrix a pair, whose signs are in the table.
    if cosine_sign != other_sign or partner[0][1] == partner[1][1]:
        raise NotARotation("the signs are not those of a rotation", ops)


def _entries(own: list[tuple[Node, int]], partner: list[tuple[Node, int]]) -> int:
    return len({node for node, _ in (*own, *partner)})


def _tensors(nodes: list[Node]) -> set[ir.Value]:
    found: set[ir.Value] = set()
    for node in nodes:
        found.update(element.value for element in elements_of(node))
    return found


def _match_chain(ops: tuple[ir.Operation, ...]) -> None:
    """The ops between the result and the arithmetic serve the result alone."""
    for inner in ops[1:]:
        if not all(has_one_user(result) for result in inner.results):
            raise NotARotation("the rotated channels have another use", ops)


def _resolved(node: Node) -> Node:
    """The same with places over axes that are not split."""
    if isinstance(node, Element):
        return Element(node.value, tuple(place.resolved() for place in node.places))
    if isinstance(node, Apply):
        return replace(node, operands=tuple(_resolved(operand) for operand in node.operands))
    return node


def _positive(node: Node) -> Node:
    """A table entry without casts and negations."""
    while isinstance(node, Apply) and node.name in ("arith.extf", "arith.negf"):
        node = node.operands[0]
    return node

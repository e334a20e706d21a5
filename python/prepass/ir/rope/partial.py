# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rotary embeddings of some channels: a concatenation of what is rotated and what is left as it is."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from iree.compiler import ir

from prepass.ir.axes import Axis
from prepass.ir.elementwise import VIEWS, is_elementwise, moves_only
from prepass.ir.expressions import tensor_sizes
from prepass.ir.match import defining_op
from prepass.ir.rope.elements import Element, at, expand
from prepass.ir.rope.operands import is_readable
from prepass.ir.rope.places import Places, constant
from prepass.ir.rope.reading import match_reading
from prepass.ir.rope.rotation import NotARotation, Rotation, Row

OTHER_ROWS = "the channels that are not rotated are not those of the same rows"
NO_BLOCKS = "the row does not split into few blocks of which the rotated ones are whole"

# Parts of a half; each is an operand of its own.
_MOST_PARTS = 8

Window = tuple[int, int]


def match_partial(value: ir.Value) -> Rotation | None:
    """The rotation of some channels of a tensor, the others being what they are in the source; None when it is no such.

    Raises NotARotation when some channels are rotated and the others are not understood.
    """
    concat = _find_concat(value)
    if concat is None:
        return None
    dim = ir.IntegerAttr(concat.attributes["dim"]).value
    sizes = [tensor_sizes(operand)[dim] for operand in concat.operands]
    static = [size for size in sizes if size is not None]
    if len(static) < len(sizes) or sum(static) != tensor_sizes(value)[-1]:
        return None
    windows = list(zip(itertools.accumulate(static, initial=0), static, strict=False))
    # What is rotated is one operand, or its halves are one each.
    for count, first in itertools.product((1, 2), range(len(windows))):
        rotated, others = windows[first : first + count], windows[:first] + windows[first + count :]
        if len(rotated) < count or not others:
            continue
        window = rotated[0][0], sum(size for _, size in rotated)
        rotation = _match_window(value, window)
        if rotation is not None:
            return replace(rotation, row=_match_row(rotation, window, others, concat))
    return None


def _find_concat(value: ir.Value) -> ir.Operation | None:
    """The concatenation that a tensor is but for its layout."""
    op = defining_op(value)
    while op is not None and op.name != "tensor.concat":
        is_layout = op.name in VIEWS or (is_elementwise(op) and len(op.operands) == 2 and moves_only(op))
        op = defining_op(op.operands[0]) if is_layout else None
    return op


def _match_window(value: ir.Value, window: Window) -> Rotation | None:
    for interleaved in (False, True):
        try:
            rotation = match_reading(value, interleaved, window)
        except NotARotation:  # It says so where the channels are rotated, which is an op of its own.
            continue
        if rotation is not None:
            return rotation
    return None


def _match_row(rotation: Rotation, window: Window, others: Sequence[Window], concat: ir.Operation) -> Row:
    begin, size = window
    channels = size + sum(count for _, count in others)
    row = Row(channels, begin, rotation.low[-1].constant - begin)
    rows = tuple(at(axis) for axis in rotation.rows)
    for other, count in others:
        axis = Axis(count)
        channel = at(axis) + constant(other)
        found = _read(Element(rotation.result, (*rows, channel)), rotation.source)
        if found != row.source_element(rotation, channel).places:
            raise NotARotation(OTHER_ROWS, (concat,))
    packed = rotation.interleaved
    width = replace(rotation, row=row).block_width(packed=packed)
    step = 2 if packed else 1
    block, inside = Axis(channels // (width * step)), Axis(width)
    is_even = all(number % step == 0 for number in (channels, begin, row.shift))
    element = row.element(rotation, block, inside, packed=packed)
    if not is_even or size // 2 > _MOST_PARTS * width or not is_readable(element, inside, packed):
        raise NotARotation(NO_BLOCKS, (concat,))
    return row


def _read(element: Element, source: ir.Value) -> Places | None:
    """Where in the source an element is, None where it is not only moved."""
    node: object = element
    while isinstance(node, Element) and node.value != source:
        node = expand(node)
    return tuple(place.resolved() for place in node.places) if isinstance(node, Element) else None

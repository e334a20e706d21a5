# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tensors that a vectorized rotation reads, each dim of them one loop of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.axes import Axis
from prepass.ir.elementwise import dynamic_sizes
from prepass.ir.emit import dim_size
from prepass.ir.expressions import element_type, tensor_sizes
from prepass.ir.rope.elements import Element
from prepass.ir.rope.places import Place

FLOATS = (ir.F16Type, ir.BF16Type, ir.F32Type)


@dataclass(frozen=True)
class Operand:
    """A tensor and the axis that each of its dims counts."""

    value: ir.Value
    axes: tuple[Axis, ...]


@dataclass(frozen=True)
class _Digit:
    """A factor of a dim: `size` positions, of which the axis takes those from `offset` on, or one is taken."""

    size: int | None
    offset: int
    axis: Axis | None


def pairs_type(element: ir.Type) -> ir.IntegerType:
    """The integer that holds two floats; the first of them in its lower half, as in memory."""
    return ir.IntegerType.get_signless(2 * ir.FloatType(element).width)


def is_packed(element: Element, half: Axis | None) -> bool:
    """Whether an element is one of a pair of neighbours, which are read as one integer."""
    places = [place.resolved() for place in element.places]
    if half is None or not places:
        return False
    if len(places) > 1 and tensor_sizes(element.value)[-1] == 2 and not places[-1].terms:
        return dict(places[-2].terms).get(half) == 1
    return dict(places[-1].terms).get(half) == 2


def packed_part(element: Element) -> int:
    """Which of its pair an element is."""
    return element.places[-1].resolved().constant % 2


def row_operand(element: Element, half: Axis | None) -> Operand:
    """The tensor of an element for all values of the axes, read as pairs where it is one of neighbours."""
    value, places = element.value, [place.resolved() for place in element.places]
    if is_packed(element, half):
        value, places = _as_pairs(value, places)
    digits = [_digits(size, place) for size, place in zip(tensor_sizes(value), places, strict=True)]
    value = _expand(value, digits)
    flat = [digit for group in digits for digit in group]
    value = _cut(value, flat)
    return Operand(value, tuple(digit.axis for digit in flat if digit.axis is not None))


def bitcast(value: ir.Value, type_: ir.RankedTensorType) -> ir.Value:
    """The bits of a tensor as another type of the same dynamic sizes, which costs nothing."""
    sizes = dynamic_sizes(value)
    segments = ir.DenseI32ArrayAttr.get([1, len(sizes), len(sizes)])
    attributes = {"operandSegmentSizes": segments}
    return ir.Operation.create("iree_tensor_ext.bitcast", [type_], [value, *sizes, *sizes], attributes).result


def _as_pairs(value: ir.Value, places: list[Place]) -> tuple[ir.Value, list[Place]]:
    type_ = ir.RankedTensorType(value.type)
    shape, places = _pair_places(list(type_.shape), places)
    return bitcast(value, ir.RankedTensorType.get(shape, pairs_type(type_.element_type))), places


def _pair_places(shape: list, places: list[Place]) -> tuple[list, list[Place]]:
    """The shape of a tensor of neighbours as one of pairs, and the places in it."""
    if not places[-1].terms and shape[-1] == 2:
        return shape[:-1], places[:-1]
    last = places[-1]
    halved = Place(tuple((axis, coefficient // 2) for axis, coefficient in last.terms), last.constant // 2)
    return [*shape[:-1], shape[-1] // 2], [*places[:-1], halved]


def is_readable(element: Element, half: Axis, interleaved: bool) -> bool:
    """Whether the entries of consecutive pairs stand next to each other, so that vectors can load them."""
    sizes = tensor_sizes(element.value)
    places = [place.resolved() for place in element.places]
    if not isinstance(element_type(element.value), FLOATS) or not places:
        return False
    if is_packed(element, half):
        even = all(coefficient % 2 == 0 for _, coefficient in places[-1].terms)
        if not interleaved or not even or sizes[-1] is None or sizes[-1] % 2:
            return False
        sizes, places = _pair_places(sizes, places)
    if not places or dict(places[-1].terms).get(half) != 1:
        return False
    return _are_dims(sizes, places)


def is_expressible(element: Element) -> bool:
    """Whether a tensor of the element for all values of the axes can be cut out of the element's."""
    return _are_dims(tensor_sizes(element.value), [place.resolved() for place in element.places])


def _are_dims(sizes: list[int | None], places: list[Place]) -> bool:
    axes = [axis for place in places for axis, _ in place.terms]
    if len(axes) != len(set(axes)):
        return False
    return all(_has_digits(size, place) for size, place in zip(sizes, places, strict=True))


def _digits(size: int | None, place: Place) -> list[_Digit]:
    """The factors of a dim in which a place takes one axis each."""
    if not place.terms:
        return [_Digit(size, place.constant, None)]
    if size is None:
        ((axis, _),) = place.terms
        return [_Digit(None, place.constant, axis)]
    digits: list[_Digit] = []
    outer, rest = size, place.constant
    for axis, unit in place.terms:
        offset, rest = divmod(rest, unit)
        digits.append(_Digit(outer // unit, offset, axis))
        outer = unit
    if outer > 1:
        digits.append(_Digit(outer, rest, None))
    return digits


def _has_digits(size: int | None, place: Place) -> bool:
    """Whether a dim can be cut so that a place takes one axis of each factor."""
    if size is None:
        return not place.terms or (len(place.terms) == 1 and place.terms[0][1] == 1 and place.constant == 0)
    outer = size
    for _, unit in place.terms:
        if outer % unit:
            return False
        outer = unit
    digits = _digits(size, place)
    ends = [digit.offset + (1 if digit.axis is None else digit.axis.extent or math.inf) for digit in digits]
    return all(end <= (digit.size or 0) for end, digit in zip(ends, digits, strict=True))


def _expand(value: ir.Value, digits: list[list[_Digit]]) -> ir.Value:
    if all(len(group) == 1 for group in digits):
        return value
    dynamic = ir.ShapedType.get_dynamic_size()
    shape = [dynamic if digit.size is None else digit.size for group in digits for digit in group]
    starts = [sum(len(group) for group in digits[:dim]) for dim in range(len(digits))]
    groups = [list(range(start, start + len(group))) for start, group in zip(starts, digits, strict=True)]
    attributes = {"reassociation": _nested(groups), "static_output_shape": ir.DenseI64ArrayAttr.get(shape)}
    type_ = ir.RankedTensorType.get(shape, element_type(value))
    return ir.Operation.create("tensor.expand_shape", [type_], [value, *dynamic_sizes(value)], attributes).result


def _cut(value: ir.Value, digits: list[_Digit]) -> ir.Value:
    """The part of a tensor that the axes run over, without the other dims."""
    if all(digit.axis is not None and digit.size == digit.axis.extent for digit in digits):
        return value
    if all(digit.size == (1 if digit.axis is None else digit.axis.extent) for digit in digits):
        return _drop_units(value, [digit.axis is not None for digit in digits])
    dynamic = ir.ShapedType.get_dynamic_size()
    extents = [1 if digit.axis is None else digit.axis.extent for digit in digits]
    shape = [
        dynamic if extent is None else extent
        for digit, extent in zip(digits, extents, strict=True)
        if digit.axis is not None
    ]
    sizes = [
        dim_size(value, dim) for dim, digit in enumerate(digits) if digit.axis is not None and extents[dim] is None
    ]
    attributes = {
        "static_offsets": ir.DenseI64ArrayAttr.get([digit.offset for digit in digits]),
        "static_sizes": ir.DenseI64ArrayAttr.get([dynamic if extent is None else extent for extent in extents]),
        "static_strides": ir.DenseI64ArrayAttr.get([1] * len(digits)),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, len(sizes), 0]),
    }
    type_ = ir.RankedTensorType.get(shape, element_type(value))
    return ir.Operation.create("tensor.extract_slice", [type_], [value, *sizes], attributes).result


def _drop_units(value: ir.Value, kept: list[bool]) -> ir.Value:
    """Collapse the dims of size 1 that are not kept into neighbours."""
    groups: list[list[int]] = [[]]
    for dim, is_kept in enumerate(kept):
        if is_kept and any(kept[d] for d in groups[-1]):
            groups.append([])
        groups[-1].append(dim)
    type_ = ir.RankedTensorType(value.type)
    shape = [size for size, is_kept in zip(type_.shape, kept, strict=True) if is_kept]
    attributes = {"reassociation": _nested(groups if shape else [])}
    result = ir.RankedTensorType.get(shape, type_.element_type)
    return ir.Operation.create("tensor.collapse_shape", [result], [value], attributes).result


def _nested(groups: list[list[int]]) -> ir.ArrayAttr:
    i64 = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get([ir.ArrayAttr.get([ir.IntegerAttr.get(i64, d) for d in group]) for group in groups])

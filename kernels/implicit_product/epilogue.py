# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From sums to memory: the steps of a dispatch, on vectors of neighbouring channels of a pixel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import arith, vector

from prepass.ir.kernels.builders import apply, index, load, splat, store, vector_type
from prepass.ir.layout.bodies import body_ops
from prepass.kernels.implicit_product.steps import CHANNEL, Computed, Coordinates, Step, Stored
from prepass.kernels.implicit_product.views import View

# Of so many elements one is worth reading all.
_MOST_INTERLEAVED = 4


@dataclass(frozen=True)
class Place:
    """Neighbouring channels of one pixel.

    Attributes:
      positions: Of the pixel along each axis, and of the first channel along each dim of filters.
      width: How many.
    """

    positions: Sequence[ir.Value]
    width: int


@dataclass(frozen=True)
class Memory:
    """The bindings of the dispatch, each as a buffer of one dim."""

    buffers: Mapping[ir.Operation, ir.Value]

    def read(self, operand: Stored, place: Place) -> ir.Value:
        """The elements of an operand at a place."""
        buffer, at = self.buffers[operand.view.binding], _offset(operand.view, operand.coordinates, place)
        pitch = _channel_pitch(operand.view, operand.coordinates)
        if pitch == 1:
            return load(buffer, [at], place.width)
        if pitch == 0:
            return splat(vector.ExtractOp(load(buffer, [at], 1), [], [0]).result, place.width)
        if pitch <= _MOST_INTERLEAVED and _holds_all_between(operand.view, pitch):
            return _read_interleaved(buffer, operand, place, pitch)
        places = [apply(lambda at, n=n: at + n * pitch, at) for n in range(place.width)]
        elements = [vector.ExtractOp(load(buffer, [at], 1), [], [0]).result for at in places]
        return vector.FromElementsOp(vector_type(place.width, operand.view.element), elements).result

    def write(self, value: ir.Value, view: View, coordinates: Coordinates, place: Place) -> None:
        """Write neighbouring channels, which must be neighbours in memory."""
        store(value, self.buffers[view.binding], [_offset(view, coordinates, place)])


def run_steps(steps: Sequence[Step], values: dict[ir.Value, ir.Value], place: Place, memory: Memory) -> None:
    """Compute each step's results at a place; `values` has the sums and gets the results."""
    for step in steps:
        block = step.op.regions[0].blocks[0]
        inside: dict[ir.Value, ir.Value] = {}
        for argument, operand in zip(block.arguments, step.operands, strict=False):
            inside[argument] = values[operand.value] if isinstance(operand, Computed) else memory.read(operand, place)
        *body, terminator = body_ops(step.op)
        for op in body:
            inside[op.results[0]] = _widened(op, inside, place.width)
        for result, yielded in zip(step.op.results, terminator.operands, strict=True):
            values[result] = _wide(yielded, inside, place.width)


def _widened(op: ir.Operation, inside: Mapping[ir.Value, ir.Value], width: int) -> ir.Value:
    """An op of a body, on vectors."""
    if op.name == "arith.constant":
        return splat(op.clone().results[0], width)
    operands = [_wide(operand, inside, width) for operand in op.operands]
    attributes = {name: op.attributes[name] for name in op.attributes}
    return ir.Operation.create(op.name, [vector_type(width, op.results[0].type)], operands, attributes).result


def _wide(value: ir.Value, inside: Mapping[ir.Value, ir.Value], width: int) -> ir.Value:
    return inside[value] if value in inside else splat(value, width)


def _holds_all_between(view: View, pitch: int) -> bool:
    """Whether a binding has all elements from one channel to the next, behind the last one too."""
    last = sum((size - 1) * step for size, step in zip(view.sizes, view.pitches, strict=True) if step >= pitch)
    return view.offset % pitch == 0 and view.offset + last + pitch <= view.elements


def _read_interleaved(buffer: ir.Value, operand: Stored, place: Place, pitch: int) -> ir.Value:
    """Every `pitch`-th element, by vectors: all of them are read, for it is of few dims that vary faster."""
    view, at, position = operand.view, index(operand.view.offset), index(0)
    for coordinate, step in zip(operand.coordinates, view.pitches, strict=True):
        moved = place.positions[coordinate]
        if step < pitch:
            position = apply(lambda p, moved, step=step: p + moved * step, position, moved)
        else:
            at = apply(lambda at, moved, step=step: at + moved * step, at, moved)
    everything = load(buffer, [at], place.width * pitch)
    found, *others = (
        vector.ShuffleOp(everything, everything, range(start, place.width * pitch, pitch)).result
        for start in range(pitch)
    )
    for number, other in enumerate(others, 1):
        here = arith.cmpi(arith.CmpIPredicate.eq, position, index(number))
        found = arith.select(here, other, found)
    return found


def _offset(view: View, coordinates: Coordinates, place: Place) -> ir.Value:
    at = index(view.offset)
    for coordinate, pitch in zip(coordinates, view.pitches, strict=True):
        # Dims of filters are numbered from the end.
        at = apply(lambda at, position, pitch=pitch: at + position * pitch, at, place.positions[coordinate])
    return at


def _channel_pitch(view: View, coordinates: Coordinates) -> int:
    return sum(pitch for pitch, coordinate in zip(view.pitches, coordinates, strict=True) if coordinate == CHANNEL)

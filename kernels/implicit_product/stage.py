# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From memory to LDS: the vectors that the threads of a workgroup copy, through registers, one iteration ahead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import arith

from prepass.ir.kernels.builders import apply, constant, delinearize, index, load, store, vector_type
from prepass.kernels.implicit_product.problem import Axis, Problem
from prepass.kernels.implicit_product.tile import BLOCK, PER_LANE, Side, Tile


@dataclass(frozen=True)
class Source:
    """An operand in memory: its binding as a buffer of one dim, and where it starts there."""

    buffer: ir.Value
    offset: int


@dataclass(frozen=True)
class Tap:
    """What the terms of an iteration are: channels from `channel` on, of one position of the window.

    Attributes:
      positions: In the window, along each axis.
      channel: The first one.
    """

    positions: tuple[ir.Value, ...]
    channel: ir.Value


@dataclass(frozen=True)
class Bound:
    """An axis along which a pixel may lie outside of the image: where the window starts, for one pixel."""

    number: int
    axis: Axis
    start: ir.Value


@dataclass(frozen=True)
class Copy:
    """A vector that a thread copies in each iteration.

    Attributes:
      buffer: What it is read from.
      base: Where it is for the first tap and channel 0, in elements; it may be outside.
      steps: From one position of the window to the next along each axis, in elements.
      bounds: Where a pixel may lie outside.
      row, column: Where it goes in LDS.
      width: Its elements.
    """

    buffer: ir.Value
    base: ir.Value
    steps: tuple[int, ...]
    bounds: tuple[Bound, ...]
    row: ir.Value
    column: ir.Value
    width: int

    def fetch(self, tap: Tap) -> ir.Value:
        """Read it for a tap; zeros outside of the image."""
        at = apply(lambda base, channel: base + channel, self.base, tap.channel)
        for position, step in zip(tap.positions, self.steps, strict=True):
            at = apply(lambda at, position, step=step: at + position * step, at, position)
        inside = _inside(self.bounds, tap)
        if inside is None:
            return load(self.buffer, [at], self.width)
        found = load(self.buffer, [arith.select(inside, at, index(0))], self.width)
        zeros = constant(0, vector_type(self.width, ir.VectorType(found.type).element_type))
        return arith.select(inside, found, zeros)

    def keep(self, value: ir.Value, lds: ir.Value) -> None:
        """Write it to its place in LDS."""
        store(value, lds, [self.row, self.column])


def read_tap(iteration: ir.Value, problem: Problem, depth: int) -> Tap:
    """The tap of an iteration. Neighbouring iterations differ in the tap: they read the same lines of the image."""
    chunk, *positions = delinearize(iteration, (problem.channels // depth, *problem.windows))
    return Tap(tuple(positions), apply(lambda chunk: chunk * depth, chunk))


def pixel_copies(source: Source, thread: ir.Value, first: ir.Value, problem: Problem, tile: Tile) -> list[Copy]:
    """The vectors of the image that a thread copies; `first` is the first pixel of the tile."""
    axes, copies = problem.axes, []
    for row, column, width in _places(thread, tile.pixels, tile):
        positions = pixel_positions(apply(lambda first, row: first + row, first, row), problem)
        starts = [
            apply(lambda at, axis=axis: at * axis.stride - axis.low, at)
            for at, axis in zip(positions, axes, strict=True)
        ]
        base = apply(lambda column: column + source.offset, column)
        for start, axis in zip(starts, axes, strict=True):
            base = apply(lambda base, start, axis=axis: base + start * axis.pitch, base, start)
        bounds = tuple(Bound(number, axis, starts[number]) for number, axis in enumerate(axes) if axis.padded)
        steps = tuple(axis.pitch * axis.dilation for axis in axes)
        copies.append(Copy(source.buffer, base, steps, bounds, row, column, width))
    return copies


def filter_copies(source: Source, thread: ir.Value, first: ir.Value, problem: Problem, tile: Tile) -> list[Copy]:
    """The vectors of the filters that a thread copies; `first` is the first filter of the tile."""
    copies = []
    for row, column, width in _places(thread, tile.filters, tile):
        base = apply(
            lambda first, row, column: (first + row) * problem.filter_pitch + column + source.offset,
            *(first, row, column),
        )
        steps = tuple(axis.filter_pitch for axis in problem.axes)
        copies.append(Copy(source.buffer, base, steps, (), shuffled_row(row, tile.filters), column, width))
    return copies


def pixel_positions(pixel: ir.Value, problem: Problem) -> list[ir.Value]:
    """The position of a pixel of the result along each axis; of the last pixel for those behind it."""
    last = arith.minui(pixel, index(problem.pixels - 1))
    return delinearize(last, problem.result)


def shuffled_row(row: ir.Value, side: Side) -> ir.Value:
    """The row of LDS in which a row is kept, so that a lane gets neighbours.

    In a 32x32 product, lane `32 · half + l` holds the rows `8 · j + 4 · half + i` of each block, j and i below 4.
    Rows are permuted within a wave so that these are `half · 16 · blocks + 16 · block + 4 · j + i`.
    """
    quarters = BLOCK // (2 * PER_LANE)
    digits = delinearize(row, (side.waves, 2, side.blocks, quarters, PER_LANE))
    return apply(
        lambda wave, half, block, j, i: wave * side.span + block * BLOCK + j * (2 * PER_LANE) + half * PER_LANE + i,
        *digits,
    )


def _inside(bounds: Sequence[Bound], tap: Tap) -> ir.Value | None:
    inside = None
    for bound in bounds:
        dilation = bound.axis.dilation
        at = apply(lambda s, p, dilation=dilation: s + p * dilation, bound.start, tap.positions[bound.number])
        # Unsigned, so that positions before the image are large.
        here = arith.cmpi(arith.CmpIPredicate.ult, at, index(bound.axis.size))
        inside = here if inside is None else arith.andi(inside, here)
    return inside


def _places(thread: ir.Value, side: Side, tile: Tile) -> list[tuple[ir.Value, ir.Value, int]]:
    """Row, column and width of each vector of a side that a thread copies."""
    width, found = tile.copy_width(side), []
    for copy in range(tile.copies(side)):
        number = apply(lambda thread, copy=copy: thread + copy * tile.threads, thread)
        row, vector = delinearize(number, (side.rows, tile.depth // width))
        found.append((row, apply(lambda vector: vector * width, vector), width))
    return found

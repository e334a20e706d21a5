# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copying a tile of K or V to LDS, through registers, by all threads of the workgroup.

In LDS the terms of a product lie side by side: a row of K has its channels, a row of V its keys. An operand that has
them side by side in memory too is copied 16 bytes at a time. Of another, each thread takes small blocks and turns them
around in its registers, which takes half an instruction for each element.

The keys of a tile that are beyond the last one are read from the last ones instead, and their scores are masked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import arith, scf, vector

from prepass.ir.kernels.builders import apply, delinearize, element, index, load, store, vector_type
from prepass.kernels.attention.tile import CHUNK

# Blocks to turn around, as lines by elements; the larger, the wider the accesses.
_BLOCKS = ((8, 8), (4, 8), (8, 4), (4, 4), (2, 8), (2, 4))


@dataclass(frozen=True)
class Source:
    """K or V in memory.

    Attributes:
      tensor: The operand, of the tile of the workgroup, with all its keys.
      indices: The indices of an element, from its key and its channel.
      keys_inside: Whether its keys are side by side, rather than its channels.
      keys: How many there are.
      ragged: Whether a tile may go beyond the last one.
    """

    tensor: ir.Value
    indices: Callable[[ir.Value, ir.Value], list[ir.Value]]
    keys_inside: bool
    keys: ir.Value
    ragged: bool


@dataclass(frozen=True)
class Destination:
    """The buffer in LDS.

    Attributes:
      buffer: Rows of terms.
      rows_are_keys: As in that of K; those of V are channels.
      place: Which row a key or channel goes to; four that start at a multiple of four stay together.
    """

    buffer: ir.Value
    rows_are_keys: bool
    place: Callable[[ir.AffineExpr], ir.AffineExpr]

    def row(self, first: ir.Value, offset: int = 0) -> ir.Value:
        """The row for the key or channel `first`, a multiple of four where there is an offset, and so many on."""
        return apply(lambda first: self.place(first + offset // 4 * 4) + offset % 4, first)


@dataclass(frozen=True)
class Staging:
    """What one thread copies.

    Attributes:
      block: Lines, rows in memory's order, and elements that it takes at a time.
      places: Where each of its blocks starts in the tile: line and column in memory's order.
      thread: Its number.
      busy: The threads that have a last block.
    """

    source: Source
    destination: Destination
    block: tuple[int, int]
    places: Sequence[tuple[ir.Value, ir.Value]]
    thread: ir.Value
    busy: int | None

    def fetch(self, first: ir.Value | int) -> list[ir.Value]:
        """Load this thread's part of the tile that starts at a key, a vector for each line."""
        return [self._load(place, line, index(first)) for place in self.places for line in range(self.block[0])]

    def put(self, fetched: Sequence[ir.Value]) -> None:
        """Write to LDS what was loaded."""
        lines = self.block[0]
        for number, place in enumerate(self.places):
            values = fetched[number * lines : (number + 1) * lines]
            if self.busy is None or number < len(self.places) - 1:
                self._store(place, values)
                continue
            busy = arith.cmpi(arith.CmpIPredicate.ult, self.thread, index(self.busy))
            with ir.InsertionPoint(scf.IfOp(busy).then_block):
                self._store(place, values)
                scf.YieldOp([])

    def _load(self, place: tuple[ir.Value, ir.Value], line: int, first: ir.Value) -> ir.Value:
        source, width = self.source, self.block[1]
        if source.keys_inside:
            key, channel = place[1], apply(lambda base: base + line, place[0])
        else:
            key, channel = apply(lambda base: base + line, place[0]), place[1]
        key = apply(lambda first, key: first + key, first, key)
        if source.ragged:
            last = apply(lambda keys: keys - (width if source.keys_inside else 1), source.keys)
            key = arith.minui(key, last)
        return load(source.tensor, source.indices(key, channel), width)

    def _store(self, place: tuple[ir.Value, ir.Value], values: Sequence[ir.Value]) -> None:
        line, column = place
        destination = self.destination
        if not self._turned:
            store(values[0], destination.buffer, [destination.row(line), column])
            return
        for offset, row in enumerate(_transpose(values)):
            store(row, destination.buffer, [destination.row(column, offset), line])

    @property
    def _turned(self) -> bool:
        return self.source.keys_inside == self.destination.rows_are_keys


def make_staging(
    source: Source, destination: Destination, keys: int, channels: int, thread: ir.Value, threads: int
) -> Staging:
    """Share a tile of `keys` by `channels` out among threads. Both are multiples of 8."""
    lines, columns = (channels, keys) if source.keys_inside else (keys, channels)
    turned = source.keys_inside == destination.rows_are_keys
    block = _block(lines, columns, threads) if turned else (1, CHUNK)
    across = lines // block[0], columns // block[1]
    blocks = across[0] * across[1]
    turns = -(-blocks // threads)
    places = []
    for turn in range(turns):
        number = apply(lambda thread, turn=turn: thread + turn * threads, thread)
        if (turn + 1) * threads > blocks:
            number = arith.minui(number, index(blocks - 1))
        if turned:  # Neighbouring threads write neighbouring elements.
            column, line = delinearize(number, (across[1], across[0]))
        else:
            line, column = delinearize(number, across)
        places.append((_times(line, block[0]), _times(column, block[1])))
    return Staging(
        source, destination, block, places, thread, blocks - (turns - 1) * threads if blocks % threads else None
    )


def _block(lines: int, columns: int, threads: int) -> tuple[int, int]:
    """The largest block that all threads have equally many of, or else 4 by 4."""
    for block in _BLOCKS:
        blocks = lines // block[0] * (columns // block[1])
        if blocks % threads == 0:
            return block
    return 4, 4


def _times(value: ir.Value, factor: int) -> ir.Value:
    return apply(lambda value: value * factor, value)


def _transpose(lines: Sequence[ir.Value]) -> list[ir.Value]:
    """The columns of some vectors, as vectors."""
    type_ = ir.VectorType(lines[0].type)
    result = vector_type(len(lines), type_.element_type)
    return [
        vector.FromElementsOp(result, [element(line, column) for line in lines]).result
        for column in range(type_.shape[0])
    ]

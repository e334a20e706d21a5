# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a linalg op computes, by its loops; what tuning tables know contractions and convolutions by."""

from __future__ import annotations

import re
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.expressions import element_type, indexing_maps, loop_sizes
from prepass.ir.match import NoMatch

_LOOP = re.compile(r"d\d+")


@dataclass(frozen=True)
class LinalgShape:
    """The loops of a linalg op, and where its operands stand in them.

    Attributes:
      maps: The dims of each operand by loop, the results last: "d0, d1 * 2 + d4".
      sizes: The trip count of each loop, None where dynamic.
      element_types: Of each operand, results included.
      results: How many results there are.
    """

    maps: tuple[str, ...]
    sizes: tuple[int | None, ...]
    element_types: tuple[str, ...]
    results: int = 1

    @property
    def reduction_extent(self) -> int | None:
        """How many terms are added up for a result, None where dynamic."""
        written = set(_LOOP.findall(self.maps[-1]))
        extent = 1
        for loop, size in enumerate(self.sizes):
            if f"d{loop}" not in written:
                if size is None:
                    return None
                extent *= size
        return extent


@dataclass(frozen=True)
class ContractionLoops:
    """The innermost loops of a contraction of one operand with others, by number, and its loops over batches."""

    rows: int
    columns: int
    terms: int
    batch: frozenset[int]


def read_linalg_shape(op: ir.Operation) -> LinalgShape:
    """The shape of a linalg op on tensors. Raises NoMatch when its maps are not those of its operands."""
    maps = indexing_maps(op)
    if maps is None or len(maps) != len(op.operands):
        raise NoMatch("it has no indexing maps", op)
    return LinalgShape(
        maps=tuple(", ".join(map(str, map_.results)) for map_ in maps),
        sizes=tuple(loop_sizes(op)),
        element_types=tuple(str(element_type(operand)) for operand in op.operands),
        results=len(op.results),
    )


def contraction_loops(shape: LinalgShape) -> ContractionLoops | None:
    """The loops of a contraction, or None when they are not those of one operand with several, or with one."""
    dims = [map_.split(", ") if map_ else [] for map_ in shape.maps]
    if not all(_LOOP.fullmatch(dim) for map_ in dims for dim in map_):
        return None
    loops = [[int(dim[1:]) for dim in map_] for map_ in dims]
    shared, others, results = set(loops[0]), loops[1 : -shape.results], loops[-shape.results :]
    written = set(results[0])
    alike = len(others) == shape.results and all(set(other) == set(others[0]) for other in others)
    if not alike or any(set(result) != written for result in results):
        return None
    weights = set(others[0])
    batch = shared & weights & written
    rows, columns, terms = shared & written - batch, weights & written - batch, shared & weights - written
    if not rows or not columns or not terms or shared | weights != set(range(len(shape.sizes))):
        return None
    return ContractionLoops(max(rows), max(columns), max(terms), frozenset(batch))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a dispatch does with each element of a convolution's result before it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.expressions import indexing_maps, loop_positions
from prepass.ir.layout.bodies import body_ops
from prepass.ir.match import NoMatch
from prepass.kernels.implicit_product.views import View, loaded_view

# The coordinate of a result that counts the innermost dim of the filters; -2 is the dim outside of it, where they have
# several, and so on. Other coordinates number the problem's axes.
CHANNEL = -1

# For each dim of a tensor, the coordinate of the result that it is read at.
Coordinates = tuple[int, ...]


@dataclass(frozen=True)
class Computed:
    """An operand that is computed in the dispatch: the result of the convolution or of an earlier step."""

    value: ir.Value


@dataclass(frozen=True)
class Stored:
    """An operand in memory, and where it is read."""

    view: View
    coordinates: Coordinates


@dataclass(frozen=True)
class Step:
    """An elementwise op: its body, with one operand a block argument but those for results, which it does not read."""

    op: ir.Operation
    operands: tuple[Computed | Stored, ...]


def read_step(
    op: ir.Operation, computed: Mapping[ir.Value, Coordinates], wanted: Mapping[ir.Value, Coordinates] | None = None
) -> tuple[Step, list[Coordinates]]:
    """An elementwise step, and the coordinates of its results.

    Args:
      op: A linalg.generic.
      computed: The values of the dispatch that hang on the convolution so far, with their coordinates.
      wanted: Coordinates of results that are known beforehand: of the sums to start from.

    Raises NoMatch.
    """
    maps = indexing_maps(op)
    inputs = op.operands[: len(op.operands) - len(op.results)]
    known = {**computed, **(wanted or {})}
    if op.name != "linalg.generic" or maps is None or "reduction" in str(op.attributes["iterator_types"]):
        raise NoMatch(f"{op.name} in the same dispatch is not elementwise", op)
    loops: dict[int, int] = {}
    for value, map_ in zip([*inputs, *op.results], maps, strict=True):
        for coordinate, loop in zip(known.get(value, ()), _positions(op, map_), strict=False):
            if loops.setdefault(loop, coordinate) != coordinate:
                raise NoMatch("a step reads the result twice, at different places", op)
    if len(loops) != maps[0].n_dims:
        raise NoMatch("a step has more dims than the result", op)
    _check_body(op)
    coordinates = [tuple(loops[loop] for loop in _positions(op, map_)) for map_ in maps]
    operands = tuple(
        Computed(value) if value in computed else Stored(loaded_view(value), at)
        for value, at in zip(inputs, coordinates, strict=False)
    )
    return Step(op, operands), coordinates[len(inputs) :]


def _positions(op: ir.Operation, map_: ir.AffineMap) -> list[int]:
    if not all(isinstance(expr, ir.AffineDimExpr) for expr in map_.results):
        raise NoMatch("a step computes an index", op)
    return loop_positions(map_)


def _check_body(op: ir.Operation) -> None:
    block = op.regions[0].blocks[0]
    for result in range(1, len(op.results) + 1):
        if any(True for _ in block.arguments[len(block.arguments) - result].uses):
            raise NoMatch("a step reads what it overwrites", op)
    for inner in body_ops(op):
        plain = inner.name.split(".")[0] in ("arith", "math") and len(inner.results) == 1 and not len(inner.regions)
        if not plain and inner.name != "linalg.yield":
            raise NoMatch(f"a step does {inner.name}", inner)

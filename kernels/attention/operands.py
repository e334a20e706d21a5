# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arguments of a kernel's function: their types, and how they are indexed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.kernels.builders import bf16, delinearize, dim, f16, f32, index, tensor_type
from prepass.kernels.attention.problem import AttentionProblem, Layout
from prepass.kernels.attention.tile import AttentionTile

_TYPES = {"f16": f16, "bf16": bf16, "f32": f32}


def element_type(name: str) -> ir.Type:
    """The type by its name."""
    return _TYPES[name]()


@dataclass(frozen=True)
class Operands:
    """The arguments.

    Attributes:
      maximum: What the op starts from; the kernel starts from nothing and passes it on.
    """

    problem: AttentionProblem
    query: ir.Value
    key: ir.Value
    value: ir.Value
    scale: ir.Value
    mask: ir.Value | None
    maximum: ir.Value

    def indices(self, layout: Layout, places: Mapping[str, ir.Value]) -> list[ir.Value]:
        """The indices of an element of an operand, from its row ("m"), key ("k2") and channel ("k1", "n")."""
        problem = self.problem
        channels = {}
        if "k1" in places:
            loops = problem.loops("k1")
            sizes = [problem.extents[loop] or 1 for loop in loops]
            digits = delinearize(places["k1"], sizes) if len(loops) > 1 else [places["k1"]]
            channels = dict(zip(loops, digits, strict=True))
        known = {loop: places.get(kind) for loop, kind in enumerate(problem.kinds)}
        # Of several loops over queries the tile has one row of all but the last.
        rows = {loop: None for loop in problem.loops("m") if loop != problem.row_loop}
        known |= channels | rows
        return [index(0) if (place := known[loop]) is None else place for loop in layout.loops]

    def row_count(self, tile: AttentionTile) -> ir.Value | int:
        """Queries of the workgroup."""
        return tile_rows(self.problem, tile) or dim(self.query, self.problem.query.loops.index(self.problem.row_loop))

    def key_count(self) -> ir.Value:
        """Keys of a head."""
        problem = self.problem
        return index(problem.keys) if problem.keys else dim(self.key, problem.key.loops.index(problem.key_loop))


def tile_rows(problem: AttentionProblem, tile: AttentionTile) -> int | None:
    """Queries of a workgroup where all have as many, or None."""
    return tile.rows if problem.rows is not None and problem.rows % tile.rows == 0 else None


def total_loops(problem: AttentionProblem) -> tuple[int, ...]:
    """The loops of the maximum and the sum."""
    return (*problem.loops("batch"), *problem.loops("m"))


def workgroup_tile(problem: AttentionProblem, tile: AttentionTile) -> list[int]:
    """The tile of a workgroup by loop, 0 where it is the whole loop."""
    sizes = {"batch": 1, "m": 1}
    return [tile.rows if loop == problem.row_loop else sizes.get(kind, 0) for loop, kind in enumerate(problem.kinds)]


def argument_types(problem: AttentionProblem, tile: AttentionTile) -> list[ir.Type]:
    """Q, K, V, the scale, the mask if there is one, and the initial result, maximum and sum."""
    operands = [problem.query, problem.key, problem.value]
    types: list[ir.Type] = [_argument(problem, tile, layout.loops, layout.element) for layout in operands]
    types.append(element_type(problem.scale))
    if problem.mask is not None:
        types.append(_argument(problem, tile, problem.mask.loops, problem.mask.element))
    return types + result_types(problem, tile)


def result_types(problem: AttentionProblem, tile: AttentionTile) -> list[ir.Type]:
    """The result, the maximum and the sum."""
    totals = _argument(problem, tile, total_loops(problem), "f32")
    return [_argument(problem, tile, problem.result.loops, "f32"), totals, totals]


def _argument(problem: AttentionProblem, tile: AttentionTile, loops: tuple[int, ...], element: str) -> ir.Type:
    def size(loop: int) -> int | None:
        if loop == problem.row_loop:
            return tile_rows(problem, tile)
        return 1 if problem.kinds[loop] in ("batch", "m") else problem.extents[loop]

    return tensor_type([size(loop) for loop in loops], element_type(element))

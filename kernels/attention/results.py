# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the function gives back, as tensors. A thread has half of the channels of one query."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg, tensor

from prepass.ir.kernels.builders import Insertion, apply, constant, f32, insert, part, splat
from prepass.kernels.attention.operands import Operands, total_loops
from prepass.kernels.attention.scores import HELD, Lane
from prepass.kernels.attention.tile import AttentionTile


def empty_result(operands: Operands, tile: AttentionTile) -> ir.Value:
    """A tensor for the result of a workgroup."""
    problem = operands.problem
    rows = operands.row_count(tile)
    sizes = [rows if loop == problem.row_loop else 1 for loop in problem.result.loops[:-1]]
    return tensor.empty([*sizes, problem.value_channels], f32())


def result_of_thread(
    operands: Operands, row: ir.Value, lane: Lane, results: Sequence[ir.Value], total: ir.Value
) -> Insertion:
    """A thread's part of the result, divided by the sum of the weights."""
    problem = operands.problem
    outer = [1] * (len(problem.result.loops) - 1)
    channels = problem.value_channels // 2
    inverse = splat(arith.divf(constant(1, f32()), total), HELD)
    tile = tensor.empty([*outer, channels], f32())
    for number, result in enumerate(results):
        first = number * HELD
        values = part(arith.mulf(result, inverse), 0, min(channels - first, HELD))
        tile = insert(values, tile, [*[0] * len(outer), first])
    offsets = [row if loop == problem.row_loop else 0 for loop in problem.result.loops[:-1]]
    return Insertion(tile, [*offsets, apply(lambda half: half * channels, lane.half)], [*outer, channels])


def ones(operands: Operands, tile: AttentionTile) -> ir.Value:
    """The sum of the weights of a result that is divided by it."""
    problem = operands.problem
    rows = operands.row_count(tile)
    sizes = [rows if loop == problem.row_loop else 1 for loop in total_loops(problem)]
    return linalg.fill(constant(1, f32()), outs=[tensor.empty(sizes, f32())])

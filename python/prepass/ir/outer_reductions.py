# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions over the outermost dim of what they read, several in a dispatch."""

from __future__ import annotations

from dataclasses import dataclass, replace

from iree.compiler import ir

from prepass.ir.expressions import element_bytes, indexing_maps, loop_positions, loop_sizes
from prepass.ir.match import NoMatch, computes, defining_op, find_ops, yielded
from prepass.ir.targets.gfx942_reductions import ReductionLoops

_COMBINERS = ("arith.addf", "arith.addi", "arith.maximumf", "arith.maxnumf", "arith.minimumf", "arith.minnumf")


@dataclass(frozen=True)
class OuterReductions:
    """The reductions of a dispatch, all over the same loops.

    Attributes:
      ops: The reductions, in order.
      loops: Their loops.
      last: The elementwise ops that nothing in the dispatch reads, each with its loops by those of the reductions.
    """

    ops: list[ir.Operation]
    loops: ReductionLoops
    last: list[tuple[ir.Operation, tuple[int, ...]]]


def match_outer_reductions(function: ir.Operation) -> OuterReductions | None:
    """The reductions of a dispatch that IREE takes its pipeline for outer reductions for.

    None where there are less than two, or the last is not over the outermost dim. Raises NoMatch where not all that the
    dispatch computes is known.
    """
    ops = find_ops(function, _reduces)
    if len(ops) < 2 or _order(ops[-1]) is None:
        return None
    loops = _common_loops(ops)
    known = _operand_dims(ops)
    last = []
    for op in find_ops(function, computes):
        if op in ops or op.name == "linalg.fill":
            continue
        if op.name != "linalg.generic" or len(op.results) != 1:
            raise NoMatch("the dispatch computes more than reductions and elementwise ops of one result", op)
        own = _known_loops(op, known)
        if own is not None:
            known[op.results[0]] = tuple(own[loop] for loop in loop_positions(indexing_maps(op)[-1]))
        if any(computes(use.owner.operation) for use in op.results[0].uses):
            continue  # Its lanes are those of the op that reads it.
        if own is None:
            raise NoMatch("the dims of an elementwise op are not those of the reductions", op)
        if not loops.reduced.isdisjoint(own):
            last.append((op, own))
    return OuterReductions(ops, loops, last)


def _reduces(op: ir.Operation) -> bool:
    return op.name == "linalg.generic" and bool(_reduced(op))


def _reduced(op: ir.Operation) -> frozenset[int]:
    kinds = [str(kind) for kind in op.attributes["iterator_types"]]
    return frozenset(loop for loop, kind in enumerate(kinds) if "reduction" in kind)


def _order(op: ir.Operation) -> tuple[int, ...] | None:
    """The loops in the order of the operand whose outermost dim is reduced."""
    for map_ in _input_maps(op):
        if map_.is_permutation and len(map_.results):
            order = tuple(loop_positions(map_))
            if order[0] in _reduced(op):
                return order
    return None


def _common_loops(ops: list[ir.Operation]) -> ReductionLoops:
    found = [_read_loops(op) for op in ops]
    widest = max(loops.element_bytes for loops in found)
    common = {replace(loops, element_bytes=widest) for loops in found}
    if len(common) > 1:
        raise NoMatch("the reductions of the dispatch are not over the same dims", ops[-1])
    return common.pop()


def _read_loops(op: ir.Operation) -> ReductionLoops:
    order, reduced, sizes = _order(op), _reduced(op), loop_sizes(op)
    if order is None:
        raise NoMatch("the reductions of the dispatch are not all over the outermost dim of an operand", op)
    if None in sizes:
        raise NoMatch("the sizes of the reductions are dynamic", op)
    if not _combines(op):
        raise NoMatch("it is not one sum, maximum or minimum", op)
    for map_ in _input_maps(op):
        if not map_.is_permutation and not (map_.is_projected_permutation and reduced.isdisjoint(loop_positions(map_))):
            raise NoMatch("it reads an operand along some of the dims that it reduces", op)
    whole = [operand for operand, map_ in zip(op.operands, _input_maps(op), strict=False) if map_.is_permutation]
    return ReductionLoops(tuple(sizes), order, reduced, max(1, *map(element_bytes, whole)))


def _combines(op: ir.Operation) -> bool:
    """Whether the result is its former value, once, combined with others in an order that does not matter."""
    if len(op.results) != 1:
        return False
    block = op.regions[0].blocks[0]
    accumulator = block.arguments[len(block.arguments) - 1]
    combiner = defining_op(yielded(op)[0])
    users = [use.owner.operation for use in accumulator.uses]
    return combiner is not None and combiner.name in _COMBINERS and users == [combiner]


def _operand_dims(ops: list[ir.Operation]) -> dict[ir.Value, tuple[int, ...]]:
    """Of what the reductions read and write, the loop that each dim is."""
    known: dict[ir.Value, tuple[int, ...]] = {}
    for op in ops:
        maps = indexing_maps(op) or []
        for value, map_ in zip([*op.operands[: len(maps) - 1], op.results[0]], maps, strict=True):
            loops = tuple(loop_positions(map_))
            if known.setdefault(value, loops) != loops:
                raise NoMatch("the reductions of the dispatch are not over the same dims", op)
    return known


def _known_loops(op: ir.Operation, known: dict[ir.Value, tuple[int, ...]]) -> tuple[int, ...] | None:
    """The loops of an elementwise op by those of the reductions, None where its operands do not tell."""
    maps = indexing_maps(op) or []
    loops: list[int | None] = [None] * maps[0].n_dims
    for operand, map_ in zip(op.operands, maps, strict=True):
        if not map_.is_projected_permutation:
            return None
        for position, dim in zip(loop_positions(map_), known.get(operand, ()), strict=False):
            if loops[position] not in (None, dim):
                return None
            loops[position] = dim
    return None if None in loops or len(set(loops)) < len(loops) else tuple(loops)


def _input_maps(op: ir.Operation) -> list[ir.AffineMap]:
    return (indexing_maps(op) or [])[: -len(op.results)]

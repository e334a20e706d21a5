# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which loops of linalg ops and of attention run once, and which dims only they index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.attention.build import OP_NAME as ATTENTION
from prepass.ir.attention.read import operand_maps
from prepass.ir.expressions import indexing_maps, tensor_sizes
from prepass.ir.match import NoMatch

_CONFIGS = ("lowering_config", "compilation_info", "decomposition_config", "iree_codegen.ukernel")


@dataclass(frozen=True)
class UnitLoops:
    """What can be dropped from an op.

    Attributes:
      op: A linalg op, or an attention.
      maps: The indexing maps of its operands.
      loops: The parallel loops that run once.
      dims: For each operand, the dims of size 1 that such a loop, or the number 0, indexes.
    """

    op: ir.Operation
    maps: tuple[ir.AffineMap, ...]
    loops: frozenset[int]
    dims: tuple[frozenset[int], ...]


def match_unit_loops(op: ir.Operation) -> UnitLoops | None:
    """What to drop from an op on tensors, or None when it has no unit loops; raises NoMatch when they must stay."""
    maps = operand_maps(op) if op.name == ATTENTION else _linalg_maps(op)
    if not maps:
        return None
    units = _units(op, maps)
    loops = frozenset(units & (_attention_loops(maps, units) if op.name == ATTENTION else _parallel_loops(op, maps)))
    dims = tuple(_unit_dims(operand, map_, loops) for operand, map_ in zip(op.operands, maps, strict=True))
    if not any(dims):
        return None
    tensors = [ir.RankedTensorType(v.type) for v in op.operands if isinstance(v.type, ir.RankedTensorType)]
    check_not_in_dispatch(op)
    if any(name in op.attributes for name in _CONFIGS):
        raise NoMatch("its lowering config names the loops that it has", op)
    if not all(map(_is_plain, maps)):
        raise NoMatch("it reads windows of its operands", op)
    if any(tensor.encoding is not None for tensor in tensors):
        raise NoMatch("a tensor has an encoding", op)
    return UnitLoops(op, tuple(maps), loops, dims)


def _units(op: ir.Operation, maps: Sequence[ir.AffineMap]) -> set[int]:
    """The loops for which every operand has the size 1."""
    sizes: dict[int, set[int | None]] = {}
    for operand, map_ in zip(op.operands, maps, strict=True):
        for dim, expr in enumerate(map_.results):
            if isinstance(expr, ir.AffineDimExpr):
                sizes.setdefault(expr.position, set()).add(tensor_sizes(operand)[dim])
    return {loop for loop, found in sizes.items() if found == {1}}


def check_not_in_dispatch(op: ir.Operation) -> None:
    """Raise NoMatch when a dispatch has been formed around an op, whose form then is what it should be."""
    parent = op.parent
    while parent is not None and not parent.operation.name.startswith("flow.dispatch"):
        parent = parent.operation.parent
    if parent is not None:
        raise NoMatch("it is in a dispatch already", op)


def _linalg_maps(op: ir.Operation) -> list[ir.AffineMap] | None:
    if not op.name.startswith("linalg.") or op.name == "linalg.fill" or not len(op.regions) or not len(op.results):
        return None
    return indexing_maps(op)


def _parallel_loops(op: ir.Operation, maps: Sequence[ir.AffineMap]) -> set[int]:
    if "iterator_types" in op.attributes:
        kinds = [str(kind) for kind in ir.ArrayAttr(op.attributes["iterator_types"])]
        return {loop for loop, kind in enumerate(kinds) if "parallel" in kind}
    return _used(maps[-1])


def _attention_loops(maps: Sequence[ir.AffineMap], units: set[int]) -> set[int]:
    """The loops over batches, and those over queries as long as one is left."""
    query, key, value, result = (_used(map_) for map_ in (*maps[:3], maps[-1]))
    outer = query & result
    queries = sorted(outer - key - value)
    return outer - set(queries[-1:]) if units.issuperset(queries) else outer


def _used(map_: ir.AffineMap) -> set[int]:
    return {expr.position for expr in map_.results if isinstance(expr, ir.AffineDimExpr)}


def _unit_dims(operand: ir.Value, map_: ir.AffineMap, loops: frozenset[int]) -> frozenset[int]:
    def is_unit(dim: int, expr: ir.AffineExpr) -> bool:
        if isinstance(expr, ir.AffineDimExpr):
            return expr.position in loops
        # A longer dim at a number is a cut, which stays.
        return isinstance(expr, ir.AffineConstantExpr) and tensor_sizes(operand)[dim] == 1

    return frozenset(dim for dim, expr in enumerate(map_.results) if is_unit(dim, expr))


def _is_plain(map_: ir.AffineMap) -> bool:
    return all(isinstance(expr, (ir.AffineDimExpr, ir.AffineConstantExpr)) for expr in map_.results)

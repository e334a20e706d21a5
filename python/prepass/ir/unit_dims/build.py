# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Building linalg ops and attention again, without the loops that run once."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from prepass.ir.emit import index_constant
from prepass.ir.expressions import loop_positions
from prepass.ir.match import find_ops
from prepass.ir.unit_dims.loops import ATTENTION, UnitLoops
from prepass.ir.unit_dims.views import with_dims, without_dims

# Matrix products by the loops that index each dim of their operands. A product with a vector becomes a generic, as IREE
# reads through a transposed weight there, and not in the named op.
_MATMULS = {
    ((0, 2), (2, 1), (0, 1)): "linalg.matmul",
    ((0, 1, 3), (0, 3, 2), (0, 1, 2)): "linalg.batch_matmul",
}


def build_without_loops(found: UnitLoops) -> list[ir.Value]:
    """The results of an op, computed without its unit loops and given its types, at the current insertion point.

    The body of the op is moved to the new one, so the op must be erased.
    """
    op = found.op
    operands = [without_dims(value, dims) for value, dims in zip(op.operands, found.dims, strict=True)]
    maps = _smaller_maps(found)
    results = [operands[0]] if _is_copy(op, maps) else list(_create(found, operands, maps).results)
    inits = len(op.operands) - len(op.results)
    return [with_dims(value, dims) for value, dims in zip(results, found.dims[inits:], strict=True)]


def _smaller_maps(found: UnitLoops) -> list[ir.AffineMap]:
    places = {loop: place for place, loop in enumerate(_kept_loops(found))}
    smaller = []
    for map_, dims in zip(found.maps, found.dims, strict=True):
        exprs = [
            ir.AffineExpr.get_dim(places[expr.position]) if isinstance(expr, ir.AffineDimExpr) else expr
            for dim, expr in enumerate(map_.results)
            if dim not in dims
        ]
        smaller.append(ir.AffineMap.get(len(places), 0, exprs))
    return smaller


def _kept_loops(found: UnitLoops) -> list[int]:
    return [loop for loop in range(found.maps[0].n_dims) if loop not in found.loops]


def _is_copy(op: ir.Operation, maps: Sequence[ir.AffineMap]) -> bool:
    """Whether nothing is left to do, as of a broadcast along a dim of size 1."""
    if op.name == ATTENTION or len(maps) != 2 or maps[0] != maps[1] or not maps[1].is_permutation:
        return False
    block = op.regions[0].blocks[0]
    first, *more = block.operations
    return not more and first.operation.operands[0] == block.arguments[0]


def _create(found: UnitLoops, operands: Sequence[ir.Value], maps: Sequence[ir.AffineMap]) -> ir.Operation:
    op = found.op
    name, attributes = _name_and_attributes(found, maps)
    results = [value.type for value in operands[len(operands) - len(op.results) :]]
    made = ir.Operation.create(name, results, operands, attributes, regions=1)
    op.regions[0].blocks[0].append_to(made.regions[0])
    if name == "linalg.generic":
        _renumber_positions(made, found)
    return made


def _name_and_attributes(found: UnitLoops, maps: Sequence[ir.AffineMap]) -> tuple[str, dict[str, ir.Attribute]]:
    op = found.op
    attributes = {name: op.attributes[name] for name in op.attributes}
    map_attribute = ir.ArrayAttr.get([ir.AffineMapAttr.get(map_) for map_ in maps])
    if op.name == ATTENTION:
        return op.name, {**attributes, "indexing_maps": map_attribute}
    if op.name == "linalg.transpose":
        places = loop_positions(maps[0])
        permutation = ir.DenseI64ArrayAttr.get([places.index(dim) for dim in range(len(places))])
        return op.name, {**attributes, "permutation": permutation}
    if op.name in _MATMULS.values() and (name := _matmul_name(maps)):
        return name, {**attributes, "indexing_maps": map_attribute}
    return "linalg.generic", _generic_attributes(found, map_attribute)


def _matmul_name(maps: Sequence[ir.AffineMap]) -> str | None:
    """The named op for these maps, which may read the operands transposed."""
    any_order = {tuple(map(frozenset, known)): name for known, name in _MATMULS.items()}
    dims = tuple(frozenset(loop_positions(map_)) for map_ in maps)
    return any_order.get(dims)


def _generic_attributes(found: UnitLoops, maps: ir.ArrayAttr) -> dict[str, ir.Attribute]:
    op = found.op
    inits = len(op.results)
    written = {expr.position for expr in found.maps[-1].results if isinstance(expr, ir.AffineDimExpr)}
    kinds = ["parallel" if loop in written else "reduction" for loop in range(found.maps[0].n_dims)]
    types = [ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds]
    if "iterator_types" in op.attributes:
        types = list(ir.ArrayAttr(op.attributes["iterator_types"]))
    kept = {name: op.attributes[name] for name in op.attributes if op.name == "linalg.generic"}
    return {
        **kept,
        "indexing_maps": maps,
        "iterator_types": ir.ArrayAttr.get([types[loop] for loop in _kept_loops(found)]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(op.operands) - inits, inits]),
    }


def _renumber_positions(op: ir.Operation, found: UnitLoops) -> None:
    """`linalg.index` of a loop that is gone is 0, that of another counts the loops that are left."""
    places = {loop: place for place, loop in enumerate(_kept_loops(found))}
    for index in find_ops(op, lambda inner: inner.name == "linalg.index"):
        loop = ir.IntegerAttr(index.attributes["dim"]).value
        if loop in places:
            index.attributes["dim"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), places[loop])
        else:
            with ir.InsertionPoint(index), index.location:
                index.result.replace_all_uses_with(index_constant(0))
            index.erase()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linalg ops in other layouts: loops are split and put in order as the tensors are laid out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith

from prepass.ir.emit import erase_dead_producers, index_constant, loop_index
from prepass.ir.expressions import indexing_maps, loop_sizes
from prepass.ir.layout.bodies import BodyOp, body_ops, copy_op, structured_op, window_attributes
from prepass.ir.layout.factors import Factor
from prepass.ir.layout.layouts import Layout, Operand
from prepass.ir.layout.shapes import Shapes
from prepass.ir.match import NoMatch, defining_op

Loop = tuple[int, int]  # A loop of the program, and which piece of it.

_POOLINGS = {
    f"linalg.pooling_{before}_{kind}": f"linalg.pooling_{after}_{kind}"
    for before, after in (("nchw", "nhwc"), ("ncw", "nwc"))
    for kind in ("max", "sum")
}


def tensor_operands(op: ir.Operation, skip: Iterable[int] = ()) -> list[int]:
    """The operands of a linalg op that are tensors, by number."""
    numbers = range(len(op.operands))
    return [n for n in numbers if n not in skip and isinstance(op.operands[n].type, ir.RankedTensorType)]


def link(op: ir.Operation, shapes: Shapes, skip: Iterable[int] = ()) -> None:
    """Make the dims of operands and results that are indexed by one loop the same axis."""
    loops = [(Factor(size),) for size in loop_sizes(op)]
    maps = indexing_maps(op) or []
    groups = [(shapes.operand(op, number), maps[number]) for number in tensor_operands(op, skip)]
    first_init = len(maps) - len(op.results)
    groups += [(shapes.value(result), maps[first_init + n]) for n, result in enumerate(op.results)]
    for dims, map_ in groups:
        for dim, expr in zip(dims, map_.results, strict=True):
            if isinstance(expr, ir.AffineDimExpr) and not shapes.tie(dim, loops[expr.position]):
                raise NoMatch("its sizes cannot be factored alike", op)
    for read in _gathers(op):
        for dim, index in zip(shapes.value(read.operands[0]), list(read.operands)[1:], strict=True):
            loop = _loop_of(index)
            if loop is not None:
                shapes.tie(dim, loops[loop])


def check(op: ir.Operation, shapes: Shapes, skip: Iterable[int] = ()) -> None:
    """Raise NoMatch where an op cannot follow."""
    pieces = _loop_pieces(op, shapes, skip)
    maps = indexing_maps(op) or []
    for number in tensor_operands(op, skip):
        layout = shapes.operand_layout(op, number)
        if not layout.determined():
            raise NoMatch("a dynamic dim would be split in two dynamic dims", op)
        for dim, expr in enumerate(maps[number].results):
            if isinstance(expr, (ir.AffineDimExpr, ir.AffineConstantExpr)):
                continue
            if layout.place(dim) is None or any(len(pieces[loop]) > 1 for loop in _dims_in(expr)):
                raise NoMatch("a window moves along a dim that is split", op)
    _check_body(op, shapes, pieces)


def build(op: ir.Operation, shapes: Shapes, operand: Operand) -> list[ir.Value]:
    """The op on operands in their layouts; what becomes a copy is left out."""
    pieces = _loop_pieces(op, shapes, ())
    maps = indexing_maps(op) or []
    layouts = {number: shapes.operand_layout(op, number) for number in tensor_operands(op)}
    values = [operand(v, layouts[n]) if n in layouts else v for n, v in enumerate(op.operands)]
    order = loop_order(maps, layouts, pieces)
    new_maps = [
        laid_out_map(map_, layouts[n], order) if n in layouts else ir.AffineMap.get(len(order), 0, [])
        for n, map_ in enumerate(maps)
    ]
    inits = len(op.results)
    if _copies(op, values, new_maps):
        erase_dead_producers([values[-1]])
        return [values[0]]
    if op.name in _POOLINGS and _is_standard(layouts):
        return list(structured_op(_POOLINGS[op.name], values, inits, window_attributes(op), op).results)
    special = _body_rewriter(op, shapes, order, pieces, operand)
    return list(generic_op(op, values, inits, new_maps, special).results)


def _is_standard(layouts: Mapping[int, Layout]) -> bool:
    """Whether input and result have the layout of channels-last named ops."""
    standard = [0, *range(2, layouts[0].rank), 1]
    return all([part.dim for part in layouts[number].parts] == standard for number in (0, max(layouts)))


def generic_op(
    op: ir.Operation,
    values: Sequence[ir.Value],
    inits: int,
    maps: Sequence[ir.AffineMap],
    special: BodyOp = copy_op,
) -> ir.Operation:
    """A `linalg.generic` with the body of `op`."""
    kept = {
        expr.position
        for map_ in maps[len(maps) - inits :]
        for expr in map_.results
        if isinstance(expr, ir.AffineDimExpr)
    }
    kinds = ["parallel" if loop in kept else "reduction" for loop in range(maps[-1].n_dims)]
    attributes = {
        "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(map_) for map_ in maps]),
        "iterator_types": ir.ArrayAttr.get([ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds]),
    }
    return structured_op("linalg.generic", values, inits, attributes, op, special)


def loop_order(
    maps: Sequence[ir.AffineMap], layouts: Mapping[int, Layout], pieces: Sequence[Sequence[int | None]]
) -> list[Loop]:
    """The loops in the order of the result's dims, the others in that of the last input that has them."""
    order: list[Loop] = []
    for number in sorted(layouts, reverse=True):
        for part in layouts[number].parts:
            expr = maps[number].results[part.dim]
            if isinstance(expr, ir.AffineDimExpr) and (expr.position, part.piece) not in order:
                order.append((expr.position, part.piece))
    rest = [(loop, piece) for loop, parts in enumerate(pieces) for piece in range(len(parts))]
    return order + [loop for loop in rest if loop not in order]


def laid_out_map(map_: ir.AffineMap, layout: Layout, order: Sequence[Loop]) -> ir.AffineMap:
    """An indexing map for an operand in its layout and loops in another order."""
    first = [order.index((loop, 0)) if (loop, 0) in order else 0 for loop in range(map_.n_dims)]
    whole = ir.AffineMap.get(len(order), 0, [ir.AffineExpr.get_dim(place) for place in first])
    exprs = []
    for part in layout.parts:
        expr = map_.results[part.dim]
        if isinstance(expr, ir.AffineDimExpr):
            exprs.append(ir.AffineExpr.get_dim(order.index((expr.position, part.piece))))
        else:
            exprs.append(expr.compose(whole))
    return ir.AffineMap.get(len(order), 0, exprs)


def _loop_pieces(op: ir.Operation, shapes: Shapes, skip: Iterable[int]) -> list[list[int | None]]:
    """The sizes of the pieces of each loop."""
    pieces: dict[int, list[int | None]] = {}
    maps = indexing_maps(op) or []
    for number in tensor_operands(op, skip):
        layout = shapes.operand_layout(op, number)
        for dim, expr in enumerate(maps[number].results):
            if not isinstance(expr, ir.AffineDimExpr):
                continue
            parts = sorted((part for part in layout.parts if part.dim == dim), key=lambda part: part.piece)
            sizes = [part.extent for part in parts]
            known = pieces.setdefault(expr.position, sizes)
            if len(known) != len(sizes):
                raise NoMatch("its operands split a dim in different ways", op)
            pieces[expr.position] = [a if b is None else b for a, b in zip(known, sizes, strict=True)]
    return [pieces.get(loop, [size]) for loop, size in enumerate(loop_sizes(op))]


def _dims_in(expr: ir.AffineExpr) -> set[int]:
    if isinstance(expr, ir.AffineDimExpr):
        return {expr.position}
    if isinstance(expr, ir.AffineBinaryExpr):
        return _dims_in(expr.lhs) | _dims_in(expr.rhs)
    return set()


def _gathers(op: ir.Operation) -> list[ir.Operation]:
    return [inner for inner in body_ops(op) if inner.name == "tensor.extract"]


def _loop_of(index: ir.Value) -> int | None:
    op = defining_op(index)
    return ir.IntegerAttr(op.attributes["dim"]).value if op is not None and op.name == "linalg.index" else None


def _check_body(op: ir.Operation, shapes: Shapes, pieces: Sequence[Sequence[int | None]]) -> None:
    for inner in body_ops(op):
        if len(inner.regions):
            raise NoMatch("its body has ops with regions", op)
        if inner.name == "linalg.index" and None in pieces[_loop_of(inner.result)][1:]:
            raise NoMatch("its body counts along a dynamic dim that is split", op)
        tensors = [value for value in inner.operands if isinstance(value.type, ir.RankedTensorType)]
        if inner.name == "tensor.extract":
            layout = shapes.layout(tensors[0])
            if any(layout.place(dim) is None for dim in range(layout.rank)):
                raise NoMatch("its body reads from a dim that is split", op)
        elif tensors:
            raise NoMatch(f"its body has {inner.name} on a tensor", op)


def _copies(op: ir.Operation, values: Sequence[ir.Value], maps: Sequence[ir.AffineMap]) -> bool:
    (*body, terminator) = body_ops(op)
    arguments = op.regions[0].blocks[0].arguments
    same = len(values) == 2 and maps[0] == maps[1] and values[0].type == values[1].type
    return same and not body and terminator.operands[0] == arguments[0]


def _body_rewriter(
    op: ir.Operation, shapes: Shapes, order: Sequence[Loop], pieces: Sequence[Sequence[int | None]], operand: Operand
) -> BodyOp:
    tensors = {read.operands[0]: shapes.layout(read.operands[0]) for read in _gathers(op)}
    laid_out = {value: operand(value, layout) for value, layout in tensors.items()}

    def rewrite(inner: ir.Operation, values: Mapping[ir.Value, ir.Value]) -> Sequence[ir.Value] | None:
        if inner.name == "linalg.index":
            loop = _loop_of(inner.result)
            return [_position(loop, pieces[loop], order)]
        if inner.name == "tensor.extract":
            tensor, *indices = inner.operands
            placed = [indices[part.dim] for part in tensors[tensor].parts]
            at = [values.get(index, index) for index in placed]
            return [ir.Operation.create("tensor.extract", [inner.result.type], [laid_out[tensor], *at]).result]
        return None

    return rewrite


def _position(loop: int, pieces: Sequence[int | None], order: Sequence[Loop]) -> ir.Value:
    position = None
    for piece, size in enumerate(pieces):
        here = loop_index(order.index((loop, piece)))
        position = here if position is None else arith.addi(arith.muli(position, index_constant(size)), here)
    return position

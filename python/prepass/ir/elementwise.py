# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise linalg ops, and reshapes: the ops that a change of element type passes through."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from iree.compiler import ir

from prepass.ir.casts.widen import cast
from prepass.ir.emit import dim_size, generic
from prepass.ir.expressions import indexing_maps, result_map
from prepass.ir.match import defining_op, find_ops

Element = Callable[[Sequence[ir.Value]], ir.Value]

CASTS = {"arith.extf", "arith.truncf", "arith.extsi", "arith.extui", "arith.trunci"}
VIEWS = {"tensor.collapse_shape", "tensor.expand_shape", "tensor.cast"}


def is_elementwise(op: ir.Operation) -> bool:
    """Whether `op` is a linalg op on tensors with one result that it writes once and in order, its init unread."""
    if not op.name.startswith("linalg.") or len(op.regions) != 1 or len(op.results) != 1:
        return False
    written = result_map(op)
    if written is None or not _is_identity(written):
        return False
    if not all(isinstance(operand.type, ir.RankedTensorType) for operand in op.operands):
        return False
    init = op.regions[0].blocks[0].arguments[len(op.operands) - 1]
    return next(iter(init.uses), None) is None


def tensor_inputs(op: ir.Operation) -> list[ir.Value]:
    """What a linalg op with one result reads besides its init."""
    return list(op.operands)[:-1]


def meet(values: Sequence[ir.Value]) -> bool:
    """Whether an elementwise op computes from several of `values`, by elementwise ops of their size alone."""
    reached: list[set[ir.Operation]] = []
    for value in values:
        found: set[ir.Operation] = set()
        pending = [value]
        while pending:
            for use in pending.pop().uses:
                user = use.owner.operation
                if user not in found and is_elementwise(user) and _extents(user.result) == _extents(value):
                    found.add(user)
                    pending.append(user.result)
        reached.append(found)
    return any(a & b for n, a in enumerate(reached) for b in reached[:n])


def _extents(value: ir.Value) -> list[int]:
    return sorted(size for size in ir.RankedTensorType(value.type).shape if size != 1)


def is_broadcast(op: ir.Operation, number: int) -> bool:
    """Whether an input of an elementwise op is smaller than its result."""
    maps = indexing_maps(op) or []
    used = {expr.position for expr in maps[number].results if isinstance(expr, ir.AffineDimExpr)}
    shape = ir.RankedTensorType(op.result.type).shape
    return any(shape[dim] != 1 for dim in range(len(shape)) if dim not in used)


def moves_only(op: ir.Operation) -> bool:
    """Whether an elementwise op computes nothing: a transpose, a broadcast, a copy."""
    first, *more = op.regions[0].blocks[0].operations
    return not more and first.operation.operands[0] in op.regions[0].blocks[0].arguments


def casts_only(op: ir.Operation) -> bool:
    """Whether an elementwise op computes nothing but another element type."""
    *body, _ = op.regions[0].blocks[0].operations
    return all(inner.operation.name in CASTS for inner in body)


def is_truncation(op: ir.Operation) -> bool:
    """Whether an elementwise op truncates a float tensor of the same layout, and does nothing else."""
    return _is_cast(op, "arith.truncf")


def is_extension(op: ir.Operation) -> bool:
    """Whether an elementwise op extends a float tensor of the same layout, and does nothing else."""
    return _is_cast(op, "arith.extf")


def _is_cast(op: ir.Operation, name: str) -> bool:
    if not is_elementwise(op) or len(op.operands) != 2:
        return False
    body = [inner.operation.name for inner in op.regions[0].blocks[0].operations]
    maps = indexing_maps(op) or []
    return body == [name, "linalg.yield"] and maps[0] == maps[1]


def walk_tensor_ops(root: ir.Operation) -> list[ir.Operation]:
    """The linalg ops and reshapes of a program that have results, in order."""

    def wanted(op: ir.Operation) -> bool:
        return op.name in VIEWS or (op.name.startswith("linalg.") and len(op.regions) > 0 and len(op.results) > 0)

    return find_ops(root, wanted, ir.WalkOrder.PRE_ORDER)


def empty_like(value: ir.Value, element: ir.Type) -> ir.Value:
    """A `tensor.empty` of the shape of `value`."""
    type_ = ir.RankedTensorType(value.type)
    sizes = dynamic_sizes(value)
    result = ir.RankedTensorType.get(type_.shape, element, type_.encoding)
    return ir.Operation.create("tensor.empty", [result], sizes).result


def dynamic_sizes(value: ir.Value) -> list[ir.Value]:
    """The sizes of the dynamic dims of a tensor, in order."""
    type_ = ir.RankedTensorType(value.type)
    op = defining_op(value)
    if op is not None and op.name == "linalg.fill":
        op = defining_op(op.operands[1])
    if op is not None and op.name == "tensor.empty":
        return list(op.operands)
    return [dim_size(value, dim) for dim in range(type_.rank) if type_.is_dynamic_dim(dim)]


def cast_tensor(value: ir.Value, element: ir.Type) -> ir.Value:
    """The elements of `value` in another type, by an elementwise generic."""
    rank = ir.RankedTensorType(value.type).rank
    maps = [ir.AffineMap.get_identity(rank)] * 2
    return generic([value], empty_like(value, element), maps, lambda arguments: cast(arguments[0], element))


class Fusion:
    """The inputs of an elementwise generic that is being made out of several."""

    def __init__(self) -> None:
        self.inputs: list[ir.Value] = []
        self.maps: list[ir.AffineMap] = []

    def element(self, value: ir.Value, affine_map: ir.AffineMap, *, fuse: bool = False) -> Element:
        """What computes the element of `value` at `affine_map` from the block arguments of the generic.

        With `fuse`, out of what the elementwise generic that defines `value` reads.
        """
        if fuse and (producer := defining_op(value)) is not None:
            maps = indexing_maps(producer) or []
            parts = [
                self.element(operand, compose(map_, affine_map))
                for operand, map_ in zip(tensor_inputs(producer), maps, strict=False)
            ]
            return lambda arguments: _clone(producer, [part(arguments) for part in parts])
        for number, known in enumerate(zip(self.inputs, self.maps, strict=True)):
            if known == (value, affine_map):
                return lambda arguments: arguments[number]
        self.inputs.append(value)
        self.maps.append(affine_map)
        place = len(self.inputs) - 1
        return lambda arguments: arguments[place]


def compose(outer: ir.AffineMap, inner: ir.AffineMap) -> ir.AffineMap:
    """`outer` of `inner`: where a tensor is read through an op that reads it at `outer`."""
    return ir.AffineMap.get(inner.n_dims, 0, [expr.compose(inner) for expr in outer.results])


def _clone(op: ir.Operation, arguments: Sequence[ir.Value]) -> ir.Value:
    (result,) = clone_body(op, dict(zip(op.regions[0].blocks[0].arguments, arguments, strict=False)))
    return result


def clone_body(
    op: ir.Operation, values: Mapping[ir.Value, ir.Value], wanted: Sequence[ir.Value] | None = None
) -> list[ir.Value]:
    """Values of the body of a linalg op, by default what it yields, computed at the current insertion point.

    `values` stand for values of the body; what only they need is not computed.
    """
    known = dict(values)
    *body, terminator = op.regions[0].blocks[0].operations
    results = list(terminator.operands) if wanted is None else wanted
    needed = set(results)
    for inner in reversed(body):
        if inner.operation.result in needed and inner.operation.result not in known:
            needed.update(inner.operation.operands)
    for inner in (view.operation for view in body):
        if inner.result in known or inner.result not in needed:
            continue
        operands = [known.get(operand, operand) for operand in inner.operands]
        attributes = {name: inner.attributes[name] for name in inner.attributes}
        made = ir.Operation.create(inner.name, [inner.result.type], operands, attributes, loc=inner.location)
        known[inner.result] = made.result
    return [known.get(result, result) for result in results]


def has_plain_body(op: ir.Operation) -> bool:
    """Whether `clone_body` can copy the body of a linalg op."""
    *body, _ = op.regions[0].blocks[0].operations
    return all(len(inner.operation.results) == 1 and not len(inner.operation.regions) for inner in body)


def keeps_dims(view: ir.Operation) -> bool:
    """Whether a reshape adds and removes nothing but dims of size 1."""
    before, after = (ir.RankedTensorType(value.type).shape for value in (view.operands[0], view.result))
    return [size for size in before if size != 1] == [size for size in after if size != 1]


def rebuild_view(op: ir.Operation, source: ir.Value) -> ir.Value:
    """A reshape of another value of the same shape."""
    shape, element = ir.RankedTensorType(op.result.type), ir.RankedTensorType(source.type).element_type
    type_ = ir.RankedTensorType.get(shape.shape, element, shape.encoding)
    attributes = {name: op.attributes[name] for name in op.attributes}
    return ir.Operation.create(op.name, [type_], [source, *list(op.operands)[1:]], attributes).result


def _is_identity(affine_map: ir.AffineMap) -> bool:
    return affine_map == ir.AffineMap.get_identity(affine_map.n_dims)

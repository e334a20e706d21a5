# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements of tensors, read through the ops that move them and the arithmetic that makes them.

The companion of `prepass.ir.expressions` for positions with constants and strides: slices and
concatenations are read through, gathers inside a generic too, and complex numbers as two floats.
"""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.expressions import (
    Apply,
    Constant,
    Scalar,
    element_type,
    indexing_maps,
    reassociation,
    scalar_expr,
    tensor_sizes,
)
from prepass.ir.match import defining_op, yielded
from prepass.ir.rope.places import Place, Places, affine, at, compare, constant, divide, multiply

__all__ = ["Element", "Node", "at", "expand", "imaginary", "node_type", "real"]


@dataclass(frozen=True)
class Element:
    """The element of a tensor at a place in each dim."""

    value: ir.Value
    places: Places


Node = Element | Apply | Constant | Scalar

_QUOTIENTS = ("arith.divui", "arith.divsi", "arith.floordivsi")
_REMAINDERS = ("arith.remui", "arith.remsi")
_SAME_PLACE = ("arith.index_cast", "arith.index_castui")


class _OpaqueError(Exception):
    """A body that cannot be read."""


def node_type(node: Node) -> ir.Type:
    """The scalar type of a node."""
    if isinstance(node, Element):
        return element_type(node.value)
    return node.value.type if isinstance(node, Scalar) else node.type


def expand(element: Element) -> Node | None:
    """What the op that defines the tensor computes there; None where it is not read through."""
    op = defining_op(element.value)
    if op is None:
        return None
    reader = READERS.get(op.name)
    if reader is not None:
        return reader(op, element.places)
    return _generic(op, element) if op.name.startswith("linalg.") else None


def _expand_shape(op: ir.Operation, places: Places) -> Node | None:
    sizes = tensor_sizes(op.result)
    merged: list[Place] = []
    for dims in reassociation(op):
        place, stride = Place(), 1
        for dim in reversed(dims):
            place = place + places[dim].scaled(stride)
            size = sizes[dim]
            if size is None and dim != dims[0]:
                return None
            stride *= size or 1
        merged.append(place)
    return Element(op.operands[0], tuple(merged))


def _collapse_shape(op: ir.Operation, places: Places) -> Node | None:
    sizes = tensor_sizes(op.operands[0])
    split: list[Place] = [Place()] * len(sizes)
    for dims, place in zip(reassociation(op), places, strict=True):
        for dim in reversed(dims[1:]):
            size = sizes[dim]
            parts = divide(place, size, exact=True) if size is not None else None
            if parts is None:
                return None
            place, split[dim] = parts
        if dims:
            split[dims[0]] = place
    return Element(op.operands[0], tuple(split))


def _extract_slice(op: ir.Operation, places: Places) -> Node | None:
    cut = _static_slice(op)
    if cut is None:
        return None
    offsets, sizes, strides = cut
    kept = _kept_dims(sizes, tensor_sizes(op.result))
    if kept is None:
        return None
    source = [constant(offset) for offset in offsets]
    for dim, place in zip(kept, places, strict=True):
        source[dim] = source[dim] + place.scaled(strides[dim])
    return Element(op.operands[0], tuple(source))


def _insert_slice(op: ir.Operation, places: Places) -> Node | None:
    cut = _static_slice(op)
    source, target = op.operands[:2]
    if cut is None:
        return None
    offsets, sizes, strides = cut
    inside: list[Place] = []
    for place, offset, size, stride in zip(places, offsets, sizes, strides, strict=True):
        place = place.resolved()
        if size is None or stride != 1:
            return None
        if (place.last is not None and place.last < offset) or place.constant >= offset + size:
            return Element(target, places)
        if place.constant < offset or place.last is None or place.last >= offset + size:
            return None
        inside.append(Place(place.terms, place.constant - offset))
    kept = _kept_dims(sizes, tensor_sizes(source))
    return None if kept is None else Element(source, tuple(inside[dim] for dim in kept))


def _concat(op: ir.Operation, places: Places) -> Node | None:
    dim = ir.IntegerAttr(op.attributes["dim"]).value
    place = places[dim].resolved()
    start = 0
    for operand in op.operands:
        size = tensor_sizes(operand)[dim]
        if size is None or place.constant < start:
            return None
        if place.constant < start + size:
            if place.last is None or place.last >= start + size:
                return None
            moved = Place(place.terms, place.constant - start)
            return Element(operand, (*places[:dim], moved, *places[dim + 1 :]))
        start += size
    return None


def _bitcast(op: ir.Operation, places: Places) -> Node | None:
    """Between complex numbers and pairs of floats, the pair being a last dim of 2."""
    source, result = op.operands[0], op.result
    before, after = element_type(source), element_type(result)
    if isinstance(after, ir.ComplexType) and _is_pair_of(source, result):
        parts = [Element(source, (*places, constant(part))) for part in (0, 1)]
        return Apply("complex.create", tuple(parts), after)
    if isinstance(before, ir.ComplexType) and _is_pair_of(result, source):
        part = places[-1].resolved()
        if part.terms:
            return None
        number = Element(source, places[:-1])
        return imaginary(number) if part.constant else real(number)
    return None


def _is_pair_of(floats: ir.Value, numbers: ir.Value) -> bool:
    return (
        tensor_sizes(floats) == [*tensor_sizes(numbers), 2]
        and element_type(floats) == ir.ComplexType(element_type(numbers)).element_type
    )


def real(number: Node) -> Node:
    """The real part of a complex number."""
    return _part(number, 0)


def imaginary(number: Node) -> Node:
    """The imaginary part of a complex number."""
    return _part(number, 1)


def _part(number: Node, part: int) -> Node:
    type_ = ir.ComplexType(node_type(number)).element_type
    while isinstance(number, Element) and (expanded := expand(number)) is not None:
        number = expanded
    if isinstance(number, Apply) and number.name == "complex.create":
        return number.operands[part]
    if isinstance(number, Apply) and number.name in ("complex.mul", "complex.conj"):
        return _product_part(number, part, type_) if number.name == "complex.mul" else _conjugate(number, part, type_)
    return Apply(("complex.re", "complex.im")[part], (number,), type_)


def _product_part(product: Apply, part: int, type_: ir.Type) -> Node:
    a, b = product.operands
    if part == 0:
        pairs, name = ((real(a), real(b)), (imaginary(a), imaginary(b))), "arith.subf"
    else:
        pairs, name = ((real(a), imaginary(b)), (imaginary(a), real(b))), "arith.addf"
    return Apply(name, tuple(Apply("arith.mulf", pair, type_) for pair in pairs), type_)


def _conjugate(number: Apply, part: int, type_: ir.Type) -> Node:
    inner = _part(number.operands[0], part)
    return Apply("arith.negf", (inner,), type_) if part else inner


def _constant(op: ir.Operation, _: Places) -> Node | None:
    expr = scalar_expr(op.result) if not isinstance(op.result.type, ir.RankedTensorType) else None
    attribute = op.attributes["value"]
    if expr is None and isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
        number = attribute.get_splat_value()
        if isinstance(number, (ir.FloatAttr, ir.IntegerAttr)):
            return Constant(number.value, number.type)
    return expr


def _generic(op: ir.Operation, element: Element) -> Node | None:
    maps = indexing_maps(op)
    if maps is None or len(op.regions) != 1:
        return None
    number = ir.OpResult(element.value).result_number
    result_map = maps[len(maps) - len(op.results) + number]
    loops: list[Place | None] = [None] * result_map.n_dims
    for expr, place in zip(result_map.results, element.places, strict=True):
        if isinstance(expr, ir.AffineDimExpr) and loops[expr.position] is None:
            loops[expr.position] = place
        elif not isinstance(expr, ir.AffineConstantExpr):
            return None
    if None in loops:
        return None
    try:
        return _Body(op, maps, [loop for loop in loops if loop is not None]).result(number)
    except _OpaqueError:
        return None


class _Body:
    """The body of a linalg op at one point of its loops."""

    def __init__(self, op: ir.Operation, maps: list[ir.AffineMap], loops: list[Place]) -> None:
        self._op, self._block = op, op.regions[0].blocks[0]
        self._loops = loops
        self._values: dict[ir.Value, Node | Place | bool] = {}
        operands = zip(self._block.arguments, op.operands, maps, strict=True)
        self._arguments = {argument: (operand, map_) for argument, operand, map_ in operands}

    def result(self, number: int) -> Node:
        """What the body yields."""
        return self._node(yielded(self._op)[number])

    def _node(self, value: ir.Value) -> Node:
        found = self._read(value)
        if isinstance(found, (Place, bool)):
            raise _OpaqueError
        return found

    def _place(self, value: ir.Value) -> Place:
        found = self._read(value)
        if isinstance(found, Constant) and isinstance(found.value, int) and found.value >= 0:
            return constant(found.value)
        if not isinstance(found, Place):
            raise _OpaqueError
        return found

    def _read(self, value: ir.Value) -> Node | Place | bool:
        if value not in self._values:
            self._values[value] = self._make(value)
        return self._values[value]

    def _make(self, value: ir.Value) -> Node | Place | bool:
        if value in self._arguments:
            return self._argument(*self._arguments[value])
        op = defining_op(value)
        if op is None or op.operation.block != self._block:
            return scalar_expr(value)
        if op.name == "arith.constant":
            return scalar_expr(value)
        if op.name == "linalg.index":
            return self._loops[ir.IntegerAttr(op.attributes["dim"]).value]
        if op.name == "tensor.extract":
            return Element(op.operands[0], tuple(self._place(index) for index in list(op.operands)[1:]))
        if op.name == "arith.select":
            condition = self._read(op.operands[0])
            if isinstance(condition, bool):
                return self._read(op.operands[1 if condition else 2])
        if op.name == "arith.cmpi" and isinstance(op.operands[0].type, ir.IndexType):
            predicate = ir.IntegerAttr(op.attributes["predicate"]).value
            answer = compare(predicate, self._place(op.operands[0]), self._place(op.operands[1]))
            return _known(answer)
        if isinstance(value.type, ir.IndexType):
            return _known(self._index(op))
        return self._scalar(op, value)

    def _argument(self, operand: ir.Value, map_: ir.AffineMap) -> Node:
        if not isinstance(operand.type, ir.RankedTensorType):
            return scalar_expr(operand)
        places = [affine(expr, self._loops, []) for expr in map_.results]
        return Element(operand, tuple(_known(place) for place in places))

    def _index(self, op: ir.Operation) -> Place | None:
        places = [self._place(operand) for operand in op.operands]
        if op.name == "affine.apply":
            map_ = ir.AffineMapAttr(op.attributes["map"]).value
            return affine(map_.results[0], places[: map_.n_dims], places[map_.n_dims :])
        if op.name in _SAME_PLACE:
            return places[0]
        if len(places) != 2:
            return None
        a, b = places
        if op.name == "arith.addi":
            return a + b
        if op.name == "arith.muli":
            return multiply(a, b)
        if op.name in (*_QUOTIENTS, *_REMAINDERS) and not b.terms and b.constant:
            parts = divide(a, b.constant)
            return None if parts is None else parts[op.name in _REMAINDERS]
        return None

    def _scalar(self, op: ir.Operation, value: ir.Value) -> Node:
        if not op.name.startswith(("arith.", "math.", "complex.")) or len(op.results) != 1 or len(op.regions):
            raise _OpaqueError
        operands = tuple(self._node(operand) for operand in op.operands)
        if op.name in ("complex.re", "complex.im"):
            return _part(operands[0], int(op.name == "complex.im"))
        attributes = tuple((name, op.attributes[name]) for name in op.attributes)
        return Apply(op.name, operands, value.type, attributes)


def _known(value: Place | bool | None) -> Place | bool:
    if value is None:
        raise _OpaqueError
    return value


def _static_slice(op: ir.Operation) -> tuple[list[int], list[int | None], list[int]] | None:
    """Offsets, sizes and strides; None where an offset or a stride is dynamic or a stride is negative."""
    dynamic = ir.ShapedType.get_dynamic_size()
    offsets, sizes, strides = (
        list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("offsets", "sizes", "strides")
    )
    if dynamic in offsets or any(stride == dynamic or stride < 1 for stride in strides):
        return None
    return offsets, [None if size == dynamic else size for size in sizes], strides


def _kept_dims(sizes: list[int | None], result: list[int | None]) -> list[int] | None:
    """Which dims of a slice its result has; the others are dropped. Of equal dims of size 1 any will do."""
    kept: list[int] = []
    for dim, size in enumerate(sizes):
        if len(kept) < len(result) and size == result[len(kept)]:
            kept.append(dim)
        elif size != 1:
            return None
    return kept if len(kept) == len(result) else None


READERS = {
    "tensor.expand_shape": _expand_shape,
    "tensor.collapse_shape": _collapse_shape,
    "tensor.extract_slice": _extract_slice,
    "tensor.insert_slice": _insert_slice,
    "tensor.concat": _concat,
    "tensor.cast": lambda op, places: Element(op.operands[0], places),
    "iree_tensor_ext.bitcast": _bitcast,
    "arith.constant": _constant,
}

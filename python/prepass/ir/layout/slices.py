# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pads, slices and concatenations in other layouts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.elementwise import dynamic_sizes
from prepass.ir.expressions import element_type, tensor_sizes
from prepass.ir.layout.bodies import body_ops
from prepass.ir.layout.layouts import Layout, Operand, ordered_layout
from prepass.ir.layout.shapes import Dims, Shapes
from prepass.ir.layout.values import reorder_units
from prepass.ir.match import NoMatch

_DYNAMIC = ir.ShapedType.get_dynamic_size()
_SLICE = ("offsets", "sizes", "strides")


@dataclass
class _Numbers:
    """One number a dim, each static or an operand."""

    static: list[int]
    dynamic: list[ir.Value]

    def place(self, layout: Layout) -> _Numbers:
        """The numbers in the order of a layout."""
        values = iter(self.dynamic)
        pairs = [(number, next(values) if number == _DYNAMIC else None) for number in self.static]
        placed = [pairs[part.dim] for part in layout.parts]
        return _Numbers([number for number, _ in placed], [value for _, value in placed if value is not None])


def link_pad(op: ir.Operation, shapes: Shapes) -> None:
    """A dim that is not padded stays what it was."""
    low, high = _pad_numbers(op)
    same = [a == b == 0 for a, b in zip(low.static, high.static, strict=True)]
    _link_dims(op, shapes, shapes.operand(op, 0), shapes.value(op.result), same)


def link_slice(op: ir.Operation, shapes: Shapes) -> None:
    """A dim that is taken whole stays what it was."""
    inserts = op.name == "tensor.insert_slice"
    part = 0 if inserts else None
    whole = 1 if inserts else 0
    if inserts:
        for a, b in zip(shapes.operand(op, 1), shapes.value(op.result), strict=True):
            shapes.tie(a, b)
    value = op.operands[part] if inserts else op.result
    dims = shapes.operand(op, part) if inserts else shapes.value(op.result)
    offsets, sizes, strides = _slice_numbers(op)
    if ir.RankedTensorType(value.type).rank != len(sizes.static):
        raise NoMatch("it changes the rank", op)
    extents = tensor_sizes(op.operands[whole])
    same = [
        offset == 0 and stride == 1 and size == extent and extent is not None
        for offset, size, stride, extent in zip(offsets.static, sizes.static, strides.static, extents, strict=True)
    ]
    _link_dims(op, shapes, shapes.operand(op, whole), dims, same)


def link_concat(op: ir.Operation, shapes: Shapes) -> None:
    """All dims but one are the same in all parts."""
    joined = ir.IntegerAttr(op.attributes["dim"]).value
    for number in range(len(op.operands)):
        same = [dim != joined for dim in range(len(shapes.value(op.result)))]
        _link_dims(op, shapes, shapes.operand(op, number), shapes.value(op.result), same)


def _link_dims(op: ir.Operation, shapes: Shapes, a: Dims, b: Dims, same: Iterable[bool]) -> None:
    for first, second, is_same in zip(a, b, same, strict=True):
        if not is_same:
            shapes.keep_together(first, second)
        elif not shapes.tie(first, second):
            raise NoMatch("its sizes cannot be factored alike", op)


def check(op: ir.Operation, shapes: Shapes) -> None:
    """Raise NoMatch where an op cannot follow."""
    layouts = [
        shapes.ordered_layouts(op, number)[1]
        for number, value in enumerate(op.operands)
        if isinstance(value.type, ir.RankedTensorType)
    ]
    result = ordered_layout(shapes.value(op.result))
    for layout in layouts:
        if any(layout.place(dim) is None for dim in range(layout.rank)):
            raise NoMatch("it cuts a dim that is split", op)
        if [part.dim for part in layout.parts] != [part.dim for part in result.parts]:
            raise NoMatch("its dims go apart", op)
    if op.name == "tensor.pad":
        arguments = op.regions[0].blocks[0].arguments
        if any(next(iter(argument.uses), None) is not None for argument in arguments):
            raise NoMatch("its padding depends on where it is", op)


def build_pad(op: ir.Operation, shapes: Shapes, operand: Operand) -> list[ir.Value]:
    """The pad in a layout."""
    layout = ordered_layout(shapes.value(op.result))
    value = _operand(op, 0, shapes, operand)
    low, high = (numbers.place(layout) for numbers in _pad_numbers(op))
    attributes = {
        "static_low": ir.DenseI64ArrayAttr.get(low.static),
        "static_high": ir.DenseI64ArrayAttr.get(high.static),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, len(low.dynamic), len(high.dynamic)]),
    }
    if "nofold" in op.attributes:
        attributes["nofold"] = op.attributes["nofold"]
    type_ = _type(op.result, layout)
    made = ir.Operation.create("tensor.pad", [type_], [value, *low.dynamic, *high.dynamic], attributes, regions=1)
    indices = [ir.IndexType.get()] * layout.rank
    block = made.regions[0].blocks.append(*indices, arg_locs=[op.location] * layout.rank)
    with ir.InsertionPoint(block):
        _clone_all(body_ops(op))
    return [_result(op, made.result, shapes)]


def build_slice(op: ir.Operation, shapes: Shapes, operand: Operand) -> list[ir.Value]:
    """The slice, taken or put, in a layout."""
    layout = ordered_layout(shapes.value(op.result))
    tensors = 2 if op.name == "tensor.insert_slice" else 1
    values = [_operand(op, n, shapes, operand) for n in range(tensors)]
    numbers = [part.place(layout) for part in _slice_numbers(op)]
    attributes = {
        f"static_{name}": ir.DenseI64ArrayAttr.get(part.static) for name, part in zip(_SLICE, numbers, strict=True)
    }
    dynamic = [value for part in numbers for value in part.dynamic]
    segments = [1] * tensors + [len(part.dynamic) for part in numbers]
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(segments)
    made = ir.Operation.create(op.name, [_type(op.result, layout)], [*values, *dynamic], attributes)
    return [_result(op, made.result, shapes)]


def build_concat(op: ir.Operation, shapes: Shapes, operand: Operand) -> list[ir.Value]:
    """The parts of a concatenation, put side by side in a layout.

    Of a `tensor.concat` along an inner dim IREE may make transposes and a concatenation along the outermost.
    """
    layout = ordered_layout(shapes.value(op.result))
    values = [_operand(op, number, shapes, operand) for number in range(len(op.operands))]
    place = layout.place(ir.IntegerAttr(op.attributes["dim"]).value)
    type_ = _type(op.result, layout)
    sizes = [ir.RankedTensorType(value.type).shape[place] for value in values]
    if _DYNAMIC in sizes:
        dim = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), place)
        made = ir.Operation.create("tensor.concat", [type_], values, {"dim": dim})
        return [_result(op, made.result, shapes)]
    result = ir.Operation.create("tensor.empty", [type_], dynamic_sizes(values[0])).result
    for number, value in enumerate(values):
        result = _insert(value, result, place, sum(sizes[:number]))
    return [_result(op, result, shapes)]


def _operand(op: ir.Operation, number: int, shapes: Shapes, operand: Operand) -> ir.Value:
    """An operand with its dims in order, those of extent 1 too, as all of them have to agree."""
    layout, ordered = shapes.ordered_layouts(op, number)
    return reorder_units(operand(op.operands[number], layout), layout, ordered)


def _result(op: ir.Operation, value: ir.Value, shapes: Shapes) -> ir.Value:
    return reorder_units(value, ordered_layout(shapes.value(op.result)), shapes.layout(op.result))


def _type(value: ir.Value, layout: Layout) -> ir.Type:
    shape = ir.RankedTensorType(value.type).shape
    return ir.RankedTensorType.get([shape[part.dim] for part in layout.parts], element_type(value))


def _pad_numbers(op: ir.Operation) -> list[_Numbers]:
    return _numbers(op, ("low", "high"), 1)


def _slice_numbers(op: ir.Operation) -> list[_Numbers]:
    return _numbers(op, _SLICE, 2 if op.name == "tensor.insert_slice" else 1)


def _numbers(op: ir.Operation, names: Sequence[str], tensors: int) -> list[_Numbers]:
    values = list(op.operands)[tensors:]
    found = []
    for name in names:
        static = list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"]))
        count = static.count(_DYNAMIC)
        found.append(_Numbers(static, values[:count]))
        values = values[count:]
    return found


def _clone_all(ops: Sequence[ir.Operation]) -> None:
    values: dict[ir.Value, ir.Value] = {}
    for op in ops:
        copy = op.clone().operation
        for number, operand in enumerate(op.operands):
            copy.operands[number] = values.get(operand, operand)
        values.update(zip(op.results, copy.results, strict=True))


def _insert(part: ir.Value, whole: ir.Value, place: int, offset: int) -> ir.Value:
    """`part` in `whole`, from `offset` on along a dim and all along the others."""
    shape = list(ir.RankedTensorType(part.type).shape)
    sizes = dynamic_sizes(part)
    numbers = {
        "static_offsets": [offset if dim == place else 0 for dim in range(len(shape))],
        "static_sizes": shape,
        "static_strides": [1] * len(shape),
    }
    attributes = {name: ir.DenseI64ArrayAttr.get(values) for name, values in numbers.items()}
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, 1, 0, len(sizes), 0])
    return ir.Operation.create("tensor.insert_slice", [whole.type], [part, whole, *sizes], attributes).result

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Building the convolution of the phases of a transposed convolution, channels-last."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from iree.compiler import ir
from iree.compiler.dialects import arith

from prepass.ir.axes import Axis, Index
from prepass.ir.elementwise import clone_body
from prepass.ir.emit import (
    Extents,
    constant,
    emit_tensor,
    empty,
    extract_slice,
    generic,
    index_constant,
    loop_index,
    pad,
    relayout,
    zeros,
)
from prepass.ir.expressions import Apply, Expr, Read, element_type, tensor_sizes
from prepass.ir.named_convolutions import LAYOUTS
from prepass.ir.transposed_convolution.match import Direction, TransposedConvolution

FilterOrder = Literal["fhwc", "hwcf"]
_NAMES = {
    (1, "hwcf"): "linalg.conv_1d_nwc_wcf",
    (2, "hwcf"): "linalg.conv_2d_nhwc_hwcf",
    (2, "fhwc"): "linalg.conv_2d_nhwc_fhwc",
    (3, "hwcf"): "linalg.conv_3d_ndhwc_dhwcf",
}


def build_phases(found: TransposedConvolution, order: FilterOrder) -> ir.Value:
    """The result of a transposed convolution, at the current insertion point.

    It is computed channels-last, with filters in an order where there is such a named op, and transposed where the
    convolution is not.
    """
    layout, filter_layout, output = LAYOUTS[found.op.name]
    space = "".join(found.space)
    axes = {letter: Axis(size) for letter, size in zip(layout, tensor_sizes(found.source), strict=True)}
    axes["f"] = Axis(tensor_sizes(found.op.operands[1])[filter_layout.index("f")])
    extents = Extents([Read(found.source, tuple((axes[letter],) for letter in layout))])
    source = _transposed(found.source, layout, f"n{space}c", axes, extents)
    phases = [Axis(direction.stride) for direction in found.space.values()]
    steps = [Axis(direction.steps) for direction in found.space.values()]
    computed: Index = ((axes["n"],), *((step,) for step in steps), (*phases, axes["f"]))
    convolved = _build_convolution(found, source, computed, order, extents)
    pairs = list(zip(steps, phases, strict=True))
    interleaved: Index = ((axes["n"],), *pairs, (axes["f"],))
    value = _build_interleaved(found, Read(convolved, computed), axes["f"], interleaved, extents)
    value = _build_cut(found, value)
    results = {letter: Axis(direction.result) for letter, direction in found.space.items()}
    return _transposed(value, f"n{space}f", output, {**axes, **results}, extents)


def _transposed(value: ir.Value, layout: str, wanted: str, axes: dict[str, Axis], extents: Extents) -> ir.Value:
    source, target = (tuple((axes[letter],) for letter in letters) for letters in (layout, wanted))
    return relayout(value, source, target, extents)


def _build_convolution(
    found: TransposedConvolution, source: ir.Value, computed: Index, order: FilterOrder, extents: Extents
) -> ir.Value:
    op = found.op
    around = [(0, 0), *(direction.padding for direction in found.space.values()), (0, 0)]
    if any(map(any, around)):
        zero = constant(0, element_type(source))
        source = pad(source, [low for low, _ in around], [high for _, high in around], zero)
    rank = len(found.space)
    order = order if (rank, order) in _NAMES else "hwcf"
    accumulator = element_type(op.results[0])
    operands = [source, _build_filter(found, order), zeros(computed, accumulator, extents)]
    attributes = {name: op.attributes[name] for name in ("strides", "dilations") if name in op.attributes}
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([2, 1])
    made = ir.Operation.create(_NAMES[rank, order], [operands[-1].type], operands, attributes, regions=1)
    types = [element_type(value) for value in operands]
    block = made.regions[0].blocks.append(*types, arg_locs=[made.location] * len(types))
    with ir.InsertionPoint(block):
        values = dict(zip(op.regions[0].blocks[0].arguments, block.arguments, strict=True))
        ir.Operation.create("linalg.yield", [], clone_body(op, values))
    return made.result


def _build_filter(found: TransposedConvolution, order: FilterOrder) -> ir.Value:
    """The taps of each phase: for phase r and tap t, tap s - 1 - r + s·t of the filter."""
    layout = LAYOUTS[found.op.name][1]
    weights = _padded_filter(found, layout)
    sizes = dict(zip(layout, tensor_sizes(weights), strict=True))
    phases = {letter: Axis(direction.stride) for letter, direction in found.space.items()}
    taps = {letter: Axis(direction.taps) for letter, direction in found.space.items()}
    channels = {letter: Axis(sizes[letter]) for letter in "fc"}
    result = [*phases.values(), channels["f"]]
    loops = [*result, *taps.values(), channels["c"]] if order == "fhwc" else [*taps.values(), channels["c"], *result]
    index: Index = tuple((axis,) for axis in loops)

    def body(_: Sequence[ir.Value]) -> ir.Value:
        at = {axis: loop_index(number) for number, axis in enumerate(loops)}
        places = [
            _tap(found.space[letter], at[phases[letter]], at[taps[letter]])
            if letter in found.space
            else at[channels[letter]]
            for letter in layout
        ]
        return ir.Operation.create("tensor.extract", [element_type(weights)], [weights, *places]).result

    into = empty(index, element_type(weights), Extents([]))
    gathered = generic([], into, [ir.AffineMap.get_identity(len(loops))], body)
    # The dims of phases and channels become one; others may be of size 1, and are to stay.
    ones = [1] * (len(loops) - len(result))
    return _collapse(gathered, [len(result), *ones] if order == "fhwc" else [*ones, len(result)])


def _padded_filter(found: TransposedConvolution, layout: str) -> ir.Value:
    weights = found.op.operands[1]
    more = [
        direction.taps * direction.stride - direction.kernel if (direction := found.space.get(letter)) else 0
        for letter in layout
    ]
    if not any(more):
        return weights
    return pad(weights, [0] * len(layout), more, constant(0, element_type(weights)))


def _tap(direction: Direction, phase: ir.Value, tap: ir.Value) -> ir.Value:
    first = arith.subi(index_constant(direction.stride - 1), phase)
    return arith.addi(first, arith.muli(tap, index_constant(direction.stride)))


def _collapse(value: ir.Value, counts: Sequence[int]) -> ir.Value:
    sizes = [size or 0 for size in tensor_sizes(value)]
    starts = [sum(counts[:n]) for n in range(len(counts))]
    groups = [list(range(start, start + count)) for start, count in zip(starts, counts, strict=True)]
    i64 = ir.IntegerType.get_signless(64)
    reassociation = ir.ArrayAttr.get(
        [ir.ArrayAttr.get([ir.IntegerAttr.get(i64, dim) for dim in group]) for group in groups]
    )
    type_ = ir.RankedTensorType.get([math.prod(sizes[d] for d in group) for group in groups], element_type(value))
    return ir.Operation.create("tensor.collapse_shape", [type_], [value], {"reassociation": reassociation}).result


def _build_interleaved(
    found: TransposedConvolution, read: Read, channel: Axis, index: Index, extents: Extents
) -> ir.Value:
    value: Expr = read
    accumulator, element = element_type(found.op.results[0]), element_type(found.last.results[0])
    if found.bias is not None:
        add = "arith.addi" if isinstance(accumulator, ir.IntegerType) else "arith.addf"
        value = Apply(add, (value, Read(found.bias, ((channel,),))), accumulator)
    if element != accumulator:
        value = Apply("arith.truncf", (value,), element)
    if value is read:
        return relayout(read.value, read.index, index, extents)
    return emit_tensor(value, index, element, extents)


def _build_cut(found: TransposedConvolution, value: ir.Value) -> ir.Value:
    """The results that are asked for, of those that are computed."""
    type_ = ir.RankedTensorType(value.type)
    results = [direction.result for direction in found.space.values()]
    shape = [type_.shape[0], *results, type_.shape[-1]]
    if shape == list(type_.shape):
        return value
    offsets = [0, *(direction.shift for direction in found.space.values()), 0]
    return extract_slice(value, offsets, ir.RankedTensorType.get(shape, type_.element_type))

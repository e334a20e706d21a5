# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions: which dims are channels, and the op over channels-last operands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import linalg

from prepass.ir.axes import Axis
from prepass.ir.barriers import keep_layout
from prepass.ir.emit import Extents, dim_size, relayout
from prepass.ir.expressions import Read, element_type, indexing_maps, loop_sizes, tensor_sizes
from prepass.ir.layout import structured
from prepass.ir.layout.bodies import structured_op, window_attributes
from prepass.ir.layout.costs import is_constant
from prepass.ir.layout.factors import Group
from prepass.ir.layout.layouts import Layout, Operand, Part
from prepass.ir.layout.shapes import Shapes, is_free
from prepass.ir.layout.values import free_value, to_layout
from prepass.ir.targets.convolutions import ConvolutionShape, FilterOrder

INPUT, FILTER = 0, 1

_ARRAYS = ("batch", "output_image", "output_channel", "filter_loop", "input_channel", "depth")

# The named op for channels-last operands, by the named op and the order of the filter.
_NAMED: dict[tuple[str, FilterOrder], str] = {
    ("conv_1d_ncw_fcw", "hwcf"): "conv_1d_nwc_wcf",
    ("conv_2d_nchw_fchw", "fhwc"): "conv_2d_nhwc_fhwc",
    ("conv_2d_nchw_fchw", "hwcf"): "conv_2d_nhwc_hwcf",
    ("conv_2d_nchw_fchw_q", "fhwc"): "conv_2d_nhwc_fhwc_q",
    ("conv_2d_nchw_fchw_q", "hwcf"): "conv_2d_nhwc_hwcf_q",
    ("conv_2d_ngchw_gfchw", "fhwc"): "conv_2d_nhwgc_gfhwc",
    ("conv_2d_ngchw_gfchw_q", "fhwc"): "conv_2d_nhwgc_gfhwc_q",
    ("conv_2d_ngchw_fgchw", "fhwc"): "conv_2d_nhwgc_gfhwc",
    ("conv_3d_ncdhw_fcdhw", "hwcf"): "conv_3d_ndhwc_dhwcf",
    ("depthwise_conv_1d_ncw_cw", "hwcf"): "depthwise_conv_1d_nwc_wc",
    ("depthwise_conv_2d_nchw_chw", "hwcf"): "depthwise_conv_2d_nhwc_hwc",
    ("depthwise_conv_3d_ncdhw_cdhw", "hwcf"): "depthwise_conv_3d_ndhwc_dhwc",
}


@dataclass(frozen=True)
class Convolution:
    """A convolution op, by its loops.

    Attributes:
      op: Named or generic.
      depth: Groups, or the channels of a depthwise convolution.
    """

    op: ir.Operation
    batch: tuple[int, ...]
    output_image: tuple[int, ...]
    output_channel: tuple[int, ...]
    filter_loop: tuple[int, ...]
    input_channel: tuple[int, ...]
    depth: tuple[int, ...]

    @property
    def depthwise(self) -> bool:
        """Whether no channels are added up."""
        return not self.input_channel

    @property
    def pointwise(self) -> bool:
        """Whether each pixel of the result is of one pixel: a filter of 1x1, one group."""
        sizes = loop_sizes(self.op)
        unit = all(sizes[loop] == 1 for loop in self.filter_loop)
        dims = (len(self.batch), len(self.output_channel), len(self.input_channel), len(self.depth))
        return unit and dims == (1, 1, 1, 0) and len(self.op.operands) == 3

    @property
    def single_window(self) -> bool:
        """Whether there is one result along a dim whose pixels are added up."""
        sizes = loop_sizes(self.op)
        pairs = zip(self.output_image, self.filter_loop, strict=True)
        return any(sizes[result] == 1 and sizes[tap] != 1 for result, tap in pairs)

    @property
    def is_channels_last(self) -> bool:
        """Whether the channels of its input are its last dims."""
        channels = self.channels(INPUT)
        rank = len((indexing_maps(self.op) or [])[INPUT].results)
        return channels == list(range(rank - len(channels), rank))

    @property
    def strides(self) -> list[int]:
        """The strides along the pixels."""
        return list(_dims(self.op).strides)

    @property
    def shape(self) -> ConvolutionShape:
        """What a target's table asks."""
        sizes = loop_sizes(self.op)
        windows = list(zip([sizes[loop] for loop in self.filter_loop], self.strides, strict=True))
        channels = [sizes[loop] for loop in self.output_channel]
        filters = tensor_sizes(self.op.operands[FILTER])
        bits = element_type(self.op.operands[FILTER]).width
        return ConvolutionShape(
            window_dims=len(windows),
            depthwise=self.depthwise,
            pointwise=all(size == stride == 1 for size, stride in windows),
            patches=all(size is not None and stride >= size > 1 for size, stride in windows),
            filters=None if None in channels else math.prod(channels),
            strided=any(stride != 1 for stride in self.strides),
            filter_bytes=None if None in filters else math.prod(filters) * bits // 8,
        )

    def standard_dims(self, number: int) -> list[int]:
        """The dims of input or result in the order of channels-last named ops: batch, pixels, groups, channels."""
        map_ = (indexing_maps(self.op) or [])[number]
        channels = self.channels(number)
        batch = [
            dim
            for dim, expr in enumerate(map_.results)
            if isinstance(expr, ir.AffineDimExpr) and expr.position in self.batch
        ]
        pixels = [dim for dim in range(len(map_.results)) if dim not in channels and dim not in batch]
        return [*batch, *pixels, *channels]

    def filter_dims(self, order: FilterOrder) -> list[int]:
        """The dims of the filter, groups first or before the channels that they belong to."""
        loops = {
            "fhwc": (*self.depth, *self.output_channel, *self.filter_loop, *self.input_channel),
            "hwcf": (*self.filter_loop, *self.input_channel, *self.depth, *self.output_channel),
        }[order]
        map_ = (indexing_maps(self.op) or [])[FILTER]
        places = {expr.position: dim for dim, expr in enumerate(map(ir.AffineDimExpr, map_.results))}
        return [places[loop] for loop in loops]

    def channels(self, number: int) -> list[int]:
        """The dims of an operand that are channels."""
        wanted = {*self.output_channel, *self.input_channel, *self.depth}
        map_ = (indexing_maps(self.op) or [])[number]
        return [
            dim
            for dim, expr in enumerate(map_.results)
            if isinstance(expr, ir.AffineDimExpr) and expr.position in wanted
        ]


def read_convolution(op: ir.Operation) -> Convolution | None:
    """The convolution that an op is, or None."""
    if not op.name.startswith("linalg.") or len(op.results) != 1 or len(op.regions) != 1:
        return None
    if not isinstance(op.results[0].type, ir.RankedTensorType):
        return None
    dims = _dims(op)
    if dims is None:
        return None
    found = Convolution(op, *(tuple(getattr(dims, name)) for name in _ARRAYS))
    return found if found.output_image and found.filter_loop and found.depth + found.input_channel else None


def _dims(op: ir.Operation) -> linalg.ConvolutionDimensions | None:
    if op.name.startswith("linalg.") and op.name.endswith("_q") and "conv" in op.name:
        # Zero points are subtracted in its body, and then it is not taken for a convolution.
        input_map, filter_map, *_, result_map = indexing_maps(op) or []
        return linalg.infer_convolution_dimensions_from_maps([input_map, filter_map, result_map])
    return linalg.infer_convolution_dimensions(op) if linalg.isa_convolution_op(op) else None


def link(found: Convolution, shapes: Shapes) -> None:
    """Make input and result the same along what they share; the filter is on its own."""
    structured.link(found.op, shapes, skip=(FILTER,))


def channel_groups(found: Convolution, shapes: Shapes) -> tuple[list[Group], list[Group]]:
    """The dims of input and result that are channels, and the others."""
    channels: list[Group] = []
    others: list[Group] = []
    for number in (INPUT, len(found.op.operands) - 1):
        wanted = found.channels(number)
        for dim, group in enumerate(shapes.operand(found.op, number)):
            (channels if dim in wanted else others).append(group)
    for dim, group in enumerate(shapes.value(found.op.result)):
        (channels if dim in found.channels(len(found.op.operands) - 1) else others).append(group)
    return channels, others


def check(found: Convolution, shapes: Shapes) -> None:
    """Raise NoMatch where a convolution cannot be in channels-last."""
    structured.check(found.op, shapes, skip=(FILTER,))


def build(found: Convolution, shapes: Shapes, operand: Operand, order: FilterOrder) -> list[ir.Value]:
    """The convolution over operands in their layouts, its filter in the order that the target wants."""
    op = found.op
    numbers = structured.tensor_operands(op, skip=(FILTER,))
    layouts = {number: shapes.operand_layout(op, number) for number in numbers}
    layouts[FILTER] = _permuted(shapes, op, found.filter_dims(order))
    values = [operand(v, layouts[n]) if n in layouts and n != FILTER else v for n, v in enumerate(op.operands)]
    values[FILTER] = _filter(op.operands[FILTER], layouts[FILTER])
    standard = all(
        [part.dim for part in layouts[number].parts] == found.standard_dims(number)
        for number in (INPUT, len(op.operands) - 1)
    )
    if standard and found.pointwise:
        return [_build_contraction(found, values, order)]
    named = _named_op(found, order)
    if standard and named is not None:
        return list(structured_op(named, values, 1, window_attributes(op), op).results)
    maps = indexing_maps(op) or []
    loops = structured.loop_order(maps, layouts, [[size] for size in loop_sizes(op)])
    laid_out = [
        structured.laid_out_map(map_, layouts[n], loops) if n in layouts else ir.AffineMap.get(len(loops), 0, [])
        for n, map_ in enumerate(maps)
    ]
    return list(structured.generic_op(op, values, 1, laid_out).results)


def _permuted(shapes: Shapes, op: ir.Operation, dims: Sequence[int]) -> Layout:
    groups = shapes.operand(op, FILTER)
    return Layout(tuple(Part(dim, 0, 1, tuple(groups[dim])) for dim in dims), len(dims))


def _filter(value: ir.Value, layout: Layout) -> ir.Value:
    if is_free(value):
        return free_value(value, layout)
    laid_out = to_layout(value, layout)
    # Weights are transposed when the program is loaded; other filters would be read through the transpose.
    return keep_layout(laid_out) if layout.moves and not is_constant(value) else laid_out


def _named_op(found: Convolution, order: FilterOrder) -> str | None:
    name = found.op.name.removeprefix("linalg.")
    named = _NAMED.get((name, order))
    return None if named is None else f"linalg.{named}"


def _build_contraction(found: Convolution, values: Sequence[ir.Value], order: FilterOrder) -> ir.Value:
    """A pointwise convolution as a contraction; pixels stay loops of their own, as IREE collapses them where it can."""
    image, filter_, init = values
    if any(stride != 1 for stride in found.strides):
        image = _every(image, init, found.strides)
    loops = [ir.AffineExpr.get_dim(loop) for loop in range(ir.RankedTensorType(init.type).rank + 1)]
    *pixels, outer, inner = loops
    channels = [outer, inner] if order == "fhwc" else [inner, outer]
    axes = [Axis(tensor_sizes(init)[-1]), Axis(tensor_sizes(image)[-1])]
    first, last = axes if order == "fhwc" else axes[::-1]
    taps = ((),) * len(found.filter_loop)
    places = ((first,), *taps, (last,)) if order == "fhwc" else (*taps, (first,), (last,))
    weights = relayout(filter_, places, ((first,), (last,)), Extents([Read(filter_, places)]))
    maps = [ir.AffineMap.get(len(loops), 0, exprs) for exprs in ([*pixels, inner], channels, [*pixels, outer])]
    return structured.generic_op(found.op, [image, weights, init], 1, maps).result


def _every(image: ir.Value, result: ir.Value, strides: Sequence[int]) -> ir.Value:
    """The pixels that a strided convolution reads; IREE loads them wide where a convolution of them would not be."""
    rank = len(strides) + 2
    steps = [1, *strides, 1]
    type_ = ir.RankedTensorType(result.type)
    shape = [*type_.shape[:-1], ir.RankedTensorType(image.type).shape[-1]]
    sizes = [
        dim_size(image if dim == rank - 1 else result, dim)
        for dim, size in enumerate(shape)
        if size == ir.ShapedType.get_dynamic_size()
    ]
    attributes = {
        "static_offsets": ir.DenseI64ArrayAttr.get([0] * rank),
        "static_sizes": ir.DenseI64ArrayAttr.get(shape),
        "static_strides": ir.DenseI64ArrayAttr.get(steps),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, len(sizes), 0]),
    }
    taken = ir.RankedTensorType.get(shape, element_type(image))
    return ir.Operation.create("tensor.extract_slice", [taken], [image, *sizes], attributes).result

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Give stems, convolutions of images of 3 channels for one, as many input channels as a load takes.

On gfx942 a convolution whose channels are last loads 8 or 16 bytes at once, of 3 channels in f16 it loads 2, many times
over. An image is copied anyway, from channels-first; the copy gets channels of zeros behind those that there are. The
filter is padded when the program is loaded.

Before:

    %last = linalg.generic {indexing_maps = [(n, h, w, c) -> (n, c, h, w), (n, h, w, c) -> (n, h, w, c)], ...}
        ins(%image : tensor<1x3x512x512xf16>) outs(... : tensor<1x512x512x3xf16>) ...
    %padded = tensor.pad %last low[0, 1, 1, 0] high[0, 1, 1, 0] ... : ... to tensor<1x514x514x3xf16>
    %conv = linalg.conv_2d_nhwc_fhwc ins(%padded, %filter : ..., tensor<128x3x3x3xf16>) ...

After:

    %more = linalg.generic ... outs(... : tensor<1x512x512x4xf16>) {
      c < 3 ? tensor.extract %image[n, min(c, 2), h, w] : 0
    }
    %kept = iree_tensor_ext.compute_barrier.start %more : ...
    %padded = tensor.pad %kept low[0, 1, 1, 0] high[0, 1, 1, 0] ... : ... to tensor<1x514x514x4xf16>
    %wider = tensor.pad %filter low[0, 0, 0, 0] high[0, 0, 0, 1] ... : ... to tensor<128x3x3x4xf16>
    %conv = linalg.conv_2d_nhwc_fhwc ins(%padded, %wider : ..., tensor<128x3x3x4xf16>) ...

IREE would make one `tensor.pad` of both, and fuse it into the convolution, which then loads 2 bytes again; hence the
barrier, which is gone once dispatches are formed.

Left alone when

- no target is known, or the target does not ask for more channels than there are;
- it is none of the plain named convolutions with channels last;
- the number of input channels is dynamic, or the filter is not constant;
- the image is padded along its channels, by a dynamic amount, or not with zeros.

It stands behind `prepass-transpose-convolutions`.

Source: IREE's own padding of channels,
https://github.com/iree-org/iree/blob/main/compiler/src/iree/compiler/Preprocessing/Common/PadToIntrinsics.cpp
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import arith

from prepass.ir.axes import Axis, leaves
from prepass.ir.barriers import is_kept, keep_layout
from prepass.ir.elementwise import clone_body
from prepass.ir.emit import (
    Extents,
    constant,
    empty,
    erase_dead_producers,
    generic,
    index_constant,
    loop_index,
    pad,
    pad_high,
)
from prepass.ir.expressions import Read, descend, element_type, tensor_sizes
from prepass.ir.layout.costs import is_constant
from prepass.ir.match import NoMatch, defining_op, find_ops
from prepass.ir.named_convolutions import LAYOUTS
from prepass.ir.padding.read import pad_number
from prepass.ir.sums import build_like
from prepass.ir.targets import Target
from prepass.ir.targets.convolutions import padded_input_channels
from prepass.pipeline.base import Pass, PassContext


@dataclass(frozen=True)
class _Stem:
    """A convolution of few channels.

    Attributes:
      image: Without its padding.
      low, high: The padding along each dim of the image.
      channels: How many it is to have.
    """

    op: ir.Operation
    image: ir.Value
    low: tuple[int, ...]
    high: tuple[int, ...]
    channels: int


def _match_stem(op: ir.Operation, target: Target | None) -> _Stem | None:
    """Read a named convolution; None when its channels are not last. Raises NoMatch."""
    layout, _, _ = LAYOUTS[op.name]
    if layout[-1] != "c":
        return None
    if target is None:
        raise NoMatch("no target is known", op)
    channels = tensor_sizes(op.operands[0])[-1]
    if channels is None:
        raise NoMatch("the number of input channels is dynamic", op)
    padded = padded_input_channels(target, channels, str(element_type(op.operands[0])))
    if padded is None:
        raise NoMatch(f"{target.name} does not ask for more than {channels} input channels", op)
    if not is_constant(op.operands[1]):
        raise NoMatch("its filter is not constant, and would be copied each time", op)
    return _Stem(op, *_read_padding(op.operands[0]), padded)


def _read_padding(value: ir.Value) -> tuple[ir.Value, tuple[int, ...], tuple[int, ...]]:
    """What is padded, and the elements before and behind it."""
    none = (0,) * ir.RankedTensorType(value.type).rank
    op = defining_op(value)
    if op is None or op.name != "tensor.pad":
        return value, none, none
    low, high = (tuple(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("low", "high"))
    if len(op.operands) > 1:
        raise NoMatch("the padding is dynamic", op)
    if low[-1] or high[-1]:
        raise NoMatch("the channels are padded", op)
    if pad_number(op) != 0:
        raise NoMatch("the padding is not zeros", op)
    return op.operands[0], low, high


def _build_stem(found: _Stem) -> ir.Value:
    op = found.op
    image, weights = op.operands[0], op.operands[1]
    wider = keep_layout(_build_wider(found.image, found.channels))
    if found.image != image:
        type_ = ir.RankedTensorType(image.type)
        type_ = ir.RankedTensorType.get([*type_.shape[:-1], found.channels], type_.element_type)
        wider = pad(wider, found.low, found.high, constant(0, type_.element_type), type_)
    dim = LAYOUTS[op.name][1].index("c")
    more = found.channels - (tensor_sizes(image)[-1] or 0)
    operands = [wider, pad_high(weights, dim, more, constant(0, element_type(weights))), op.operands[2]]
    arguments = op.regions[0].blocks[0].arguments
    return build_like(op, operands, lambda new: clone_body(op, dict(zip(arguments, new, strict=True))))


def _build_wider(image: ir.Value, channels: int) -> ir.Value:
    """The image with channels of zeros, copied from where its elements are before they are moved."""
    *sizes, present = tensor_sizes(image)
    axes = [*(Axis(size) for size in sizes), Axis(present)]
    read = _origin(Read(image, tuple((axis,) for axis in axes)))
    loops = tuple((axis,) for axis in (*axes[:-1], Axis(channels)))

    def body(_: Sequence[ir.Value]) -> ir.Value:
        at = {axis: loop_index(number) for number, axis in enumerate(axes)}
        channel = at[axes[-1]]
        at[axes[-1]] = arith.minui(channel, index_constant(present - 1))
        places = [at[axis] if (axis := next(iter(leaves(group)), None)) else index_constant(0) for group in read.index]
        found = ir.Operation.create("tensor.extract", [element_type(image)], [read.value, *places]).result
        there = arith.cmpi(arith.CmpIPredicate.ult, channel, index_constant(present))
        return arith.select(there, found, constant(0, element_type(image)))

    into = empty(loops, element_type(image), Extents([Read(image, tuple((axis,) for axis in axes))]))
    return generic([], into, [ir.AffineMap.get_identity(len(loops))], body)


def _origin(read: Read) -> Read:
    """The tensor that the elements of another are in, before transposes that keep its dims."""
    loops = set(leaves(axis for group in read.index for axis in group))
    value = read.value
    while is_kept(op := defining_op(value)):
        value = op.operands[0]
    found = Read(value, read.index)
    for expr in descend(found):
        if not isinstance(expr, Read):
            break
        groups = [leaves(group) for group in expr.index]
        if all(len(group) <= 1 and loops.issuperset(group) for group in groups):
            found = expr
    return found


@dataclass(frozen=True)
class PadInputChannelsPass(Pass):
    """Give stems, convolutions of images of 3 channels for one, as many input channels as a load takes."""

    name = "prepass-pad-input-channels"
    dependent_dialects = ("arith", "iree_tensor_ext", "linalg", "tensor")

    def run(self, op: ir.Operation, context: PassContext) -> None:
        for convolution, found in context.matches(
            find_ops(op, lambda inner: inner.name in LAYOUTS), lambda inner: _match_stem(inner, context.target)
        ):
            context.applied(convolution, f"reads {found.channels} channels, for wide loads")
            context.count("padded")
            with ir.InsertionPoint(convolution), convolution.location:
                convolution.results[0].replace_all_uses_with(_build_stem(found))
            erase_dead_producers([convolution.results[0]])

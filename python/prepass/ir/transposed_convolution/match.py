# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recognizing a transposed convolution: a convolution of an input whose elements stand apart, with zeros between."""

from __future__ import annotations

import math
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.elementwise import is_elementwise, is_truncation, moves_only
from prepass.ir.exact import filled_number
from prepass.ir.expressions import indexing_maps, tensor_sizes
from prepass.ir.match import NoMatch, defining_op, has_one_user
from prepass.ir.named_convolutions import LAYOUTS, SPACE, rates
from prepass.ir.padding.read import Splat, pad_number, read_padded


@dataclass(frozen=True)
class Direction:
    """One spatial dim of a transposed convolution.

    Attributes:
      size: Elements of the input.
      kernel: Taps of the filter.
      stride: The distance of the elements once they are spread.
      low: Zeros before the first of them.
      result: Elements of the result.
    """

    size: int
    kernel: int
    stride: int
    low: int
    result: int

    @property
    def taps(self) -> int:
        """Taps of the filter of one phase."""
        return -(-self.kernel // self.stride)

    @property
    def shift(self) -> int:
        """Results before the first one that are computed so that all phases read the same elements."""
        return (self.stride - 1 - self.low) % self.stride

    @property
    def steps(self) -> int:
        """Results of each phase."""
        return -(-(self.result + self.shift) // self.stride)

    @property
    def padding(self) -> tuple[int, int]:
        """Zeros before and behind the input of the convolution of the phases."""
        before = (self.low + self.shift - self.stride + 1) // self.stride
        return before, max(self.steps + self.taps - 1 - before - self.size, 0)


@dataclass(frozen=True)
class TransposedConvolution:
    """What a transposed convolution computes.

    Attributes:
      op: The convolution.
      last: The op whose result is to be replaced: `op`, or the truncation that alone reads it.
      source: The input, as it is before it is spread.
      bias: A tensor of one element a channel that is added, or None.
      space: For each spatial letter, in the order of the input.
    """

    op: ir.Operation
    last: ir.Operation
    source: ir.Value
    bias: ir.Value | None
    space: dict[str, Direction]

    @property
    def phases(self) -> int:
        """How many there are."""
        return math.prod(direction.stride for direction in self.space.values())


def match_transposed(op: ir.Operation) -> TransposedConvolution | None:
    """Read an op of LAYOUTS; None for a convolution that is not transposed. Raises NoMatch."""
    spread = _spread_input(op.operands[0])
    if spread is None:
        return None
    insertion, low = spread
    for name in ("strides", "dilations"):
        if any(rate != 1 for rate in rates(op, name)):
            raise NoMatch(f"it has {name} of its own", op)
    layout, filter_layout, output = LAYOUTS[op.name]
    source = insertion.operands[0]
    _match_static(op, layout, source)
    strides = ir.DenseI64ArrayAttr(insertion.attributes["static_strides"])
    kernel = dict(zip(filter_layout, tensor_sizes(op.operands[1]), strict=True))
    result = dict(zip(output, tensor_sizes(op.results[0]), strict=True))
    sizes = tensor_sizes(source)
    if any(strides[dim] != 1 or low[dim] for dim, letter in enumerate(layout) if letter not in SPACE):
        raise NoMatch("channels or batch are spread", op)
    space = {
        letter: Direction(sizes[dim] or 0, kernel[letter] or 0, strides[dim], low[dim], result[letter] or 0)
        for dim, letter in enumerate(layout)
        if letter in SPACE
    }
    last = op
    if has_one_user(op.results[0]) and is_truncation(user := next(iter(op.results[0].uses)).owner.operation):
        last = user
    return TransposedConvolution(op, last, source, _match_bias(op, output), space)


def _spread_input(value: ir.Value) -> tuple[ir.Operation, list[int]] | None:
    """The strided insertion into zeros that a value is, through pads, and the zeros before its first element."""
    low = [0] * ir.RankedTensorType(value.type).rank
    op = defining_op(value)
    while op is not None and op.name == "tensor.pad" and pad_number(op) == 0 and len(op.operands) == 1:
        low = [a + b for a, b in zip(low, ir.DenseI64ArrayAttr(op.attributes["static_low"]), strict=True)]
        op = defining_op(op.operands[0])
    if op is None or op.name != "tensor.insert_slice":
        return None
    strides = ir.DenseI64ArrayAttr(op.attributes["static_strides"])
    if len(strides) != ir.RankedTensorType(op.operands[0].type).rank or all(stride == 1 for stride in strides):
        return None
    target = read_padded(op.operands[1])
    if not isinstance(target, Splat) or target.number != 0:
        return None
    offsets = list(ir.DenseI64ArrayAttr(op.attributes["static_offsets"]))
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    if dynamic in offsets or dynamic in list(strides):
        raise NoMatch("where the spread elements go is not known at compile time", op)
    return op, [a + b for a, b in zip(low, offsets, strict=True)]


def _match_static(op: ir.Operation, layout: str, source: ir.Value) -> None:
    dynamic = [letter for letter, size in zip(layout, tensor_sizes(source), strict=True) if size is None]
    outputs = LAYOUTS[op.name][2]
    dynamic += [letter for letter, size in zip(outputs, tensor_sizes(op.results[0]), strict=True) if size is None]
    if set(dynamic) - {"n"} or None in tensor_sizes(op.operands[1]):
        raise NoMatch("a size other than that of the batch is dynamic", op)


def _match_bias(op: ir.Operation, output: str) -> ir.Value | None:
    init = op.operands[2]
    if filled_number(init) == 0:
        return None
    producer = defining_op(init)
    if producer is not None and is_elementwise(producer) and moves_only(producer) and len(producer.operands) == 2:
        (channel,) = (ir.AffineExpr.get_dim(dim) for dim, letter in enumerate(output) if letter == "f")
        if list((indexing_maps(producer) or [])[0].results) == [channel]:
            return producer.operands[0]
    raise NoMatch("it adds to a tensor that is neither zeros nor a bias", op)

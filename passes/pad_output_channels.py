# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Give convolutions with few output channels more of them, so that they use matrix instructions.

For AMD's gfx9 GPUs IREE computes up to 4 without MFMA, pixel by pixel; with 8 channels, of which those that are not
asked for are cut off again, it uses MFMA. The filter is padded when the program is loaded, if it is a weight.

Before:

    %conv = linalg.conv_2d_nhwc_fhwc ins(%x, %filter : tensor<2x66x66x320xf16>, tensor<1x3x3x320xf16>)
        outs(%init : tensor<2x64x64x1xf32>) ...

After:

    %padded = tensor.pad %filter low[0, 0, 0, 0] high[7, 0, 0, 0] { tensor.yield %zero : f16 }
        : tensor<1x3x3x320xf16> to tensor<8x3x3x320xf16>
    %conv = linalg.conv_2d_nhwc_fhwc ins(%x, %padded : tensor<2x66x66x320xf16>, tensor<8x3x3x320xf16>)
        outs(%zeros : tensor<2x64x64x8xf32>) ...
    %cut = tensor.extract_slice %conv[0, 0, 0, 0] [2, 64, 64, 1] [1, 1, 1, 1]
        : tensor<2x64x64x8xf32> to tensor<2x64x64x1xf32>
    (%init is added to %cut, unless it is zeros)

Left alone when

- no target is known, or the target does not ask for more channels than there are;
- the target is gfx942, and the convolution has windows and 2 to 4 output channels: `prepass-configure-convolutions` has
  them padded within the kernel, once the channels are last;
- fewer than 64 products are summed up for each result: there is little to gain;
- the number of output channels, of input channels or of taps is dynamic;
- it is none of the plain named convolutions.

Source: https://github.com/iree-org/iree/blob/main/compiler/src/iree/compiler/Codegen/LLVMGPU/KernelConfig.cpp
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.axes import Axis, Index
from prepass.ir.elementwise import clone_body
from prepass.ir.emit import Extents, constant, emit_tensor, erase_dead_producers, extract_slice, pad, zeros
from prepass.ir.exact import filled_number
from prepass.ir.expressions import Apply, Read, element_type, tensor_sizes
from prepass.ir.match import NoMatch, find_ops
from prepass.ir.named_convolutions import LAYOUTS
from prepass.ir.sums import build_like
from prepass.ir.targets import Target
from prepass.ir.targets.convolutions import FEWEST_PRODUCTS, padded_output_channels, pads_within_kernel
from prepass.pipeline.base import Pass, PassContext


def _match_padded_channels(op: ir.Operation, target: Target | None) -> int:
    """How many output channels a named convolution is to have."""
    if target is None:
        raise NoMatch("no target is known", op)
    sizes = dict(zip(LAYOUTS[op.name][1], tensor_sizes(op.operands[1]), strict=True))
    if None in sizes.values():
        raise NoMatch("a size of the filter is dynamic", op)
    channels, inputs = sizes.pop("f") or 0, sizes.pop("c") or 0
    padded = padded_output_channels(target, channels)
    element = str(element_type(op.operands[1]))
    if padded is not None and pads_within_kernel(target, channels, element, windows=max(sizes.values()) != 1):
        raise NoMatch(f"the {channels} output channels are padded within the kernel", op)
    if padded is None:
        raise NoMatch(f"{target.name} does not ask for more than {channels} output channels", op)
    if inputs * math.prod(size or 0 for size in sizes.values()) < FEWEST_PRODUCTS:
        raise NoMatch("few products are summed up for each result", op)
    return padded


def _build_padded(op: ir.Operation, channels: int) -> ir.Value:
    _, filter_layout, output = LAYOUTS[op.name]
    weights, accumulator = op.operands[1], element_type(op.results[0])
    more = [channels - size if c == "f" else 0 for c, size in zip(filter_layout, tensor_sizes(weights), strict=True)]
    weights = pad(weights, [0] * len(more), more, constant(0, element_type(weights)))
    sizes = tensor_sizes(op.results[0])
    result: Index = tuple((Axis(size),) for size in sizes)
    wide: Index = tuple((Axis(channels),) if c == "f" else group for c, group in zip(output, result, strict=True))
    extents = Extents([Read(op.operands[2], result)])
    operands = [op.operands[0], weights, zeros(wide, accumulator, extents)]
    arguments = op.regions[0].blocks[0].arguments
    convolved = build_like(op, operands, lambda new: clone_body(op, dict(zip(arguments, new, strict=True))))
    cut = extract_slice(convolved, [0] * len(sizes), op.results[0].type)
    if filled_number(op.operands[2]) == 0:
        return cut
    add = "arith.addi" if isinstance(accumulator, ir.IntegerType) else "arith.addf"
    total = Apply(add, (Read(cut, result), Read(op.operands[2], result)), accumulator)
    return emit_tensor(total, result, accumulator, extents)


@dataclass(frozen=True)
class PadOutputChannelsPass(Pass):
    """Give convolutions with few output channels more of them, so that they use matrix instructions."""

    name = "prepass-pad-output-channels"
    dependent_dialects = ("arith", "linalg", "tensor")

    def run(self, op: ir.Operation, context: PassContext) -> None:
        for convolution, channels in context.matches(
            find_ops(op, lambda found: found.name in LAYOUTS),
            lambda convolution: _match_padded_channels(convolution, context.target),
        ):
            context.applied(convolution, f"computes {channels} output channels, for matrix instructions")
            context.count("padded")
            with ir.InsertionPoint(convolution), convolution.location:
                convolution.results[0].replace_all_uses_with(_build_padded(convolution, channels))
            erase_dead_producers([convolution.results[0]])

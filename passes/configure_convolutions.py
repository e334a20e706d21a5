# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Give convolutions with few output channels a lowering config with matrix instructions.

The last convolution of a UNet has 4 output channels, that of a VAE 3. For gfx942 IREE computes up to 4 without MFMA,
pixel by pixel. The config has it pad the channels to the 16 columns of a matrix instruction within the kernel: no
padded filter and no padded result are in memory, and what follows stays fused. The pass runs on the executable sources:
a config is by loop, and only there the loops are final. `prepass-transpose-convolutions` brings it along.

Before:

    %conv = linalg.conv_2d_nhwc_fhwc
        ins(%padded, %filter : tensor<2x66x66x320xf16>, tensor<4x3x3x320xf16>) outs(%zeros : tensor<2x64x64x4xf32>)

After:

    %conv = linalg.conv_2d_nhwc_fhwc {compilation_info = #iree_codegen.compilation_info<
            lowering_config = #iree_gpu.lowering_config<{
                mma_kind = #iree_gpu.mma_layout<MFMA_F32_16x16x16_F16>, padding = [1, 1, 32, 16, 64],
                workgroup = [1, 1, 32, 16, 0], ...}>, ...>}
        ins(%padded, %filter : tensor<2x66x66x320xf16>, tensor<4x3x3x320xf16>) outs(%zeros : tensor<2x64x64x4xf32>)

A convolution with more channels, or with groups, is not looked at: IREE's choice has matrix instructions.

Left alone when

- it has a config already;
- no target is known for it, or the target is not gfx942;
- a size is dynamic: IREE 3.13 does not compile such padding;
- its channels are not last, or its loops are in another order than pixels, filters, window, channels;
- fewer than 64 products are summed up for each result: there is little to gain;
- its operands are not both f16, bf16 or f32 with sums in f32, or i8 with sums in i32.

Source: https://github.com/iree-org/iree/blob/main/compiler/src/iree/compiler/Codegen/LLVMGPU/KernelConfig.cpp
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.expressions import element_type, loop_sizes
from prepass.ir.layout.convolutions import Convolution, read_convolution
from prepass.ir.match import NoMatch, find_ops
from prepass.ir.targets import Target, target_to_configure
from prepass.ir.targets.convolutions import FEWEST_PRODUCTS, MATRIX_SUMS, MOST_WITHOUT_MATRIX
from prepass.ir.targets.gfx942_convolutions import ConvolutionTile, few_filters_attributes, few_filters_tile
from prepass.pipeline.base import Pass, PassContext


@dataclass(frozen=True)
class _FewFilters:
    target: Target
    tile: ConvolutionTile
    taps: int
    element: str

    @property
    def attributes(self) -> dict[str, ir.Attribute]:
        return few_filters_attributes(self.tile, self.taps, self.element)


def _match_few_filters(op: ir.Operation, known: Target | None) -> _FewFilters | None:
    """None for what is no convolution of one group with few filters. Raises NoMatch."""
    found = read_convolution(op)
    if found is None or found.depth or not _few(found):
        return None
    target = target_to_configure(op, known)
    if target.architecture != "gfx942":
        raise NoMatch(f"IREE's default for {target.name} is kept", op)
    sizes = loop_sizes(op)
    pixels = [*found.batch, *found.output_image]
    if not found.is_channels_last or [
        *pixels, *found.output_channel, *found.filter_loop, *found.input_channel
    ] != list(range(len(sizes))):  # fmt: skip
        raise NoMatch("its channels are not last, or its loops are in another order", op)
    if None in sizes:
        raise NoMatch("a size is dynamic", op)
    if math.prod(sizes[loop] for loop in (*found.filter_loop, *found.input_channel)) < FEWEST_PRODUCTS:
        raise NoMatch("few products are summed up for each result", op)
    *types, sums = [str(element_type(operand)) for operand in op.operands]
    if types != [types[0]] * 2 or MATRIX_SUMS.get(types[0]) != sums:
        raise NoMatch(f"no matrix instruction adds up products of {' and '.join(types)} in {sums}", op)
    tile = few_filters_tile([sizes[loop] for loop in pixels])
    return _FewFilters(target, tile, len(found.filter_loop), types[0])


def _few(found: Convolution) -> bool:
    sizes = loop_sizes(found.op)
    filters = [sizes[loop] for loop in found.output_channel]
    return len(filters) == 1 and filters[0] is not None and filters[0] <= MOST_WITHOUT_MATRIX


@dataclass(frozen=True)
class ConfigureConvolutionsPass(Pass):
    """Give convolutions with few output channels a lowering config with matrix instructions."""

    name = "prepass-configure-convolutions"
    dependent_dialects = ("iree_codegen", "iree_gpu", "linalg")
    phase = "executable-sources"

    def run(self, op: ir.Operation, context: PassContext) -> None:
        for convolution, found in context.matches(
            find_ops(op, lambda inner: inner.name.startswith("linalg.")),
            lambda inner: _match_few_filters(inner, context.target),
        ):
            message = f"configured for {found.target.name}: matrix instructions pad its filters"
            context.configured(convolution, message, found.attributes)

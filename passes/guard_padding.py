# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keep reshapes from coming between padding and its convolution.

A GroupNorm splits channels into groups. IREE moves the reshape that merges them again down the program, past
elementwise ops and past padding, to right before the convolution, into which it then fuses no padding: each such norm
costs a copy. A barrier, which IREE has for its own such moves, stops the reshape before the padding. It is gone once
dispatches are formed.

Before:

    %merged = tensor.collapse_shape %normalized [[0], [1], [2], [3, 4]] : tensor<1x64x64x32x16xf16> into ...
    %padded = tensor.pad %merged low[0, 1, 1, 0] high[0, 1, 1, 0] ...
    %conv = linalg.conv_2d_nhwc_fhwc ins(%padded, %filter : ...) ...

After:

    %merged = tensor.collapse_shape %normalized [[0], [1], [2], [3, 4]] : tensor<1x64x64x32x16xf16> into ...
    %held = iree_tensor_ext.compute_barrier.start %merged : tensor<1x64x64x512xf16> -> tensor<1x64x64x512xf16>
    %padded = tensor.pad %held low[0, 1, 1, 0] high[0, 1, 1, 0] ...
    %conv = linalg.conv_2d_nhwc_fhwc ins(%padded, %filter : ...) ...

Behind the padding of a depthwise convolution stands such a barrier too: with its padding fused it loads 2 bytes at a
time on gfx942, and without it vectors.

Left alone when

- the target is not ROCm: for others padding is not fused into convolutions;
- no convolution and no pooling reads the padding.

It stands last in a pipeline, as passes do not look through barriers.

Source: https://github.com/iree-org/iree/blob/main/compiler/src/iree/compiler/DispatchCreation/RemoveTensorBarriers.cpp
"""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.barriers import is_kept, keep_layout
from prepass.ir.match import NoMatch, defining_op, walk_ops
from prepass.ir.padding.sink import slides
from prepass.ir.targets import Target
from prepass.pipeline.base import Pass, PassContext

_DEPTHWISE = "linalg.depthwise_conv"


def _match_readers(pad: ir.Operation, target: Target | None) -> list[ir.Operation]:
    """The convolutions and poolings that read the padding."""
    if target is None or target.backend != "rocm":
        raise NoMatch("padding is fused into convolutions for ROCm alone", pad)
    readers = [use.owner.operation for use in pad.results[0].uses if slides(use.owner.operation)]
    if not readers:
        raise NoMatch("no convolution reads it", pad)
    return readers


@dataclass(frozen=True)
class GuardPaddingPass(Pass):
    """Keep reshapes from coming between padding and its convolution."""

    name = "prepass-guard-padding"
    dependent_dialects = ("arith", "iree_tensor_ext", "tensor")

    def run(self, op: ir.Operation, context: PassContext) -> None:
        for pad, readers in context.matches(
            walk_ops(op, "tensor.pad"), lambda pad: _match_readers(pad, context.target)
        ):
            apart = [reader for reader in readers if reader.name.startswith(_DEPTHWISE)]
            for reader in apart:
                context.applied(reader, "its padding stays apart, for vector loads")
                context.count("apart")
                with ir.InsertionPoint(reader), reader.location:
                    reader.operands[0] = keep_layout(reader.operands[0])
            if len(apart) < len(readers) and not is_kept(defining_op(pad.operands[0])):
                context.applied(pad, "no reshape will come between it and its convolution")
                context.count("guarded")
                with ir.InsertionPoint(pad), pad.location:
                    pad.operands[0] = keep_layout(pad.operands[0])

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

Left alone when

- the target is not ROCm: for others padding is not fused into convolutions;
- no convolution and no pooling reads the padding.

It stands last in a pipeline, as passes do not look through barriers.

Source: https://github.com/iree-org/iree/blob/main/compiler/src/iree/compiler/DispatchCreation/RemoveTensorBarriers.cpp
"""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.elementwise import dynamic_sizes
from prepass.ir.match import NoMatch, defining_op, walk_ops
from prepass.ir.padding.sink import slides
from prepass.ir.targets import Target
from prepass.pipeline.base import Pass, PassContext

_BARRIER = "iree_tensor_ext.compute_barrier.start"


def _match_unguarded(pad: ir.Operation, target: Target | None) -> bool:
    if target is None or target.backend != "rocm":
        raise NoMatch("padding is fused into convolutions for ROCm alone", pad)
    if not any(slides(use.owner.operation) for use in pad.results[0].uses):
        raise NoMatch("no convolution reads it", pad)
    source = defining_op(pad.operands[0])
    return source is None or source.name != _BARRIER


@dataclass(frozen=True)
class GuardPaddingPass(Pass):
    """Keep reshapes from coming between padding and its convolution."""

    name = "prepass-guard-padding"
    dependent_dialects = ("arith", "iree_tensor_ext", "tensor")

    def run(self, op: ir.Operation, context: PassContext) -> None:
        for pad in walk_ops(op, "tensor.pad"):
            try:
                unguarded = _match_unguarded(pad, context.target)
            except NoMatch as miss:
                context.missed_match(miss)
                continue
            if not unguarded:
                continue
            context.applied(pad, "no reshape will come between it and its convolution")
            context.count("guarded")
            source = pad.operands[0]
            with ir.InsertionPoint(pad), pad.location:
                pad.operands[0] = ir.Operation.create(_BARRIER, [source.type], [source, *dynamic_sizes(source)]).result

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Make convolutions, and all that stands between them, channels-last.

Before:

    %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] ... : tensor<2x320x64x64xf16> to tensor<2x320x66x66xf16>
    %conv = linalg.conv_2d_nchw_fchw
        ins(%padded, %filter : tensor<2x320x66x66xf16>, tensor<640x320x3x3xf16>) outs(%bias : ...)
    %mean = linalg.generic ... ins(%grouped : tensor<2x32x81920xf16>) ...
    %tokens = linalg.transpose ins(%normalized : tensor<2x640x4096xf16>) ... permutation = [0, 2, 1]

After:

    %padded = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] ... : tensor<2x64x64x320xf16> to tensor<2x66x66x320xf16>
    %conv = linalg.conv_2d_nhwc_fhwc
        ins(%padded, %filter : tensor<2x66x66x320xf16>, tensor<640x3x3x320xf16>) outs(%bias : ...)
    %mean = linalg.generic ... ins(%grouped : tensor<2x4096x32x20xf16>) ...
    (%normalized has the layout of %tokens)

The layout of all tensors of a function is chosen at once. What is known of the channels of one convolution is followed
through elementwise ops, broadcasts, reductions, pads, slices, concatenations, poolings, gathers of whole channels and
reshapes, the groups of a GroupNorm included. Ops follow wherever that costs no more than transposing what they read and
write; where two layouts meet, at the edges of the function or at an op that cannot follow, the fewest bytes are
transposed, and each transpose is a remark with its reason. A filter of 1x1 becomes a contraction. Filters that are
weights are transposed when the program is loaded.

Left alone when

- no target is known, or none that is in the table of targets;
- there is one window along a dim: the image is as small as the filter;
- the target is llvm-cpu and filters of windows a pixel apart are more than 8 MB, or windows have three dims;
- a convolution gains less than transposes would cost, and nothing around it is channels-last: a depthwise one on
  gfx942, on llvm-cpu one of single pixels, of patches that do not overlap, or of fewer than 8 filters;
- sizes cannot be factored alike on both sides of an op, as when a reshape mixes channels and pixels.

Source: the layout that IREE's own pipeline makes, one convolution at a time,
https://github.com/iree-org/iree/blob/main/compiler/src/iree/compiler/Preprocessing/Common/ConvertConvToChannelsLast.cpp
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from iree.compiler import ir

from prepass.ir.layout.convolutions import Convolution, read_convolution
from prepass.ir.layout.function import FunctionLayout
from prepass.ir.layout.rebuild import rebuild
from prepass.ir.match import NoMatch, defining_op, find_ops
from prepass.ir.targets import Target
from prepass.ir.targets.convolutions import ConvolutionForm, FilterOrder, convolution_form
from prepass.pipeline.base import Pass, PassContext
from prepass.pipeline.options import option

_FUNCTIONS = ("util.func", "func.func")


def _match_form(found: Convolution, target: Target | None, filters: FilterOrder | None) -> ConvolutionForm:
    if found.single_window:
        # IREE 3.13 does not compile some that are dilated, or inserted into a larger tensor. Nothing slides, so that
        # there is nothing to gain either.
        raise NoMatch("there is one window along a dim", found.op)
    if filters is not None:
        return ConvolutionForm("hwcf" if found.depthwise else filters, pays=True)
    if target is None:
        raise NoMatch("no target is known", found.op)
    form = convolution_form(target, found.shape)
    if form is None:
        raise NoMatch(f"no other layout is known to be faster on {target.name}", found.op)
    return form


@dataclass(frozen=True)
class TransposeConvolutionsPass(Pass):
    """Make convolutions, and all that stands between them, channels-last."""

    name = "prepass-transpose-convolutions"
    dependent_dialects = ("arith", "iree_tensor_ext", "linalg", "tensor")
    followed_by = ("prepass-configure-reductions", "prepass-configure-convolutions")
    filters: Literal["fhwc", "hwcf"] | None = option(
        None, help="Make all convolutions channels-last, filters in this order; none asks the target's table."
    )

    def run(self, op: ir.Operation, context: PassContext) -> None:
        functions = [op] if op.name in _FUNCTIONS else find_ops(op, lambda inner: inner.name in _FUNCTIONS)
        for function in functions:
            if not find_ops(function, lambda inner: read_convolution(inner) is not None):
                continue
            # What conflicts with the layout of others is asked again once that is written down.
            while self._run_on(FunctionLayout(function), context):
                pass

    def _run_on(self, layout: FunctionLayout, context: PassContext) -> bool:
        """Returns whether there is more to do."""
        layout.send_channels_last(lambda found: _match_form(found, context.target, self.filters))
        layout.decide()
        gains = any(op in layout.convolutions for op in layout.following)
        again = bool(layout.conflicts) and gains
        _report(layout, context, layout.conflicts if again else set())
        if not gains:
            return False
        rebuild(layout, lambda value, user: _report_transpose(layout, context, value, user))
        return again


def _report(layout: FunctionLayout, context: PassContext, postponed: set[ir.Operation]) -> None:
    following = set(layout.following)
    for found in layout.candidates:
        if found.op in postponed:
            continue
        if found.op in layout.misses:
            context.missed_match(layout.misses[found.op])
        elif found.op in following:
            context.applied(found.op, "channels-last")
            context.count("convolutions")
        elif found.op in layout.convolutions:
            context.missed(found.op, "it gains less from channels-last than transposes would cost")


def _report_transpose(layout: FunctionLayout, context: PassContext, value: ir.Value, user: ir.Operation | None) -> None:
    context.count("transposes")
    if user is not None:
        while user.parent.operation.name.startswith("linalg."):  # It reads from the body of an op.
            user = user.parent.operation
        context.missed(user, f"it reads a transposed copy: {layout.why_not(user)}")
        return
    producer = defining_op(value)
    what = "what it makes" if producer else "an argument"
    context.missed(producer or value.owner.owner, f"{what} is transposed: {layout.why_not(producer)}")

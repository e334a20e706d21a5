# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compute transposed convolutions without the zeros between the elements of their input.

Exporters write a transposed convolution of stride s as a convolution of an input with s - 1 zeros between any two
elements, most of whose products are with zero. Its results at positions that differ by a multiple of s come from the
same taps of the filter, every s-th one, and from neighbouring elements. So the s·s phases of the result are as many
times the channels of one convolution with a filter s times smaller in each direction, and are interleaved at the end.

Before:

    %spread = tensor.insert_slice %x into %zeros[0, 0, 2, 2] [2, 16, 9, 9] [1, 1, 2, 2]
        : tensor<2x16x9x9xf16> into tensor<2x16x21x21xf16>
    %conv = linalg.conv_2d_nchw_fchw ins(%spread, %filter : tensor<2x16x21x21xf16>, tensor<24x16x4x4xf16>)
        outs(%init : tensor<2x24x18x18xf32>) ...

After:

    %taps = linalg.generic ... { tensor.extract %filter[%f, %c, 1 - %r0 + 2 * %t0, 1 - %r1 + 2 * %t1] }
        : tensor<2x2x24x16x2x2xf16>
    %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] ... : ... to tensor<2x16x11x11xf16>
    %phases = linalg.conv_2d_nchw_fchw ins(%padded, %collapsed : tensor<2x16x11x11xf16>, tensor<96x16x2x2xf16>)
        outs(%zero : tensor<2x96x10x10xf32>) ...
    (%phases, as 2x2x2x24x10x10, is transposed to 2x24x10x2x10x2, collapsed to 2x24x20x20 and cut to 2x24x18x18)

The filter is rearranged once, when the program is loaded, if it is a weight. Where the kernel is no multiple of the
stride, it is padded to one. A bias, and a truncation behind the convolution, are part of the interleaving.

Left alone when

- the convolution has strides or dilations of its own, or another form than the plain named ones;
- a size other than that of the batch is dynamic, or the spread elements go where it is not known at compile time;
- it adds to a tensor that is neither filled with zeros nor a bias of the channels.

Source: "Is the deconvolution layer the same as a convolutional layer?", https://arxiv.org/abs/1609.07009
"""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.emit import erase_dead_producers
from prepass.ir.match import find_ops
from prepass.ir.named_convolutions import LAYOUTS
from prepass.ir.transposed_convolution.build import build_phases
from prepass.ir.transposed_convolution.match import match_transposed
from prepass.pipeline.base import Pass, PassContext


@dataclass(frozen=True)
class DecomposeTransposedConvolutionsPass(Pass):
    """Compute transposed convolutions without the zeros between the elements of their input."""

    name = "prepass-decompose-transposed-convolutions"
    dependent_dialects = ("arith", "linalg", "tensor")

    def run(self, op: ir.Operation, context: PassContext) -> None:
        order = "fhwc" if context.target is not None and context.target.backend == "rocm" else "hwcf"
        for convolution, transposed in context.matches(
            find_ops(op, lambda found: found.name in LAYOUTS), match_transposed
        ):
            context.applied(convolution, f"computed as the {transposed.phases} phases of its result")
            context.count("decomposed")
            with ir.InsertionPoint(transposed.last), convolution.location:
                transposed.last.results[0].replace_all_uses_with(build_phases(transposed, order))
            erase_dead_producers([transposed.last.results[0]])

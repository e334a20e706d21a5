# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions with channels innermost: an implicit matrix product of pixels by filters, through LDS.

A workgroup computes 128 pixels by 128 or 160 filters with four waves. An iteration is 32 channels (16 where that is all
that divides them) of one tap. It costs less time in LDS than in the matrix cores because a wave computes 64x64 results
(32x160), where IREE's own code has waves of 32x32 to 32x64. A problem that would leave CUs idle is cut smaller.

Pixels are numbered through rows, images and the batch, so no size of the image needs padding; lanes behind the last
pixel compute the last one again, and the last tile of filters overlaps the one before.
"""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir

from prepass.amdgpu.machine import GFX942
from prepass.ir.kernels import CONTRACTION, CONVOLUTION, Example, ExpectedFigures, KernelDescription, OpKind
from prepass.ir.match import defining_op
from prepass.kernels.convolution.examples import example
from prepass.kernels.implicit_product.kernel import CONDITIONS, ELEMENT_TYPES, SIDES, ImplicitProduct


def _is_strided_product(op: ir.Operation) -> bool:
    """Whether an op is what IREE makes of a convolution of single pixels with a stride: it loads every other pixel."""
    if not CONTRACTION.recognizes(op):
        return False
    image = defining_op(op.operands[0])
    if image is None or "static_strides" not in image.attributes:
        return False
    return max(ir.DenseI64ArrayAttr(image.attributes["static_strides"])) > 1


@dataclass(frozen=True)
class ConvolutionKernel(ImplicitProduct):
    """An NHWC convolution with FHWC filters, of any window, stride, dilation and padding."""

    kind = OpKind("convolution", lambda op: CONVOLUTION.recognizes(op) or _is_strided_product(op))

    @property
    def description(self) -> KernelDescription:
        """See `Kernel.description`."""
        tile = self.first_tile
        return KernelDescription(
            summary="NHWC convolutions with FHWC filters, bound by the matrix cores.",
            targets=(GFX942.architecture,),
            element_types=ELEMENT_TYPES,
            conditions=(*CONDITIONS, *self.sizes, "the padding is zeros"),
            tile={"pixels": tile.pixels.rows, "F": tile.filters.rows},
            step={"C": tile.depth},
            workgroup_size=tile.threads,
            lds_bytes=tile.lds_bytes,
            figures=ExpectedFigures(per="an iteration", mfma=512, valu=44, lds=384, vgprs=112),
            reason="IREE's own code needs as long in LDS as in the matrix cores, or longer, and stores 2 bytes a lane.",
        )

    def examples(self) -> tuple[Example, ...]:
        """See `Kernel.examples`."""
        return (
            example(1, 256, 256, 256, 256),
            example(2, 64, 64, 320, 320),
            example(2, 64, 64, 320, 320, element="bf16"),
            example(2, 64, 64, 320, 320, stride=2),
            example(2, 64, 64, 320, 640, window=1, stride=2),
            example(2, 32, 32, 1280, 1280),
            example(2, 128, 128, 640, 320),
        )


CONVOLUTION_KERNEL = ConvolutionKernel("convolution", tiles=tuple(SIDES), by_default=True)

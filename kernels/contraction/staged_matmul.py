# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products, which IREE makes of convolutions of single pixels: the same code without a window."""

from __future__ import annotations

from dataclasses import dataclass

from prepass.amdgpu.machine import GFX942
from prepass.ir.kernels import CONTRACTION, Example, ExpectedFigures, KernelDescription
from prepass.kernels.contraction.examples import linear_layer
from prepass.kernels.implicit_product.kernel import CONDITIONS, ELEMENT_TYPES, SIDES, ImplicitProduct


@dataclass(frozen=True)
class StagedMatmul(ImplicitProduct):
    """Rows by columns, both with the terms innermost. Rows count as pixels, columns as filters, terms as channels."""

    kind = CONTRACTION

    @property
    def description(self) -> KernelDescription:
        """See `Kernel.description`."""
        tile = self.first_tile
        return KernelDescription(
            summary="Convolutions of 1x1 and linear layers, through LDS, bound by the matrix cores.",
            targets=(GFX942.architecture,),
            element_types=ELEMENT_TYPES,
            conditions=(*CONDITIONS, *self.sizes),
            tile={"pixels": tile.pixels.rows, "F": tile.filters.rows},
            step={"C": tile.depth},
            workgroup_size=tile.threads,
            lds_bytes=tile.lds_bytes,
            figures=ExpectedFigures(per="2^20 operations", mfma=2048, valu=152, lds=1536, vgprs=118),
            reason="It gains nothing where there is most to do, loses on few rows, and has not run on the hardware, "
            "on which IREE's own code was tuned.",
        )

    def examples(self) -> tuple[Example, ...]:
        """See `Kernel.examples`."""
        return (
            linear_layer(8192, 640, 2560),
            linear_layer(8192, 640, 2560, element="bf16"),
            linear_layer(8192, 320, 320),
            linear_layer(2048, 1280, 1280),
            linear_layer(2048, 1280, 10240),
        )


STAGED_MATMUL = StagedMatmul("staged-matmul", tiles=tuple(SIDES))

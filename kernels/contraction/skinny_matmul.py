# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products of few rows, such as those of 77 tokens: the waves of a workgroup share the terms.

Tiles of 32 rows are the smallest that the matrix instruction takes; few of them cover the result, and most CUs would
have none. So a workgroup computes little of it, 32x32 or 32x64, and each of its waves a quarter of the terms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from prepass.amdgpu.machine import GFX942
from prepass.ir.kernels import CONTRACTION, Example, ExpectedFigures, KernelDescription
from prepass.ir.match import NoMatch
from prepass.kernels.contraction.examples import linear_layer
from prepass.kernels.implicit_product.kernel import CONDITIONS, ELEMENT_TYPES, ImplicitProduct, Sides
from prepass.kernels.implicit_product.match import Dispatch
from prepass.kernels.implicit_product.tile import Side

_SIDES: Sides = {(32, 32): (Side(1, 1), Side(1, 1)), (32, 64): (Side(1, 1), Side(1, 2))}
# With fewer, reading the weights from HBM takes longer than IREE's own code does.
_FEWEST_ROWS = 17
_MOST_ROWS = 160
# With fewer, adding up the parts takes longer than they save.
_FEWEST_TERMS = 256
_FITS = f"the tiles are no more than the CUs, {GFX942.compute_units}: a larger product is better cut less fine"


@dataclass(frozen=True)
class SkinnyMatmul(ImplicitProduct):
    """Few rows by columns, both with the terms innermost; these count as pixels, filters and channels."""

    kind = CONTRACTION
    sides = _SIDES
    parts = 4
    depths = (128, 64)
    tunable: ClassVar = {"tiles": tuple((rows,) for rows in _SIDES)}

    tiles: tuple[tuple[int, int], ...] = tuple(_SIDES)

    @property
    def description(self) -> KernelDescription:
        """See `Kernel.description`."""
        tile = self.first_tile
        return KernelDescription(
            summary="Linear layers of few rows, whose waves share the terms.",
            targets=(GFX942.architecture,),
            element_types=ELEMENT_TYPES,
            conditions=(
                *CONDITIONS,
                *self.sizes,
                f"there are {_FEWEST_ROWS} to {_MOST_ROWS} rows",
                f"C is at least {_FEWEST_TERMS}",
                _FITS,
            ),
            tile={"pixels": tile.pixels.rows, "F": tile.filters.rows},
            step={"C": tile.depth},
            workgroup_size=tile.threads,
            lds_bytes=tile.lds_bytes,
            figures=ExpectedFigures(per="2^20 operations", mfma=2048, valu=304, lds=4096, vgprs=62),
            reason="IREE's own code leaves most CUs idle.",
        )

    def check(self, dispatch: Dispatch) -> None:
        """See `ImplicitProduct.check`."""
        rows = dispatch.problem.pixels
        if not _FEWEST_ROWS <= rows <= _MOST_ROWS:
            raise NoMatch(f"there are {rows} rows, not {_FEWEST_ROWS} to {_MOST_ROWS}", dispatch.convolution)
        if dispatch.problem.channels < _FEWEST_TERMS:
            raise NoMatch(f"C is {dispatch.problem.channels}, less than {_FEWEST_TERMS}", dispatch.convolution)
        fewest = min(math.prod(tile.workgroups(dispatch.problem)) for tile in self.tiles_of(self.depths[0]))
        if fewest > GFX942.compute_units:
            raise NoMatch(f"{fewest} workgroups are more than there are CUs", dispatch.convolution)

    def examples(self) -> tuple[Example, ...]:
        """See `Kernel.examples`."""
        return (
            linear_layer(77, 2048, 640),
            linear_layer(154, 2048, 1280),
            linear_layer(77, 768, 768),
            linear_layer(77, 768, 3072),
            linear_layer(77, 3072, 768),
            linear_layer(77, 1280, 5120),
            linear_layer(77, 5120, 1280),
            linear_layer(32, 4096, 4096),
        )


SKINNY_MATMUL = SkinnyMatmul("skinny-matmul", by_default=True)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gfx942 (MI300): tiles of convolutions with few output channels.

IREE 3.13 takes up to 4 output channels for too few to use matrix instructions, and computes pixel by pixel. A matrix
instruction makes 16 columns, so that 12 are idle at 4 channels; it is the quicker way all the same. Figures are static,
by the cost model: thousands of cycles of the busiest CU, for 3x3 windows in f16.

| convolution | IREE, without MFMA | padded to 8 channels | 16 or 32 pixels a workgroup | 128 pixels |
|-------------|--------------------|----------------------|-----------------------------|------------|
| 2x64x64, 320 to 4 | 15.7 | 15.1 | 5.0 | 15.1 |
| 256x256, 128 to 3 | 34.6 | 12.1 | 14.1 | 12.1 |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.targets.attention_shape import load_dialects

_COMPUTE_UNITS = 304
_LANES = 64
# The matrix instruction: rows and columns; and how many terms it adds up, by type.
_ROWS = 16
_INTRINSICS = {
    "f16": ("MFMA_F32_16x16x16_F16", 16),
    "bf16": ("MFMA_F32_16x16x16_BF16", 16),
    "f32": ("MFMA_F32_16x16x4_F32", 4),
    "i8": ("MFMA_I32_16x16x32_I8", 32),
}
_INTRINSICS_A_STEP = 4
# Pixels along the last dims of the result; how many intrinsics a wave computes along each; cycles of a CU's LDS, the
# busiest unit, for a term.
_TILES = (((16,), (1,), 1.0), ((32,), (1,), 1.75), ((2, 64), (2, 1), 5.25))


@dataclass(frozen=True)
class ConvolutionTile:
    """What a workgroup computes of each result.

    Attributes:
      pixels: Along each pixel loop.
      waves_share: How many matrix instructions a wave computes along each pixel loop; what is left are waves.
    """

    pixels: tuple[int, ...]
    waves_share: tuple[int, ...]

    @property
    def waves(self) -> int:
        """Waves of a workgroup."""
        return math.prod(self.pixels) // (_ROWS * math.prod(self.waves_share))


def few_filters_tile(sizes: Sequence[int]) -> ConvolutionTile:
    """The tile for a convolution of few filters by the sizes of its pixel loops: the busiest CU is done first."""
    fitting = [tile for tile in _TILES if len(tile[0]) <= len(sizes)]

    def busiest(tile: tuple[tuple[int, ...], tuple[int, ...], float]) -> float:
        pixels = _along(tile[0], len(sizes))
        workgroups = math.prod(-(-size // part) for size, part in zip(sizes, pixels, strict=True))
        return -(-workgroups // _COMPUTE_UNITS) * tile[2]

    pixels, share, _ = min(fitting, key=busiest)
    return ConvolutionTile(_along(pixels, len(sizes)), _along(share, len(sizes)))


def few_filters_attributes(tile: ConvolutionTile, taps: int, element_type: str) -> dict[str, ir.Attribute]:
    """The lowering config of a convolution with loops over pixels, filters, `taps` dims of the window, and channels.

    IREE makes a product of matrices of it, in which the window and the channels are one loop.
    """
    load_dialects("iree_codegen", "iree_gpu")
    intrinsic, terms = _INTRINSICS[element_type]
    tiled = [*tile.pixels, _ROWS]
    products = [0] * len(tiled)
    # The attributes of iree_gpu have no Python builders that take all of these.
    config = (
        f"#iree_gpu.lowering_config<{{mma_kind = #iree_gpu.mma_layout<{intrinsic}>, "
        f"padding = {[*tiled, _INTRINSICS_A_STEP * terms]}, padding_conv = {[*tiled, *[0] * (taps + 1)]}, "
        f"promote_operands = [0, 1], reduction = {[*products, _INTRINSICS_A_STEP]}, "
        f"subgroup = {[*tile.waves_share, 1, 0]}, workgroup = {[*tiled, 0]}}}>"
    )
    options = (
        "#iree_gpu.pipeline_options<prefetch_num_stages = 2, "
        "no_reduce_shared_memory_bank_conflicts = false, use_igemm_convolution = true>"
    )
    translation = (
        f"<pipeline = #iree_gpu.pipeline<TileAndFuse> workgroup_size = [{tile.waves * _LANES}, 1, 1] "
        f"subgroup_size = {_LANES}, {{gpu_pipeline_options = {options}}}>"
    )
    info = f"#iree_codegen.compilation_info<lowering_config = {config}, translation_info = {translation}>"
    return {"compilation_info": ir.Attribute.parse(info)}


def _along(parts: Sequence[int], loops: int) -> tuple[int, ...]:
    return (*[1] * (loops - len(parts)), *parts)

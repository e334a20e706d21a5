# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gfx942 (MI300): tiles of contractions with several results, which read one operand for all of them.

Figures are static, read from the assembly of iree-base-compiler 3.13.0; nothing here has run on the hardware. They are
for f16 in, f32 sums; MFMA and loads are those of the innermost loop, 16 bytes a lane each.

| results | tile (rows × columns × depth) | MFMA | loads | VGPR | LDS bytes |
|---------|-------------------------------|------|-------|------|-----------|
| 1       | default, 64x128 a wave        | 64   | 12    | 132  | 50688     |
| 2       | default, 64x64x64             | 32   | 6     | 78   | 26112     |
| 2       | 128x128x32                    | 64   | 6     | 219  | 27648     |
| 2       | 128x64x64                     | 64   | 8     | 184  | 34816     |
| 3       | default, 32x32x128            | 24   | 8     | 67   | 33792     |
| 3       | 128x64x32                     | 48   | 5     | 176  | 23040     |
| 3       | 128x64x64                     | 96   | 10    | 245  | 43520     |

With the 32x32x8 MFMA the same tiles take no fewer loads or LDS reads. The pipeline, VectorDistribute, does not pad: a
tile must divide its dim. Two stages of prefetch hide the loads, as they do for one result.
"""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.targets.attention_shape import load_dialects

# A matrix instruction takes 16 rows; for fewer, IREE makes kernels that reduce in vectors.
MFMA_ROWS = 16
# Below this a kernel takes less time than to launch it: 4 MiB are 1 µs at the 4 TB/s of the memory.
LAUNCH_BOUND_BYTES = 4 << 20


@dataclass(frozen=True)
class ContractionTile:
    """What one workgroup of four waves computes of each result, and how deep a step is."""

    rows: int
    columns: int
    depth: int


_TILES: dict[int, tuple[ContractionTile, ...]] = {
    2: (ContractionTile(128, 128, 32), ContractionTile(128, 64, 64)),
    3: (ContractionTile(128, 64, 64), ContractionTile(128, 64, 32)),
}


def results_tile(results: int, rows: int, columns: int, depth: int, element_type: str) -> ContractionTile | None:
    """The tile for a contraction with several results, by the extents of the innermost loops; None where none fits."""
    if element_type not in ("f16", "bf16"):
        return None
    for tile in _TILES.get(results, ()):
        if rows % tile.rows == 0 and columns % tile.columns == 0 and depth % tile.depth == 0:
            return tile
    return None


def results_attributes(
    tile: ContractionTile, loops: int, rows: int, columns: int, depth: int, results: int, element_type: str
) -> dict[str, ir.Attribute]:
    """The lowering config of a contraction over `loops` loops, of which three, given by number, are tiled."""
    load_dialects("iree_codegen", "iree_gpu")
    workgroup, reduction, waves = [1] * loops, [0] * loops, [1] * loops
    workgroup[rows], workgroup[columns], workgroup[depth] = tile.rows, tile.columns, 0
    reduction[depth] = tile.depth
    waves[rows], waves[columns] = 2, 2
    operands = list(range(1 + results))
    copies = ", ".join(["#iree_gpu.derived_thread_config"] * len(operands))
    intrinsic = {"f16": "MFMA_F32_16x16x16_F16", "bf16": "MFMA_F32_16x16x16_BF16"}[element_type]
    # The attributes of iree_gpu have no Python builders that take all of these.
    config = (
        f"#iree_gpu.lowering_config<{{mma_kind = #iree_gpu.mma_layout<{intrinsic}>, promote_operands = {operands}, "
        f"promotion_types = [{copies}], reduction = {reduction}, "
        f"subgroup_basis = [{waves}, {list(range(loops))}], workgroup = {workgroup}}}>"
    )
    translation = (
        "<pipeline = #iree_gpu.pipeline<VectorDistribute> workgroup_size = [256, 1, 1] subgroup_size = 64, "
        "{gpu_pipeline_options = #iree_gpu.pipeline_options<prefetch_num_stages = 2, "
        "no_reduce_shared_memory_bank_conflicts = false>}>"
    )
    info = f"#iree_codegen.compilation_info<lowering_config = {config}, translation_info = {translation}>"
    return {"compilation_info": ir.Attribute.parse(info)}

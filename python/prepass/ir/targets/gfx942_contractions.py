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
from prepass.ir.targets.linalg_shape import ContractionLoops

# A matrix instruction takes 16 rows; for fewer, IREE makes kernels that reduce in vectors.
MFMA_ROWS = 16
_LANES = 64
# Below this a kernel takes less time than to launch it: 4 MiB are 1 µs at the 4 TB/s of the memory.
LAUNCH_BOUND_BYTES = 4 << 20


@dataclass(frozen=True)
class ContractionTile:
    """What one workgroup computes of each result, and how deep a step is.

    Attributes:
      row_waves, column_waves: How its waves share the rows and the columns.
      intrinsic: An `MMAIntrinsic` or `VirtualMMAIntrinsic` without its element type.
      stages: Stages of the software pipeline, 0 for none.
    """

    rows: int
    columns: int
    depth: int
    row_waves: int = 2
    column_waves: int = 2
    intrinsic: str = "MFMA_F32_16x16x16"
    stages: int = 2


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
    tile: ContractionTile, loops: ContractionLoops, count: int, results: int, element_type: str
) -> dict[str, ir.Attribute]:
    """The lowering config of a contraction over `count` loops, of which three are tiled and the others taken singly."""
    load_dialects("iree_codegen", "iree_gpu")
    workgroup, reduction, waves = [1] * count, [0] * count, [1] * count
    workgroup[loops.rows], workgroup[loops.columns], workgroup[loops.terms] = tile.rows, tile.columns, 0
    reduction[loops.terms] = tile.depth
    waves[loops.rows], waves[loops.columns] = tile.row_waves, tile.column_waves
    operands = list(range(1 + results))
    copies = ", ".join(["#iree_gpu.derived_thread_config"] * len(operands))
    kind = "virtual_mma_layout" if tile.intrinsic.startswith("V") else "mma_layout"
    # The attributes of iree_gpu have no Python builders that take all of these.
    config = (
        f"#iree_gpu.lowering_config<{{mma_kind = #iree_gpu.{kind}<{tile.intrinsic}_{element_type.upper()}>, "
        f"promote_operands = {operands}, promotion_types = [{copies}], reduction = {reduction}, "
        f"subgroup_basis = [{waves}, {list(range(count))}], workgroup = {workgroup}}}>"
    )
    prefetch = f"prefetch_num_stages = {tile.stages}, " if tile.stages else ""
    threads = tile.row_waves * tile.column_waves * _LANES
    options = f"#iree_gpu.pipeline_options<{prefetch}no_reduce_shared_memory_bank_conflicts = false>"
    translation = (
        f"<pipeline = #iree_gpu.pipeline<VectorDistribute> workgroup_size = [{threads}, 1, 1] "
        f"subgroup_size = {_LANES}, {{gpu_pipeline_options = {options}}}>"
    )
    info = f"#iree_codegen.compilation_info<lowering_config = {config}, translation_info = {translation}>"
    return {"compilation_info": ir.Attribute.parse(info)}

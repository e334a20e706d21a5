# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""llvm-cpu: the facts and the attention tiles."""

from __future__ import annotations

from iree.compiler import ir
from iree.compiler.dialects import iree_codegen

from prepass.ir.targets.attention import AttentionShape, NoConfig

_MAX_VECTORS = 512
_FLOAT_BYTES = 4
_KEY_VECTOR = 8
_ROWS_PER_WORKGROUP = 32
_DYNAMIC_CHANNELS = 64


def attention_attributes(shape: AttentionShape, vector_bytes: int) -> dict[str, ir.Attribute]:
    """`compilation_info` for an attention op. Raises NoConfig for a dynamic or a huge head dim."""
    if shape.k1 is None:
        raise NoConfig("the head dim is dynamic: llvm-cpu would tile it, and then the scores are wrong")
    channels = shape.n or _DYNAMIC_CHANNELS
    rows, keys = _vector_tile(shape, max(shape.k1, channels), vector_bytes)
    workgroup_rows = rows * max(1, _ROWS_PER_WORKGROUP // rows)
    loops = [(extent, (1, 1, 0)) for extent in shape.batch]
    loops += [(shape.m, (workgroup_rows, rows, 0))]
    kept = [tiles for extent, tiles in loops if extent != 1]
    kept += [(channels, channels, 0), (0, 0, 0)]
    kept += [(0, 0, keys)] if shape.k2 != 1 else []
    return {"compilation_info": _compilation_info(*(list(level) for level in zip(*kept, strict=True)))}


def _vector_tile(shape: AttentionShape, width: int, vector_bytes: int) -> tuple[int, int]:
    limit = _MAX_VECTORS * vector_bytes // _FLOAT_BYTES
    rows, keys = max(1, vector_bytes // 8), _KEY_VECTOR
    if shape.m == 1:
        rows, keys = 1, 4
    while rows * keys * width > limit * 5 // 8 and rows * keys > 1:
        if rows >= keys:
            rows //= 2
        else:
            keys //= 2
    if rows * keys * width >= limit:
        raise NoConfig(f"a head dim of {width} does not fit llvm-cpu's largest vector")
    return rows, _divisor(shape.k2, keys)


def _divisor(extent: int | None, tile: int) -> int:
    """The largest tile in (tile / 2, tile] that divides the extent, or else the tile: a remainder is masked, at a cost."""
    candidates = range(tile, tile // 2, -1)
    return next((size for size in candidates if extent is not None and extent % size == 0), tile)


def _compilation_info(distribution: list[int], parallel: list[int], reduction: list[int]) -> ir.Attribute:
    lowering_config = ir.Attribute.parse(
        f"#iree_cpu.lowering_config<distribution = {distribution}, vector_common_parallel = {parallel}, "
        f"vector_reduction = {reduction}>"
    )
    pipeline = ir.Attribute.parse("#iree_cpu.pipeline<LinalgExtTileAndVectorize>")
    translation_info = iree_codegen.TranslationInfoAttr.get(pipeline)
    return iree_codegen.CompilationInfoAttr.get(lowering_config, translation_info)

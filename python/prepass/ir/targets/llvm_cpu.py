# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""llvm-cpu: the facts and the attention tiles.

Measured with iree-base-compiler 3.13.0 on a Zen 5 server, ratios within one run:

- Stock tiles K1 above 128, or when dynamic, and then the scores are wrong. These configs
  never tile it; head dims of 8 to 1024 agree with numpy.
- 20×1024×64 f32, two threads: stock 568 ms, two matmuls and a softmax at O3 78, these tiles
  34. 10×4096×64: 4810, 636, 347. With x86-64-v3 (32-byte vectors) 15 against 526, with the
  default x86-64 (16 bytes) 68 against 4160 at 8×512×1024×64.
- 12×128×64: stock 6.9 ms. One thread: two matmuls and a softmax 0.49 ms at O0 and 0.39 at O3,
  these tiles 0.67 with K as (k2, k1) and 0.47 as (k1, k2), which saves transposing each tile of K.
  V as (n, k2) costs a fifth.
- On a Xeon with AVX-512, O3, one thread, two matmuls and a softmax against these tiles:
  12×128×64 0.97 ms to 1.5, 8×256×64 2.6 to 7.5, 12×512×64 18.5 to 23.8, 20×1024×64 223 to 196.

What decides a tile:

- IREE refuses a vector op, counting the whole iteration space of a contraction, of 512 native
  vectors or more: rows × keys × max(k1, n) floats. The best tiles take at most 5/8 of it.
- The channels of V are one vector: a second tile of n would compute the scores again.
- A tail of the keys is masked in every iteration, 1.6 times the time at k2 = 1025, so a tile
  that divides them is worth a smaller one. A tail of the queries costs nothing.
- A unit loop is dropped after preprocessing, so it has no entry here.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from iree.compiler import ir
from iree.compiler.dialects import iree_codegen

from prepass.ir.targets.attention_shape import AttentionShape, NoConfig, load_dialects

SMALLEST_VECTOR_BYTES = 16
# The largest static head dim that IREE leaves whole by itself; results are wrong where it does not.
LARGEST_DEFAULT_HEAD_DIM = 128
MAX_VECTORS = 512  # The compiler's --iree-llvmcpu-fail-on-large-vector limit, in native vectors.

_FLOAT_BYTES = 4
_WORKGROUP_ROWS = 32
_DYNAMIC_CHANNELS = 64
_FEW_KEYS = 256
_KEYS = 8
_DECODE_KEYS = 4
# Scores of all heads that stay in the cache between the three dispatches.
_CACHED_SCORES_BYTES = 4 << 20


class _LoopTiles(NamedTuple):
    """The tile sizes of one loop, 0 where it is whole."""

    distribution: int = 0
    parallel: int = 0
    reduction: int = 0


def attention_attributes(shape: AttentionShape, vector_bytes: int) -> dict[str, ir.Attribute]:
    """`compilation_info` for an attention op, for native vectors of `vector_bytes`.

    Raises NoConfig where the head dim is dynamic or too large to be left whole.
    """
    if shape.k1 is None:
        raise NoConfig("the head dim is dynamic: llvm-cpu would tile it, which makes the result wrong")
    channels = shape.n or _DYNAMIC_CHANNELS
    rows, keys = _vector_tile(shape, max(shape.k1, channels), vector_bytes)
    workgroup_rows = rows * max(1, _WORKGROUP_ROWS // rows)
    tiles = [_LoopTiles(1, 1) for extent in shape.batch if extent != 1]
    if shape.m != 1:
        tiles.append(_LoopTiles(workgroup_rows, rows))
    tiles += [_LoopTiles(channels, channels), _LoopTiles()]
    if shape.k2 != 1:
        tiles.append(_LoopTiles(reduction=keys))
    return {"compilation_info": _compilation_info(tiles)}


def decomposed_is_faster(shape: AttentionShape, vector_bytes: int) -> bool:
    """Whether two contractions and a softmax beat one kernel: whole vectors, and scores that stay in the cache."""
    extents = (*shape.batch, shape.m, shape.n, shape.k1, shape.k2)
    if shape.element_type != "f32" or any(extent is None for extent in extents):
        return False
    static = [extent for extent in extents if extent is not None]
    *batch, m, n, k1, k2 = static
    vector = max(vector_bytes, SMALLEST_VECTOR_BYTES) // _FLOAT_BYTES
    whole = all(extent % vector == 0 for extent in (m, n, k1, k2))
    return whole and math.prod((*batch, m, k2)) * _FLOAT_BYTES <= _CACHED_SCORES_BYTES


def _vector_tile(shape: AttentionShape, width: int, vector_bytes: int) -> tuple[int, int]:
    """Rows and keys of one vector step over `width` channels."""
    limit = MAX_VECTORS * vector_bytes // _FLOAT_BYTES
    # A transposed K is read along the keys, so a full vector of them is best, and two where they are few.
    keys = max(_KEYS, vector_bytes // _FLOAT_BYTES) if shape.key_transposed else _KEYS
    if shape.key_transposed and shape.k2 is not None and shape.k2 <= _FEW_KEYS:
        keys *= 2
    rows = max(1, vector_bytes // keys)
    if shape.m == 1:
        rows, keys = 1, _DECODE_KEYS
    while rows * keys > 1 and rows * keys * width > limit * 5 // 8:
        if rows >= keys:
            rows //= 2
        else:
            keys //= 2
    if rows * keys * width >= limit:
        raise NoConfig(f"{width} channels are more than llvm-cpu can leave whole")
    return rows, _tile_of(shape.k2, keys)


def _tile_of(extent: int | None, tile: int) -> int:
    """The largest size above half a tile that divides the extent, or else the tile."""
    sizes = range(tile, tile // 2, -1)
    return next((size for size in sizes if extent is not None and extent % size == 0), tile)


def _compilation_info(tiles: list[_LoopTiles]) -> ir.Attribute:
    load_dialects("iree_codegen", "iree_cpu")
    distribution, parallel, reduction = (list(level) for level in zip(*tiles, strict=True))
    # The iree_cpu dialect has no Python builders.
    lowering_config = ir.Attribute.parse(
        f"#iree_cpu.lowering_config<distribution = {distribution}, vector_common_parallel = {parallel}, "
        f"vector_reduction = {reduction}>"
    )
    pipeline = ir.Attribute.parse("#iree_cpu.pipeline<LinalgExtTileAndVectorize>")
    translation_info = iree_codegen.TranslationInfoAttr.get(pipeline)
    return iree_codegen.CompilationInfoAttr.get(lowering_config, translation_info)

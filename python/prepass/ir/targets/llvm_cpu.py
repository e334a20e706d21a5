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
- On a Xeon with AVX-512 at O3, one thread, how many times as fast as two matmuls and a softmax:
  4×1024×64 2.4 with K as (k1, k2), its transpose included, and 1.2 as (k2, k1); 12×128×64 1.1
  and 0.7; 8×512×32 1.8 and 0.7; 8×1024×80 1.1 and 0.6. 8×1024×128 0.7 and 0.7, as the limit
  below leaves a row or two.
- Rows of K as (k1, k2) that are a multiple of 4096 bytes apart fall in one set of the nearest
  cache, and a tile reads 64 of them. On a Zen 4, 20×1024×64, processor time against torch's
  sdpa: 1.9 as they are, 1.1 with each row a line of the cache longer.

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
_CACHE_LINE_BYTES = 64
_WORKGROUP_ROWS = 32
_DYNAMIC_CHANNELS = 64
_KEYS = 8
_DECODE_KEYS = 4
_TRANSPOSED_ROWS = 2
_QUERIES_FOR_A_COPY = 32
# Scores of all heads that stay in the cache from one dispatch to the next.
_NEAR_CACHE_BYTES = 1 << 20
_FAR_CACHE_BYTES = 32 << 20


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
    tiles += [_LoopTiles(channels, channels), *[_LoopTiles()] * shape.k1_loops]
    if shape.k2 != 1:
        tiles.append(_LoopTiles(reduction=keys))
    return {"compilation_info": _compilation_info(tiles)}


def decomposed_is_faster(shape: AttentionShape, vector_bytes: int) -> bool:
    """Whether two contractions and a softmax beat one kernel.

    They do with sizes that fill vectors, as long as the scores of all heads fit the nearer
    cache, or the next one where the vector limit leaves the kernel a tile of one row.
    """
    extents = [extent for extent in (*shape.batch, shape.m, shape.n, shape.k1, shape.k2) if extent is not None]
    if shape.element_type != "f32" or len(extents) < len(shape.batch) + 4:
        return False
    *batch, m, n, k1, k2 = extents
    vector = max(vector_bytes, SMALLEST_VECTOR_BYTES) // _FLOAT_BYTES
    tile_fits = _TRANSPOSED_ROWS * 2 * vector * max(k1, n) <= _largest_tile(vector_bytes)
    cache = _NEAR_CACHE_BYTES if tile_fits else _FAR_CACHE_BYTES
    fills_vectors = all(extent % vector == 0 for extent in (m, n, k1, k2))
    return fills_vectors and math.prod((*batch, m, k2)) * _FLOAT_BYTES <= cache


def wants_transposed_keys(shape: AttentionShape) -> bool:
    """Whether K as (k1, k2) pays for its copy: the queries that read it are many."""
    return not shape.key_transposed and shape.m is not None and shape.m >= _QUERIES_FOR_A_COPY and shape.k2 != 1


def key_row_padding(shape: AttentionShape) -> int:
    """How many elements to add to each row of K as (k1, k2), so that neighbouring rows spread over the cache's sets."""
    if shape.k2 is None:
        return 0
    line = _CACHE_LINE_BYTES // (_FLOAT_BYTES if shape.element_type == "f32" else _FLOAT_BYTES // 2)
    return line if shape.k2 % (2 * line) == 0 else 0


def _vector_tile(shape: AttentionShape, width: int, vector_bytes: int) -> tuple[int, int]:
    """Rows and keys of one vector step over `width` channels."""
    vector = vector_bytes // _FLOAT_BYTES
    largest = _largest_tile(vector_bytes)
    if shape.m == 1:
        rows, keys = 1, _DECODE_KEYS
    elif shape.key_transposed:
        rows = _TRANSPOSED_ROWS
        keys = next((n * vector for n in (4, 2) if rows * n * vector * width <= largest), vector)
    else:
        rows, keys = max(1, vector_bytes // _KEYS), _KEYS
    while rows * keys > 1 and rows * keys * width > largest:
        if rows >= keys:
            rows //= 2
        else:
            keys //= 2
    if rows * keys * width >= _vector_limit(vector_bytes):
        raise NoConfig(f"{width} channels are more than llvm-cpu can leave whole")
    return rows, _tile_of(shape.k2, keys)


def _vector_limit(vector_bytes: int) -> int:
    """Rows × keys × channels at which IREE refuses a contraction."""
    return MAX_VECTORS * vector_bytes // _FLOAT_BYTES


def _largest_tile(vector_bytes: int) -> int:
    """Rows × keys × channels of the largest tile that is worth it."""
    return _vector_limit(vector_bytes) * 5 // 8


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

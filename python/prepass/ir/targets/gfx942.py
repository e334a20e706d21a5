# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gfx942 (MI300): the facts and the attention tiles.

Figures are static, read from the assembly of iree-base-compiler 3.13.0 at 20×4096×d
with V as (n, k2); nothing here has run on the hardware. MFMA, VALU and LDS are issue
cycles of one wave per 1,024 scores, counting 32 for a 32x32x8 and 16 for a 16x16x16
MFMA, 4 for a VALU op, 16 for an exponential, 32 for an LDS op of 16 bytes a lane, 16 of
8 bytes, and 8 for one of two bytes or a lane swap.

| d   | type | MFMA | VALU | LDS  | VGPR | LDS bytes | stock                                     |
|-----|------|------|------|------|------|-----------|-------------------------------------------|
| 32  | f16  | 256  | 530  | 168  | 101  | 8960      | MFMA                                      |
| 48  | f16  | 384  | 684  | 448  | 75   | 13184     | no MFMA                                   |
| 64  | f16  | 512  | 546  | 328  | 146  | 17408     | 512 / 596 / 672, 102 VGPR                 |
| 64  | bf16 | 512  | 802  | 328  | 144  | 17408     | MFMA                                      |
| 80  | f16  | 640  | 740  | 736  | 97   | 21632     | no MFMA                                   |
| 80  | bf16 | 640  | 1076 | 736  | 98   | 21632     | no MFMA                                   |
| 96  | f16  | 768  | 724  | 424  | 164  | 25856     | no MFMA                                   |
| 96  | bf16 | 768  | 1054 | 456  | 159  | 25856     | no MFMA                                   |
| 112 | f16  | 896  | 800  | 1056 | 117  | 30080     | no MFMA                                   |
| 128 | f16  | 1024 | 588  | 584  | 218  | 34304     | 1536 / 1208 / 1984 (QK twice), 154 VGPR   |
| 128 | bf16 | 1024 | 956  | 656  | 165  | 17664     | 1536 / 1720 / 1984 (QK twice), 160 VGPR   |
| 160 | f16  | 1280 | 1168 | 784  | 166  | 22016     | no MFMA                                   |
| 192 | f16  | 1536 | 1228 | 912  | 256  | 26368     | no MFMA                                   |
| 256 | f16  | 2048 | 888  | 1296 | 256  | 35072     | MFMA                                      |

What decides a tile:

- K and V are copied to LDS by all threads of the workgroup, 8 elements each, or fewer when
  there are more threads. IREE lays the threads out from the innermost dimension and fails
  ("failed to derive layout") unless each extent divides, or is divided by, the threads that
  are left. So 10 × 8 channels need a multiple of 5 waves, 12 × 8 a multiple of 3.
- A CU has four SIMDs, so 5, 6 and 7 waves leave some idle. Twice as many with few enough
  registers (10 or 12 waves at 168 VGPRs) keep them even.
- Channels that are a multiple of 8 but not of 16 (40, 72) cannot be copied that way. K and
  V are read from global memory instead, 8 bytes a lane, and masked to 16 channels.
- Queries need not fill a tile: IREE masks the rest, at 247 VALU ops a loop instead of 174.
- Keys must: masked, they cost 2 to 3 times the VALU (309 ops a loop instead of 174 at d = 64
  and k2 = 1000), and IREE often fails to distribute when two loops are masked. Pad them to a
  multiple of 16, of 64 when there are many, with a mask.
- V as (k2, n), or K as (k1, k2), is read two bytes at a time: 64 `ds_read_u16` a loop from LDS,
  64 `buffer_load_ushort` without. No config avoids them, only the other layout does.
- A mask operand keeps the MFMAs and costs registers and VALU: 146 VGPRs become 238 with an
  f32 mask at d = 64, 214 with f16, 204 with i1; 546 VALU become 662, 712, 888.
- A mask value is multiplied by log2(e) in f32: below -2.3e38 it overflows.
- m = 1 leaves no query loop, which VectorDistribute refuses; the default has no MFMA and is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from iree.compiler import ir
from iree.compiler.dialects import iree_codegen, iree_gpu

from prepass.ir.targets.attention_shape import AttentionShape, NoConfig, load_dialects

SUBGROUP_SIZE = 64
MFMA_KEYS = 16
MFMA_CHANNELS = 16
MANY_KEYS = 512
MANY_QUERIES = 256
MOST_ROTATED_CHANNELS = 160
MANY_KEYS_MULTIPLE = 64

_COPY_ELEMENTS = 8
_TILE_KEYS = (80, 64, 48, 32, 16)
_NARROW_WAVES = (4, 5, 8, 10, 6, 12, 3, 7, 9, 2, 1)


@dataclass(frozen=True)
class AttentionTile:
    """How one workgroup computes an attention.

    Attributes:
      waves: Waves of the workgroup, each with its own rows.
      rows: Queries of one wave.
      keys: Keys of one loop iteration.
      qk: The MFMA of Q·K, an `MMAIntrinsic` or `VirtualMMAIntrinsic` without its element type.
      pv: The MFMA of P·V.
      stages: Stages of the software pipeline, 0 for none.
      in_lds: Whether K and V go through LDS.
      waves_per_simd: What the register allocator is asked to leave room for.
    """

    waves: int
    rows: int
    keys: int
    qk: str = "MFMA_F32_16x16x16"
    pv: str = "MFMA_F32_16x16x16"
    stages: int = 0
    in_lds: bool = True
    waves_per_simd: int = 2


_32X32X8 = "MFMA_F32_32x32x8"
_32X32X16 = "VMFMA_F32_32x32x16"

# By channels and element type. The first tile is for whole tiles without a mask and with V as
# (n, k2); each of these that does not hold costs registers, and the later tiles have them.
_TILES: dict[tuple[int, str], tuple[AttentionTile, ...]] = {
    (32, "f16"): (AttentionTile(4, 32, 64, _32X32X16, _32X32X8, stages=2),),
    (32, "bf16"): (AttentionTile(4, 32, 64, _32X32X8, _32X32X8, stages=2),),
    (48, "f16"): (AttentionTile(12, 16, 64),),
    (48, "bf16"): (AttentionTile(12, 16, 64),),
    (64, "f16"): (
        AttentionTile(4, 32, 64, _32X32X16, _32X32X8, stages=2),
        AttentionTile(4, 32, 64, _32X32X16, _32X32X8, stages=2),
        AttentionTile(4, 16, 64),
    ),
    (64, "bf16"): (
        AttentionTile(4, 32, 64, _32X32X8, _32X32X8, stages=2),
        AttentionTile(4, 32, 64, _32X32X8, _32X32X8, stages=2),
        AttentionTile(4, 16, 64),
    ),
    (80, "f16"): (AttentionTile(10, 16, 64),),
    (80, "bf16"): (AttentionTile(10, 16, 64),),
    (96, "f16"): (AttentionTile(12, 32, 64, _32X32X8, _32X32X8, waves_per_simd=3), AttentionTile(12, 16, 64)),
    (96, "bf16"): (AttentionTile(6, 32, 64, _32X32X8, _32X32X8, waves_per_simd=3), AttentionTile(12, 16, 64)),
    (112, "f16"): (AttentionTile(7, 16, 64),),
    (112, "bf16"): (AttentionTile(7, 16, 64),),
    (128, "f16"): (AttentionTile(8, 32, 64, _32X32X16, _32X32X8), AttentionTile(4, 32, 32, _32X32X8, _32X32X8)),
    (128, "bf16"): (
        AttentionTile(4, 32, 32, _32X32X8, _32X32X8, stages=2),
        AttentionTile(4, 32, 32, _32X32X8, _32X32X8),
    ),
    (144, "f16"): (AttentionTile(9, 16, 32),),
    (144, "bf16"): (AttentionTile(9, 16, 32),),
    (160, "f16"): (AttentionTile(5, 32, 32, _32X32X8, _32X32X8), AttentionTile(10, 16, 32)),
    (160, "bf16"): (AttentionTile(5, 32, 32, _32X32X8, _32X32X8), AttentionTile(10, 16, 32)),
    (192, "f16"): (AttentionTile(6, 32, 32, _32X32X8, _32X32X8), AttentionTile(12, 16, 32)),
    (192, "bf16"): (AttentionTile(6, 32, 32, _32X32X8, _32X32X8), AttentionTile(12, 16, 32)),
    (256, "f16"): (AttentionTile(4, 32, 32, _32X32X8, _32X32X8), AttentionTile(8, 16, 32)),
    (256, "bf16"): (AttentionTile(4, 32, 32, _32X32X8, _32X32X8), AttentionTile(8, 16, 32)),
}


def attention_attributes(shape: AttentionShape) -> dict[str, ir.Attribute]:
    """`compilation_info` and `decomposition_config`, or {} where IREE's default is kept.

    Raises NoConfig for shapes that crash the compiler or take it a minute.
    """
    if shape.k1 is None:
        raise NoConfig("a dynamic head dim crashes the compiler for gfx942")
    if shape.k2 == 1:
        raise NoConfig("a single key crashes the compiler for gfx942")
    tile = attention_tile(shape)
    if tile is None:
        if shape.k2 is None and not shape.masked:
            reason = "the number of keys is dynamic: without a mask it takes a minute to compile for gfx942, and spills"
            raise NoConfig(reason, breaks=False)
        return {}
    return tile_attributes(shape, tile)


def tile_attributes(shape: AttentionShape, tile: AttentionTile) -> dict[str, ir.Attribute]:
    """`compilation_info` and `decomposition_config` for a tile."""
    load_dialects("iree_codegen", "iree_gpu")
    return {
        "compilation_info": _compilation_info(shape, tile),
        "decomposition_config": _decomposition_config(shape, tile),
    }


def padded_keys(shape: AttentionShape) -> int | None:
    """How many keys to pad to for MFMAs and whole tiles, None where padding gains nothing."""
    if shape.k2 is None or shape.k2 % MFMA_KEYS == 0 or shape.k1 is None or shape.k2 == 1:
        return None
    multiple = MANY_KEYS_MULTIPLE if shape.k2 > MANY_KEYS else MFMA_KEYS
    padded = -(-shape.k2 // multiple) * multiple
    return padded if attention_tile(replace(shape, k2=padded, masked=True)) else None


def reason_to_rotate_apart(shape: AttentionShape) -> str | None:
    """Why Q had better be rotated in a dispatch of its own, or None where it should be in that of the attention."""
    if shape.m is None:
        return "the number of queries is dynamic, which with a rotation takes more registers than there are"
    if shape.m < MANY_QUERIES:
        return f"fewer than {MANY_QUERIES} queries are rotated in no time, wherever that is"
    tile = attention_tile(replace(shape, k1_loops=2))
    if tile is None or not tile.in_lds:
        return "gfx942 has no config for the attention in which a rotated query fits"
    if (shape.k1_width or 1) % MFMA_CHANNELS:
        return f"the query is rotated in blocks of channels that are no multiple of {MFMA_CHANNELS}"
    # With 192 channels bf16 spills, with 256 a SIMD has one wave.
    if (shape.k1 or 0) > MOST_ROTATED_CHANNELS or shape.masked or shape.m % (tile.waves * tile.rows):
        return "a rotated query would take more registers than gfx942 has"
    return None


@dataclass(frozen=True)
class _Problem:
    """An AttentionShape whose channels are static."""

    m: int | None
    n: int
    k1: int
    k2: int | None
    element_type: str
    masked: bool
    value_transposed: bool


def attention_tile(shape: AttentionShape) -> AttentionTile | None:
    """The tile picked by hand for a shape, None where IREE's default is kept."""
    if shape.element_type not in ("f16", "bf16") or shape.n is None or shape.k1 is None or shape.m == 1:
        return None
    if shape.k2 is not None and shape.k2 % MFMA_KEYS:
        return None
    problem = _Problem(shape.m, shape.n, shape.k1, shape.k2, shape.element_type, shape.masked, shape.value_transposed)
    if problem.k1 % 16 or problem.n % 16:
        return _direct_tile(problem)
    tile = (
        _listed_tile(problem, at_least_keys=32)
        or _narrow_tile(problem)
        or _listed_tile(problem, at_least_keys=MFMA_KEYS)
    )
    if tile is None or problem.k2 is not None:
        return tile
    # The keys will be masked, so nothing else may be, and that needs registers.
    return tile if _fills_rows(tile, problem) and problem.k1 <= 128 else None


def _listed_tile(problem: _Problem, at_least_keys: int) -> AttentionTile | None:
    tiles = _TILES.get((problem.k1, problem.element_type)) if problem.n == problem.k1 else None
    if tiles is None or (problem.n > 192 and not problem.value_transposed):
        return None  # The latter spills, and the default has MFMAs too.
    first = _fewest_waves(tiles[0], problem)
    strain = sum((problem.masked, not problem.value_transposed, not _fills_rows(first, problem), problem.k2 is None))
    tile = tiles[min(strain, len(tiles) - 1)]
    for keys in (size for size in _TILE_KEYS if at_least_keys <= size <= tile.keys):
        fewer = replace(tile, keys=keys)
        if _divides_keys(fewer, problem) and _copies_evenly(fewer, problem):
            return _fewest_waves(fewer, problem)
    return None


def _narrow_tile(problem: _Problem) -> AttentionTile | None:
    """16x16x16 MFMAs, for few keys, or for n ≠ k1."""
    if max(problem.k1, problem.n) > 160:
        return None
    for keys in _TILE_KEYS:
        for waves in _NARROW_WAVES:
            tile = AttentionTile(waves, 16, keys)
            if _divides_keys(tile, problem) and _copies_evenly(tile, problem):
                return _fewest_waves(tile, problem)
    return None


def _direct_tile(problem: _Problem) -> AttentionTile | None:
    """Without LDS, for channels that are multiples of 8. They are masked, so nothing else may be."""
    channels = max(problem.k1, problem.n)
    if problem.k1 % 8 or problem.n % 8 or channels > 120 or not problem.value_transposed:
        return None
    for rows in (32, 16) if channels < 100 else (16,):
        for keys in (64, 48, 32, 16):
            tile = _fewest_waves(AttentionTile(4, rows, keys, in_lds=False), problem)
            if _divides_keys(tile, problem) and problem.k2 is not None and _fills_rows(tile, problem):
                return tile
    return None


def _divides_keys(tile: AttentionTile, problem: _Problem) -> bool:
    mfma_keys = 32 if "32x32" in tile.pv else MFMA_KEYS
    return tile.keys % mfma_keys == 0 and (problem.k2 is None or problem.k2 % tile.keys == 0)


def _fills_rows(tile: AttentionTile, problem: _Problem) -> bool:
    return problem.m is not None and problem.m % (tile.waves * tile.rows) == 0


def _fewest_waves(tile: AttentionTile, problem: _Problem) -> AttentionTile:
    """The tile with no more waves than the queries need."""
    for waves in range(1, tile.waves):
        fewer = replace(tile, waves=waves)
        if problem.m is not None and waves * tile.rows >= problem.m:
            if not tile.in_lds or _copies_evenly(fewer, problem):
                return fewer
    return tile


def copies_evenly(tile: AttentionTile, k1: int, n: int, value_transposed: bool) -> bool:
    """Whether all threads of a workgroup take the same part in copying K and V to LDS."""
    value = (n, tile.keys) if value_transposed else (tile.keys, n)
    threads = tile.waves * SUBGROUP_SIZE
    return _divides_threads((tile.keys, k1), threads) and _divides_threads(value, threads)


def _copies_evenly(tile: AttentionTile, problem: _Problem) -> bool:
    return copies_evenly(tile, problem.k1, problem.n, problem.value_transposed)


def _divides_threads(extents: tuple[int, int], threads: int) -> bool:
    outer, inner = extents
    elements = _COPY_ELEMENTS
    while elements > 1 and outer * inner // elements < threads:
        elements //= 2
    if inner % elements:
        return False
    for extent in (inner // elements, outer):
        if threads % extent == 0:
            threads //= extent
        elif extent % threads == 0:
            threads = 1
        else:
            return False
    return threads == 1


def _loops(shape: AttentionShape) -> list[str]:
    """The loops left once IREE has dropped unit dims, in order."""
    return ["b" for extent in shape.batch if extent != 1] + ["m", "n", *["k1"] * shape.k1_loops, "k2"]


def _compilation_info(shape: AttentionShape, tile: AttentionTile) -> ir.Attribute:
    workgroup = {"b": 1, "m": tile.waves * tile.rows}
    loops = _loops(shape)
    config = {
        "workgroup": _integers([workgroup.get(loop, 0) for loop in loops]),
        "reduction": _integers([tile.keys if loop == "k2" else 0 for loop in loops]),
    }
    if tile.in_lds:
        config["promote_operands"] = _integers([1, 2])
    translation_info = iree_codegen.TranslationInfoAttr.get(
        iree_gpu.PipelineAttr.get(iree_gpu.LoweringPipeline.VectorDistribute),
        None,
        [tile.waves * SUBGROUP_SIZE, 1, 1],
        SUBGROUP_SIZE,
        _configuration(tile),
    )
    return iree_codegen.CompilationInfoAttr.get(_lowering_config(config), translation_info)


def _configuration(tile: AttentionTile) -> ir.DictAttr:
    waves = ir.StringAttr.get(str(tile.waves_per_simd))
    # The denormal mode saves the fix-ups around every exponential. It has no builder.
    entries: dict[str, ir.Attribute] = {
        "llvm_func_attrs": ir.DictAttr.get({"amdgpu-waves-per-eu": waves}),
        "iree_codegen.denormal_fp_math_f32": ir.Attribute.parse('#iree_codegen.denormal_fp_math<"preserve-sign">'),
    }
    if tile.stages:
        entries["gpu_pipeline_options"] = iree_gpu.PipelineOptionsAttr.get(prefetch_num_stages=tile.stages)
    return ir.DictAttr.get(entries)


def _decomposition_config(shape: AttentionShape, tile: AttentionTile) -> ir.DictAttr:
    loops = _loops(shape)
    basis = [tile.waves if loop == "m" else 1 for loop in loops]

    def contraction(intrinsic: str, unused_loop: str) -> ir.DictAttr:
        used = [position for position, loop in enumerate(loops) if loop != unused_loop]
        config = {
            "mma_kind": _mma(intrinsic, shape.element_type),
            "subgroup_basis": ir.ArrayAttr.get([_integers(basis), _integers(used)]),
        }
        if tile.in_lds:
            config["promote_operands"] = _integers([1])
        return ir.DictAttr.get({"lowering_config": _lowering_config(config)})

    return ir.DictAttr.get({"qk_attrs": contraction(tile.qk, "n"), "pv_attrs": contraction(tile.pv, "k1")})


def _mma(intrinsic: str, element_type: str) -> ir.Attribute:
    """Column major: the MFMA computes the transpose, so that P stays in registers from QK to PV."""
    name = f"{intrinsic}_{element_type.upper()}"
    if name.startswith("V"):
        return iree_gpu.VirtualMMAAttr.get(iree_gpu.VirtualMMAIntrinsic[name], col_major=True)
    return iree_gpu.MMAAttr.get(iree_gpu.MMAIntrinsic[name], col_major=True)


def _lowering_config(entries: dict[str, ir.Attribute]) -> ir.Attribute:
    return iree_gpu.LoweringConfigAttr.get(ir.DictAttr.get(entries))


def _integers(values: list[int]) -> ir.ArrayAttr:
    integer = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get([ir.IntegerAttr.get(integer, value) for value in values])

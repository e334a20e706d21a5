# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gfx942: which tiles can be for an op at all, by what is known to fail."""

from __future__ import annotations

from prepass.ir.targets.attention_shape import AttentionShape
from prepass.ir.targets.gfx942 import AttentionTile, copies_evenly
from prepass.ir.targets.gfx942_contractions import ContractionTile
from prepass.ir.targets.linalg_shape import LinalgShape, contraction_loops

MOST_WAVES = 16
# Registers are divided among so many waves at most.
MOST_WAVES_PER_SIMD = 8
STAGES = (0, 2, 3)

# The MFMAs of each type, with the rows and columns that they compute; IREE makes virtual ones of two.
_INTRINSICS = {
    "f16": {
        "MFMA_F32_16x16x16": 16,
        "VMFMA_F32_16x16x32": 16,
        "MFMA_F32_32x32x8": 32,
        "VMFMA_F32_32x32x16": 32,
    },
    "bf16": {"MFMA_F32_16x16x16": 16, "MFMA_F32_32x32x8": 32},
}
_LDS_CHANNELS, _DIRECT_CHANNELS = 16, 8


def intrinsics(element_type: str) -> tuple[str, ...]:
    """The MFMAs for Q, K and V of a type, none where there are none."""
    return tuple(_INTRINSICS.get(element_type, {}))


def attention_misfit(tile: AttentionTile, shape: AttentionShape) -> str | None:
    """Why a tile cannot be for a shape, as a clause, or None where nothing is known against it."""
    sizes = _INTRINSICS.get(shape.element_type)
    if sizes is None:
        return f"there is no tile for {shape.element_type}"
    for name in (tile.qk, tile.pv):
        if name not in sizes:
            return f"'{name}' is no MFMA for {shape.element_type}; there are {', '.join(sizes)}"
    if sizes[tile.qk] != sizes[tile.pv]:
        return f"{tile.qk} and {tile.pv} compute different numbers of rows"
    return _numbers_misfit(tile) or _extents_misfit(tile, shape, sizes[tile.qk])


def contraction_misfit(tile: ContractionTile, shape: LinalgShape) -> str | None:
    """Why a tile cannot be for a contraction, as a clause, or None where nothing is known against it."""
    sizes = _INTRINSICS.get(shape.element_types[0])
    loops = contraction_loops(shape)
    if sizes is None or len(set(shape.element_types[: -shape.results])) != 1:
        return f"there is no tile for {' and '.join(dict.fromkeys(shape.element_types[: -shape.results]))}"
    if loops is None:
        return "its loops are not those of a contraction"
    if tile.intrinsic not in sizes:
        return f"'{tile.intrinsic}' is no MFMA for {shape.element_types[0]}; there are {', '.join(sizes)}"
    if min(tile.row_waves, tile.column_waves) < 1:
        return "rows and columns have one wave or more"
    if misfit := _workgroup_misfit(tile.row_waves * tile.column_waves, tile.stages):
        return misfit
    size, terms = sizes[tile.intrinsic], int(tile.intrinsic.rpartition("x")[2])
    parts = {
        "rows": (tile.rows, tile.row_waves * size, shape.sizes[loops.rows]),
        "columns": (tile.columns, tile.column_waves * size, shape.sizes[loops.columns]),
        "depth": (tile.depth, terms, shape.sizes[loops.terms]),
    }
    for name, (extent, multiple, whole) in parts.items():
        if extent < 1 or extent % multiple:
            return f"a tile of {extent} {name} is no multiple of {multiple}"
        if whole is None or whole % extent:
            return f"a tile of {extent} {name} does not divide {whole if whole is not None else 'a dynamic loop'}"
    return None


def _workgroup_misfit(waves: int, stages: int) -> str | None:
    if not 1 <= waves <= MOST_WAVES:
        return f"a workgroup has 1 to {MOST_WAVES} waves, not {waves}"
    if stages not in STAGES:
        return f"a pipeline has {' or '.join(map(str, STAGES))} stages, not {stages}"
    return None


def _numbers_misfit(tile: AttentionTile) -> str | None:
    if misfit := _workgroup_misfit(tile.waves, tile.stages):
        return misfit
    if not 1 <= tile.waves_per_simd <= MOST_WAVES_PER_SIMD:
        return f"a SIMD has 1 to {MOST_WAVES_PER_SIMD} waves, not {tile.waves_per_simd}"
    return None


def _extents_misfit(tile: AttentionTile, shape: AttentionShape, size: int) -> str | None:
    if shape.k1 is None or shape.n is None or shape.k2 is None:
        return "the numbers of keys and channels are to be static"
    if shape.m == 1:
        return "a single query leaves no loop to tile"
    if tile.rows < 1 or tile.rows % size:
        return f"{tile.rows} queries of a wave are no multiple of {size}"
    if tile.keys < 1 or tile.keys % size:
        return f"{tile.keys} keys are no multiple of {size}"
    if shape.k2 % tile.keys:
        return f"{tile.keys} keys do not divide {shape.k2}"
    multiple = _LDS_CHANNELS if tile.in_lds else _DIRECT_CHANNELS
    for channels in (shape.k1, shape.n):
        if channels % multiple:
            return f"{channels} channels are no multiple of {multiple}"
    if tile.in_lds and not copies_evenly(tile, shape.k1, shape.n, shape.value_transposed):
        return f"{tile.waves} waves cannot divide evenly what is copied to LDS"
    return None

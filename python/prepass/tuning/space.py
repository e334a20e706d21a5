# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ways to compile an op that are worth trying, the nearest to a known one first."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from prepass.ir.records import to_record
from prepass.ir.targets.attention_shape import AttentionShape
from prepass.ir.targets.gfx942 import AttentionTile, attention_tile
from prepass.ir.targets.gfx942_contractions import ContractionTile, results_tile
from prepass.ir.targets.gfx942_misfits import attention_misfit, contraction_misfit, intrinsics
from prepass.ir.targets.linalg_shape import LinalgShape, contraction_loops
from prepass.ir.targets.tuning_table import ATTENTION, CONTRACTION, CONVOLUTION, Choice, Config, Shape
from prepass.pipeline.registry import default_registry

# Values of each field of an attention tile; MFMAs come in pairs, by the type.
_WAVES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
_ROWS = (16, 32, 64)
_KEYS = (16, 32, 48, 64, 80, 96, 128, 160, 192, 256)
_STAGES = (0, 2)
_WAVES_PER_SIMD = (1, 2, 3, 4)
# And of a contraction's tile.
_TILE_ROWS = (16, 32, 48, 64, 80, 96, 128, 160, 192, 256)
_DEPTHS = (16, 32, 64, 128)
_WAVE_GRIDS = ((1, 1), (1, 2), (2, 1), (2, 2), (1, 4), (4, 1), (2, 4), (4, 2))
# More of a wave's accumulators than these do not fit its registers: 32-bit numbers of one of 64 lanes.
_MOST_ACCUMULATORS = 256
_LANES = 64
_SELDOM_MATTERS = ("waves_per_simd",)
# Where the search begins when nothing was picked by hand.
_USUAL_CONTRACTION = ContractionTile(128, 128, 32)


def configs(kind: str, shape: Shape) -> list[Config]:
    """All lowering configs that may be for an op."""
    return list(_SPACES[kind](shape))


def kernels(kind: str) -> list[Choice]:
    """The kernels for a kind of op, each with all values of its parameters."""
    registry = default_registry()
    found = [registry.kernel(name) for name in registry.kernel_names()]
    choices = []
    for kernel in (kernel for kernel in found if kernel.kind.name == kind):
        choices.append(Choice(kernel=kernel.name))
        for values in itertools.product(*kernel.tunable.values()):
            parameters = tuple(zip(kernel.tunable, values, strict=True))
            if any(getattr(kernel, name) != value for name, value in parameters):
                choices.append(Choice(kernel=kernel.name, parameters=parameters))
    return choices


def picked(kind: str, shape: Shape) -> Config | None:
    """The config that prepass takes without a tuning table, None where it leaves the op to IREE."""
    return _PICKED[kind](shape)


def centre(kind: str, shape: Shape) -> Config | None:
    """Near what the search for a config begins."""
    return picked(kind, shape) or (_USUAL_CONTRACTION if kind == CONTRACTION else None)


def nearest(candidates: Sequence[Config], middle: Config) -> list[Config]:
    """Configs by how many fields differ from a config; of those as near, in an order that mixes all fields.

    A field that seldom changes the code counts twice.
    """

    def place(config: Config) -> tuple[int, str]:
        record = to_record(config)
        differing = [name for name, value in to_record(middle).items() if record[name] != value]
        distance = len(differing) + sum(name in _SELDOM_MATTERS for name in differing)
        return distance, hashlib.sha256(repr(record).encode()).hexdigest()

    return sorted(candidates, key=place)


def start(kind: str, shape: Shape) -> list[Choice]:
    """What is always tried: IREE's default, the config picked by hand where there is one, and each kernel as it is."""
    config = picked(kind, shape)
    as_they_are = [choice for choice in kernels(kind) if not choice.parameters]
    return [Choice(), *([Choice(config)] if config else []), *as_they_are]


def _attention_tiles(shape: AttentionShape) -> Iterator[AttentionTile]:
    pairs = list(itertools.product(intrinsics(shape.element_type), repeat=2))
    fields: tuple[tuple[Any, ...], ...] = (_WAVES, _ROWS, _KEYS, tuple(pairs), _STAGES, (True, False), _WAVES_PER_SIMD)
    for waves, rows, keys, (qk, pv), stages, in_lds, waves_per_simd in itertools.product(*fields):
        tile = AttentionTile(waves, rows, keys, qk, pv, stages, in_lds, waves_per_simd)
        if attention_misfit(tile, shape) is None and _has_registers(tile, shape) and not _is_too_tall(tile, shape):
            yield tile


def _has_registers(tile: AttentionTile, shape: AttentionShape) -> bool:
    """Whether the accumulators of P·V and the scores fit, with as many left for all else."""
    return tile.rows * ((shape.n or 0) + tile.keys) // _LANES <= _MOST_ACCUMULATORS


def _is_too_tall(tile: AttentionTile, shape: AttentionShape) -> bool:
    """Whether one wave less would hold all queries as well."""
    return shape.m is not None and (tile.waves - 1) * tile.rows >= shape.m


def _contraction_tiles(shape: LinalgShape) -> Iterator[ContractionTile]:
    fields: tuple[tuple[Any, ...], ...] = (
        (_TILE_ROWS, _TILE_ROWS, _DEPTHS, _WAVE_GRIDS, intrinsics(shape.element_types[0]), _STAGES)
    )  # fmt: skip
    for rows, columns, depth, (row_waves, column_waves), intrinsic, stages in itertools.product(*fields):
        tile = ContractionTile(rows, columns, depth, row_waves, column_waves, intrinsic, stages)
        accumulators = shape.results * rows * columns // (row_waves * column_waves * _LANES)
        if contraction_misfit(tile, shape) is None and accumulators <= _MOST_ACCUMULATORS:
            yield tile


def _picked_contraction(shape: LinalgShape) -> ContractionTile | None:
    loops = contraction_loops(shape)
    if loops is None or loops.batch or shape.results == 1:
        return None
    extents = [shape.sizes[loop] for loop in (loops.rows, loops.columns, loops.terms)]
    return None if None in extents else results_tile(shape.results, *extents, shape.element_types[0])


_SPACES = {ATTENTION: _attention_tiles, CONTRACTION: _contraction_tiles, CONVOLUTION: lambda shape: iter(())}
_PICKED = {ATTENTION: attention_tile, CONTRACTION: _picked_contraction, CONVOLUTION: lambda shape: None}

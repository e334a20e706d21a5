# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ways to compile an op that are worth trying, the nearest to a known one first."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from typing import Any

from prepass.ir.records import to_record
from prepass.ir.targets.attention_shape import AttentionShape
from prepass.ir.targets.gfx942 import AttentionTile, attention_tile
from prepass.ir.targets.gfx942_misfits import attention_misfit, intrinsics
from prepass.ir.targets.tuning_table import ATTENTION, Choice, Config, Entry, Shape

# Values of each field of an attention tile; MFMAs come in pairs, by the type.
_WAVES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
_ROWS = (16, 32, 64)
_KEYS = (16, 32, 48, 64, 80, 96, 128, 160, 192, 256)
_STAGES = (0, 2)
_WAVES_PER_SIMD = (1, 2, 3, 4)
# More of a wave's accumulators than these do not fit its registers: 32-bit numbers of one of 64 lanes.
_MOST_ACCUMULATORS = 256
_LANES = 64
_SELDOM_MATTERS = ("waves_per_simd",)


def configs(kind: str, shape: Shape) -> list[Config]:
    """All lowering configs that may be for an op."""
    return list(_SPACES[kind](shape))


def picked(kind: str, shape: Shape) -> Config | None:
    """The config that prepass takes without a tuning table, None where it leaves the op to IREE."""
    return _PICKED[kind](shape)


def reduction_extent(entry: Entry) -> int:
    """How much each result is a sum of: the keys of an attention."""
    return getattr(entry.shape, _REDUCTIONS[entry.kind]) or 0


def nearest(candidates: list[Config], centre: Config) -> list[Config]:
    """Configs by how many fields differ from a config; of those as near, in an order that mixes all fields.

    A field that seldom changes the code counts twice.
    """

    def place(config: Config) -> tuple[int, str]:
        record = to_record(config)
        differing = [name for name, value in to_record(centre).items() if record[name] != value]
        distance = len(differing) + sum(name in _SELDOM_MATTERS for name in differing)
        return distance, hashlib.sha256(repr(record).encode()).hexdigest()

    return sorted(candidates, key=place)


def start(kind: str, shape: Shape) -> list[Choice]:
    """What is always tried: IREE's default and, where there is one, the config picked by hand."""
    config = picked(kind, shape)
    return [Choice(), *([Choice(config)] if config else [])]


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


_SPACES = {ATTENTION: _attention_tiles}
_PICKED = {ATTENTION: attention_tile}
_REDUCTIONS = {ATTENTION: "k2"}

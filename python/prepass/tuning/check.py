# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether a config computes the right results: a small op of the same kind, compiled with it, runs in the simulator.

The small op has two tiles, and a part of one where the real op does, and as few steps as fill a software pipeline.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from iree.compiler import version as compiler_version

from prepass.errors import PrepassError
from prepass.ir.targets.attention_shape import AttentionShape
from prepass.ir.targets.gfx942 import AttentionTile
from prepass.ir.targets.gfx942_contractions import ContractionTile
from prepass.ir.targets.linalg_shape import LinalgShape, contraction_loops
from prepass.ir.targets.tuning_table import Choice, Entry, TuningTable
from prepass.simulator import compile_program, run_program
from prepass.tuning.extract import extract
from prepass.tuning.small_ops import attention_module, contraction_module

# Of the largest result.
_TOLERANCES = {"f16": 5e-3, "bf16": 3e-2}
# The loops of the operands in numpy's notation; the mask is one for all batches.
_QUERY, _SCORES, _RESULT, _MASK = "bmc", "bmk", "bmn", "mk"
_STEPS = 3


def check_config(entry: Entry, target: str, flags: Sequence[str]) -> None:
    """Raise PrepassError when the config of an entry computes wrong results.

    Kernels are not checked, as their own tests do that; nor is IREE's default, and what
    no small op is known for.
    """
    config, shape = entry.choice.config, entry.shape
    if isinstance(config, AttentionTile) and isinstance(shape, AttentionShape) and shape.k1_loops == 1:
        small = _small_attention(shape, config)
        source, inputs, expected = attention_module(small), *_attention_values(small)
        tolerance = _TOLERANCES[shape.element_type]
    elif isinstance(config, ContractionTile) and isinstance(shape, LinalgShape):
        small_shape = _small_contraction(shape, config)
        source, inputs, expected = contraction_module(small_shape), *_contraction_values(small_shape)
        # The operands are what they are, and sums are f32.
        tolerance = 1e-4
    else:
        return
    results = _run(source, inputs, entry, target, flags)
    for result, wanted in zip(results, expected, strict=True):
        error = float(np.abs(result.astype(np.float64) - wanted).max()) / max(float(np.abs(wanted).max()), 1e-30)
        if not error <= tolerance:
            raise PrepassError(f"wrong results in the simulator: an error of {error:.2g} of the largest result")


def _run(
    source: str, inputs: Sequence[np.ndarray], entry: Entry, target: str, flags: Sequence[str]
) -> Sequence[np.ndarray]:
    """What a small op gives when it is compiled with a config."""
    found = extract(source, flags=flags)
    if len(found.ops) != 1 or found.ops[0].kind != entry.kind:
        raise PrepassError(f"a small op to check it on is {', '.join(op.kind for op in found.ops) or 'none'}")
    (op,) = found.ops
    small = Entry(op.kind, op.shape, Choice(entry.choice.config))
    applied = []
    with tempfile.TemporaryDirectory(prefix="prepass-tune-") as directory:
        table = Path(directory, "table.json")
        table.write_text(TuningTable(target, compiler_version.VERSION, (small,)).text())
        program = compile_program(
            source,
            flags=flags,
            tuning_table=table,
            on_remark=lambda remark, _: applied.append("tuning table" in remark.message),
        )
    if not any(applied):
        raise PrepassError("a small op to check it on does not take it")
    return run_program(program, inputs)


def _small_attention(shape: AttentionShape, tile: AttentionTile) -> AttentionShape:
    rows = tile.waves * tile.rows
    return dataclasses.replace(
        shape,
        batch=(2,) if any(extent != 1 for extent in shape.batch) else (1,),
        m=_small(shape.m or rows, rows),
        k2=min(shape.k2 or tile.keys, _STEPS * tile.keys),
    )


def _attention_values(shape: AttentionShape) -> tuple[list[np.ndarray], list[np.ndarray]]:
    key = "bck" if shape.key_transposed else "bkc"
    value = "bnk" if shape.value_transposed else "bkn"
    extents = {"b": shape.batch[0], "m": shape.m, "n": shape.n, "c": shape.k1, "k": shape.k2}
    operands = [_QUERY, key, value, *([_MASK] if shape.masked else [])]
    inputs = _random([[extents[loop] or 1 for loop in loops] for loops in operands], shape.element_type)
    wide = [array.astype(np.float64) for array in inputs]
    scores = np.einsum(f"{_QUERY},{key}->{_SCORES}", wide[0], wide[1]) * (shape.k1 or 1) ** -0.5
    if shape.masked:
        scores = scores + wide[3]
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return inputs, [np.einsum(f"{_SCORES},{value}->{_RESULT}", weights, wide[2])]


def _small_contraction(shape: LinalgShape, tile: ContractionTile) -> LinalgShape:
    loops = contraction_loops(shape)
    if loops is None:
        raise PrepassError("its loops are not those of a contraction")
    tiles = {loops.rows: 2 * tile.rows, loops.columns: 2 * tile.columns, loops.terms: _STEPS * tile.depth}
    sizes = tuple(min(size or 1, tiles.get(loop, 2)) for loop, size in enumerate(shape.sizes))
    types = (*shape.element_types[: -shape.results], *["f32"] * shape.results)
    return dataclasses.replace(shape, sizes=sizes, element_types=types)


def _contraction_values(shape: LinalgShape) -> tuple[list[np.ndarray], list[np.ndarray]]:
    loops = [["abcdefghij"[int(dim[1:])] for dim in map_.split(", ")] for map_ in shape.maps]
    extents = dict(zip("abcdefghij", shape.sizes, strict=False))
    inputs = _random(
        [[extents[loop] or 1 for loop in map_] for map_ in loops[: -shape.results]], shape.element_types[0]
    )
    wide = [array.astype(np.float64) for array in inputs]
    names = ["".join(map_) for map_ in loops]
    others, results = names[1 : -shape.results], names[-shape.results :]
    pairs = zip(others, wide[1:], results, strict=True)
    return inputs, [np.einsum(f"{names[0]},{other}->{result}", wide[0], array) for other, array, result in pairs]


def _random(shapes: Sequence[Sequence[int]], element: str) -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    arrays = [generator.standard_normal(shape, dtype=np.float32) for shape in shapes]
    if element == "f16":
        return [array.astype(np.float16) for array in arrays]
    # bf16 is given as f32. Only its upper half is kept, so that the reference sees what the kernel does.
    return [(array.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32) for array in arrays]


def _small(extent: int, tile: int) -> int:
    """Two tiles, or one and the part that is left over."""
    return min(extent, 2 * tile if extent % tile == 0 else tile + extent % tile)

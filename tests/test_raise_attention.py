# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-raise-attention` keeps results, on llvm-cpu against numpy."""

import json

import numpy as np
import pytest

import prepass
from prepass.checking.numerics import compare
from prepass.checking.statistics import ProgramStatistics

from .attention_cases import AttentionCase
from .conftest import CORPUS, GFX942, LLVM_CPU

PIPELINE = "builtin.module(prepass-raise-attention)"
TOLERANCES = {"f32": 1e-5, "f16": 4e-3, "bf16": 3e-2}

CASES = [
    AttentionCase(),
    AttentionCase(batch=(2, 3)),
    AttentionCase(batch=(1, 2)),
    AttentionCase(batch=(1,)),
    AttentionCase(scale=0.25),
    AttentionCase(scale=-0.5, key_transposed=True, batch=(2, 2)),
    AttentionCase(key_transposed=True, value_channels=24),
    AttentionCase(mask="bmk"),
    AttentionCase(mask="bk", scale=0.125, batch=(2, 2)),
    AttentionCase(mask="mk", scale=0.125),
    AttentionCase(mask="k"),
    AttentionCase(queries=1, keys=33),
    AttentionCase(queries=5, keys=77, channels=40, value_channels=40),
    *(AttentionCase(channels=c, value_channels=c) for c in (33, 64, 80, 128, 160, 256)),
    *(AttentionCase(element=e, batch=(2, 2), channels=64, value_channels=64, scale=0.125) for e in ("f16", "bf16")),
    *(AttentionCase(element=e, mask="mk", key_transposed=True, scale=0.25) for e in ("f16", "bf16")),
]


def check_raised(text: str) -> None:
    assert text.count("iree_linalg_ext.attention") == 1
    assert "linalg.softmax" not in text
    assert "batch_matmul" not in text


@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_results_stay_the_same(case, level):
    flags = (*LLVM_CPU, f"--iree-opt-level={level}")
    statistics = ProgramStatistics()
    hooks = {**statistics.hooks, "preprocessing": lambda module: check_raised(str(module))}
    program = prepass.compile(case.module(), pipeline=PIPELINE, flags=flags, hooks=hooks)
    # A mask is brought to f32 and clamped, in a dispatch of its own where it does not fuse.
    assert statistics.dispatches <= (2 if case.mask else 1)
    inputs = case.inputs()
    difference = compare(prepass.run(program, *inputs), [case.reference(*inputs)])
    assert difference.within(TOLERANCES[case.element]), difference


@pytest.mark.parametrize("case", [case for case in CASES if case.channels <= 128], ids=str)
def test_twice_is_once(case):
    once = prepass.Pipeline.parse(PIPELINE).run(case.module())
    check_raised(once.after)
    assert prepass.Pipeline.parse(PIPELINE).run(once.module).diff == ""


def test_a_large_head_dim_needs_a_target():
    case = AttentionCase(channels=160, value_channels=160)
    result = prepass.Pipeline.parse(PIPELINE).run(case.module())
    assert result.diff == ""
    assert [remark.message for remark in result.remarks] == [
        "no target is known, and llvm-cpu needs a lowering config for such a head dim"
    ]


def test_gfx942_compiles_to_one_dispatch():
    case = AttentionCase(batch=(2, 10), queries=4096, keys=4096, channels=64, value_channels=64, element="f16")
    statistics = ProgramStatistics()
    prepass.compile(case.module(), pipeline=PIPELINE, flags=GFX942, hooks=statistics.hooks)
    assert (statistics.dispatches, statistics.transient_bytes) == (1, 0)


def test_the_unet_attention_is_raised_whole(corpus, program):
    path = corpus / "seeds" / "sdxl_unet_attention.mlir"
    text = program("prepass-opt", path, f"--pass-pipeline={PIPELINE}").stdout.decode()
    assert text.count("iree_linalg_ext.attention") == 1
    assert "softmax" not in text
    assert "batch_matmul" not in text


EXPECTED = json.loads((CORPUS / "attention" / "expected.json").read_text()) if CORPUS.is_dir() else {}


@pytest.mark.parametrize("level", ["O0", pytest.param("O3", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_exported_models_are_raised_and_right(name, level, corpus):
    path = corpus / "attention" / f"{name}.mlir"
    counts: list[int] = []

    def count(module):
        counts.append(str(module).count("iree_linalg_ext.attention"))

    flags = (*LLVM_CPU, f"--iree-opt-level={level}")
    program = prepass.compile(path, pipeline=PIPELINE, flags=flags, hooks={"preprocessing": count})
    assert counts == [EXPECTED[name]]
    arrays = np.load(path.with_suffix(".npz"))
    inputs, outputs = ([arrays[key] for key in sorted(arrays, key=_number) if key.startswith(k)] for k in ("in", "out"))
    # A model in f32 that takes or gives f16 rounds to it on the way.
    half = any(array.dtype == np.float16 for array in (*inputs, *outputs))
    difference = compare(prepass.run(program, *inputs), outputs)
    assert difference.within(2e-2 if half else 1e-4), difference


def _number(key: str) -> int:
    return int("".join(filter(str.isdigit, key)))

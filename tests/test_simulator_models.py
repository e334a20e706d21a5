# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exported models, simulated: attention of many architectures, with what torch, JAX and ONNX gave."""

import numpy as np
import pytest

from prepass.checking.numerics import compare
from prepass.simulator import compile_program, simulate
from prepass.simulator.coverage import read_coverage

pytestmark = pytest.mark.slow

_MODELS = (
    "hf/albert", "hf/bert_f16", "hf/bloom", "hf/clip_text", "hf/decode_cache_static", "hf/diff_sdxl_cross",
    "hf/einsum_gqa", "hf/gemma2", "hf/gpt2", "hf/llama", "hf/t5_enc", "hf/vit", "hf/whisper_enc", "onnx/prim",
    "onnx/sdpa18", "ind/p01_f16", "ind/p07_f32", "ind/p14_f32", "ind/p22_f32",
)  # fmt: skip


# Where the compiler's approximation, of tanh here, is that far from torch's; on llvm-cpu it is too.
_TOLERANCE = {"hf/gemma2": 1e-4}


def arrays(file, prefix):
    names = sorted((name for name in file if name.startswith(prefix)), key=lambda name: int(name[len(prefix) :]))
    return [file[name] for name in names]


@pytest.mark.parametrize("pipeline", [None, "builtin.module(prepass-default)"], ids=["stock", "prepass"])
@pytest.mark.parametrize("model", _MODELS)
def test_against_the_framework(corpus, model, pipeline):
    path = corpus / "attention" / f"{model}.mlir"
    if not path.is_file() or not path.with_suffix(".npz").is_file():
        pytest.skip(f"no {model} in the corpus")
    with np.load(path.with_suffix(".npz")) as file:
        inputs, expected = arrays(file, "in"), arrays(file, "out")
    results = simulate(path, inputs, pipeline=pipeline, start="abi")
    # Half precision: two units in the last place of the largest number, through several layers.
    largest = max(float(np.abs(array.astype(np.float64)).max()) for array in expected)
    half = any(array.dtype == np.float16 for array in (*inputs, *expected))
    difference = compare(results, expected)
    assert difference.within((4e-3 if half else _TOLERANCE.get(model, 1e-5)) * max(largest, 1.0)), difference


@pytest.mark.parametrize(
    "model", ["models/clip1_sdpa", "models/vae64", "models/flux11", "convolution/gn_silu_conv_f16"]
)
def test_all_instructions_of_a_model_are_known(corpus, model, tmp_path):
    path = corpus / f"{model}.mlir"
    if not path.is_file():
        pytest.skip(f"no {model} in the corpus")
    for number, text in enumerate(compile_program(path).assembly):
        (tmp_path / f"{number}.rocmasm").write_text(text)
    coverage = read_coverage([tmp_path])
    assert coverage.kernels > 0
    assert not coverage.unknown
    assert coverage.executed == set(coverage.families)

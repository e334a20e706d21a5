# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-configure-attention`: right on llvm-cpu where stock is not, and MFMA code for gfx942."""

import numpy as np
import pytest

import prepass
from prepass.amdgpu.inputs import compile_to_assembly
from prepass.checking.numerics import compare
from prepass.pipeline.phases import split_by_phase
from prepass.pipeline.registry import default_registry
from prepass.pipeline.resolve import resolve_pipeline

from .conftest import GFX942, LLVM_CPU
from .graphs import DTYPES, softmax

PIPELINE = "builtin.module(prepass-configure-attention)"


def attention_op(batch, queries, keys, channels, element="f32", value_transposed=False) -> str:
    """A module with one attention op, as torch's scaled_dot_product_attention becomes."""
    value_dims = "b, n, k2" if value_transposed else "b, k2, n"
    value = (batch, channels, keys) if value_transposed else (batch, keys, channels)
    q, k, v = (
        f"tensor<{'x'.join(map(str, shape))}x{element}>"
        for shape in ((batch, queries, channels), (batch, keys, channels), value)
    )
    maps = ["b, m, k1", "b, k2, k1", value_dims, "", "b, m, n"]
    attributes = ", ".join(f"affine_map<(b, m, n, k1, k2) -> ({dims})>" for dims in maps)
    return f"""
func.func @main(%q: {q}, %k: {k}, %v: {v}) -> {q} {{
  %scale = arith.constant 0.125 : f32
  %init = tensor.empty() : {q}
  %out = iree_linalg_ext.attention <indexing_maps = [{attributes}]>
      ins(%q, %k, %v, %scale : {q}, {k}, {v}, f32) outs(%init : {q}) {{
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  }} -> {q}
  return %out : {q}
}}
"""


@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize("value_transposed", [False, True])
@pytest.mark.parametrize(
    ("batch", "queries", "keys", "channels", "element"),
    [
        (2, 40, 48, 64, "f32"),
        (2, 40, 48, 160, "f32"),
        (2, 33, 77, 256, "f32"),
        (1, 16, 40, 512, "f32"),
        (3, 1, 40, 160, "f32"),
        (3, 9, 1, 160, "f32"),
        (2, 40, 48, 160, "f16"),
        (2, 17, 33, 33, "bf16"),
    ],
)
def test_llvm_cpu_is_right(batch, queries, keys, channels, element, value_transposed, level):
    rng = np.random.default_rng(0)
    q = rng.standard_normal((batch, queries, channels)).astype(DTYPES[element])
    k = rng.standard_normal((batch, keys, channels)).astype(DTYPES[element])
    v = rng.standard_normal((batch, keys, channels)).astype(DTYPES[element])
    wide = [array.astype(np.float64) for array in (q, k, v)]
    expected = softmax(0.125 * wide[0] @ wide[1].transpose(0, 2, 1), 2) @ wide[2]
    source = attention_op(batch, queries, keys, channels, element, value_transposed)
    program = prepass.compile(source, pipeline=PIPELINE, flags=(*LLVM_CPU, f"--iree-opt-level={level}"))
    value = v.transpose(0, 2, 1).copy() if value_transposed else v
    tolerance = {"f32": 1e-5, "f16": 4e-3, "bf16": 3e-2}[element]
    assert compare(prepass.run(program, q, k, value), [expected]).within(tolerance)


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize(("keys", "channels"), [(4096, 64), (4096, 80), (4096, 128), (80, 64)])
def test_gfx942_uses_mfma_without_spills_or_narrow_lds_reads(keys, channels, element):
    source = attention_op(20, 4096, keys, channels, element, value_transposed=True)
    (kernel,) = compile_to_assembly(source, pipeline=PIPELINE, flags=GFX942)
    assert kernel.counts.mfmas > 0
    assert kernel.spills == 0
    assert kernel.counts.names["ds_read_u16"] == 0
    assert kernel.metadata.lds_bytes <= 65536


@pytest.mark.parametrize("element", ["f16", "f32"])
def test_the_config_fits_what_iree_makes_of_the_loops(element):
    """IREE moves the reshape of the result through the op, which then has six loops and not five."""
    shape, merged = f"2x3x8x16x{element}", f"6x8x16x{element}"
    source = attention_op(6, 8, 8, 16, element)
    source = source.replace(f"-> tensor<{merged}> {{\n  %scale", f"-> tensor<{shape}> {{\n  %scale", 1)
    source = source.replace(
        f"return %out : tensor<{merged}>",
        f"%r = tensor.expand_shape %out [[0, 1], [2], [3]] output_shape [2, 3, 8, 16] : tensor<{merged}> "
        f"into tensor<{shape}>\n  return %r : tensor<{shape}>",
    )
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((6, 8, 16)).astype(DTYPES[element]) for _ in range(3))
    wide = [array.astype(np.float64) for array in (q, k, v)]
    expected = softmax(0.125 * wide[0] @ wide[1].transpose(0, 2, 1), 2) @ wide[2]
    program = prepass.compile(source, pipeline=PIPELINE, flags=LLVM_CPU)
    assert compare(prepass.run(program, q, k, v), [expected.reshape(2, 3, 8, 16)]).within(4e-3)


def test_it_runs_on_executables_wherever_it_stands(context):
    registry = default_registry()

    def phases(text: str) -> dict[str, str]:
        resolved = resolve_pipeline(f"builtin.module({text})", registry, context)
        return {phase: str(part) for phase, part in split_by_phase(resolved, registry).items()}

    raised = {"preprocessing": "builtin.module(prepass-raise-attention,cse)", "executable-sources": PIPELINE}
    assert phases("prepass-raise-attention,cse") == raised
    assert phases("prepass-configure-attention,prepass-raise-attention,cse") == raised
    assert phases("util.func(cse,prepass-configure-attention)") == {
        "preprocessing": "builtin.module(util.func(cse))",
        "executable-sources": PIPELINE,
    }
    assert phases("cse") == {"preprocessing": "builtin.module(cse)"}

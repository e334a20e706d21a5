# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-pad-attention-keys` keeps results; the padded op is run on llvm-cpu against numpy."""

import numpy as np
import pytest
from iree.compiler import ir

import prepass
from prepass.amdgpu.inputs import compile_to_assembly
from prepass.checking.numerics import compare
from prepass.ir.parse import copy_module
from prepass.ir.targets import Target
from prepass.passes.pad_attention_keys import PadAttentionKeysPass
from prepass.pipeline.base import PassContext

from .conftest import GFX942, LLVM_CPU
from .graphs import DTYPES, Graph, Tensor, softmax
from .test_configure_attention import attention_op

MASKS = {"": None, "k2": (77,), "m, k2": (40, 77), "m": (40,), "b, m, k2": (2, 40, 77)}


def padded(source: str) -> str:
    """The text of a module whose attention is padded as for gfx942."""
    module = copy_module(source)
    context = PassContext("prepass-pad-attention-keys", Target("rocm", "gfx942"))
    for dialect in PadAttentionKeysPass.dependent_dialects:
        module.context.get_dialect_descriptor(dialect)
    with module.context, ir.Location.unknown():
        PadAttentionKeysPass(min_queries=1).run(module.operation, context)
    assert module.operation.verify()
    assert context.counters["padded"] == 1, context.remarks
    return str(module)


def masked_op(dims: str, element: str, mask_element: str) -> str:
    """`attention_op` with a mask argument."""
    source = attention_op(2, 40, 77, 64, element)
    if not dims:
        return source
    type_ = f"tensor<{'x'.join(map(str, MASKS[dims]))}x{mask_element}>"
    source = source.replace("%v: tensor<2x77x64x" + element + ">)", f"%v: tensor<2x77x64x{element}>, %mask: {type_})")
    source = source.replace(
        "affine_map<(b, m, n, k1, k2) -> ()>",
        f"affine_map<(b, m, n, k1, k2) -> ()>, affine_map<(b, m, n, k1, k2) -> ({dims})>",
    )
    return source.replace("%scale : ", "%scale, %mask : ").replace(", f32) outs", f", f32, {type_}) outs")


@pytest.mark.parametrize("dims", MASKS)
@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_results_stay_the_same(dims, element):
    rng = np.random.default_rng(0)
    shapes = [(2, 40, 64), (2, 77, 64), (2, 77, 64)]
    inputs = [rng.standard_normal(shape).astype(DTYPES[element]) for shape in shapes]
    q, k, v = (array.astype(np.float64) for array in inputs)
    scores = 0.125 * q @ k.transpose(0, 2, 1)
    if dims:
        mask = np.where(rng.random(MASKS[dims]) < 0.3, -2e38, rng.standard_normal(MASKS[dims])).astype(np.float32)
        inputs.append(mask)
        wide = mask.astype(np.float64)
        scores = scores + (wide[:, None] if dims == "m" else wide)
    source = padded(masked_op(dims, element, "f32"))
    assert "x80x64x" in source
    program = prepass.compile(source, flags=LLVM_CPU)
    tolerance = {"f16": 4e-3, "bf16": 3e-2}[element]
    assert compare(prepass.run(program, *inputs), [softmax(scores, 2) @ v]).within(tolerance)


@pytest.mark.parametrize("dims", ["k2", "m, k2"])
def test_boolean_masks_stay_the_same(dims):
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(shape).astype(np.float16) for shape in ((2, 40, 64), (2, 77, 64), (2, 77, 64))]
    mask = rng.random(MASKS[dims]) < 0.7
    q, k, v = (array.astype(np.float64) for array in inputs)
    scores = np.where(mask, 0.125 * q @ k.transpose(0, 2, 1), -np.inf)
    program = prepass.compile(padded(masked_op(dims, "f16", "i1")), flags=LLVM_CPU)
    assert compare(prepass.run(program, *inputs, mask), [softmax(scores, 2) @ v]).within(4e-3)


@pytest.mark.parametrize(("queries", "keys"), [(4096, 77), (1500, 1500)])
def test_gfx942_uses_mfma(queries, keys):
    source = attention_op(20, queries, keys, 64, "f16", value_transposed=True)
    for pipeline, uses_mfma in (("prepass-configure-attention", False), ("prepass-pad-attention-keys", True)):
        kernels = compile_to_assembly(source, pipeline=f"builtin.module({pipeline})", flags=GFX942)
        assert any(kernel.counts.mfmas for kernel in kernels) == uses_mfma
        assert not any(kernel.spills or kernel.counts.names["ds_read_u16"] for kernel in kernels)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("heads", [2, 1])
def test_projections_of_padded_texts_compute_the_same(batch, heads):
    rng = np.random.default_rng(0)
    graph = Graph()
    text = graph.argument(rng.normal(0, 1, (batch, 77, 48)), "f16")
    query = graph.argument(rng.normal(0, 1, (batch * heads, 40, 32)), "f16")
    key, value = (projection(graph, text, heads, rng) for _ in range(2))
    scores = graph.contract(query, "bmk", key, "bnk", "bmn", "f32")
    weights = graph.softmax(graph.scalar("mulf", scores, 0.17), 2, named=False)
    result = graph.cast(graph.contract(weights, "bmk", value, "bkn", "bmn", "f32"), "f16")
    raised = prepass.Pipeline().raise_attention().run(graph.module(result))
    source = padded(str(raised.module))
    assert source.count("tensor.pad") == 2
    assert f"tensor.pad {graph.arguments[0].name}" in source or f"tensor<{batch}x80x48xf16>" in source
    assert f"tensor<{batch * 80}x{heads * 32}xf32>" in source
    got = prepass.run(prepass.compile(source, flags=LLVM_CPU), *graph.inputs())
    assert compare(got, [result.array]).within(0.02)


def projection(graph: Graph, text: Tensor, heads: int, rng: np.random.Generator) -> Tensor:
    """A linear layer with a bias, its channels as heads that are a batch."""
    batch, tokens, channels = text.array.shape
    rows = graph.reshape(text, [[0, 1], [2]], (batch * tokens, channels))
    weight = graph.argument(rng.normal(0, 0.1, (channels, heads * 32)), "f16")
    bias = graph.argument(rng.normal(0, 1, heads * 32), "f16")
    product = graph.cast(graph.contract(rows, "mk", weight, "kn", "mn", "f32", named=True), "f16")
    biased = graph.binary("addf", product, bias, "ab", "b")
    split = graph.reshape(biased, [[0, 1], [2, 3]], (batch, tokens, heads, 32))
    return graph.reshape(graph.transpose(split, [0, 2, 1, 3]), [[0, 1], [2], [3]], (batch * heads, tokens, 32))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-fuse-query-rope`: attention with a rotated query on llvm-cpu against numpy, and its kernels for gfx942."""

import re
from dataclasses import replace

import numpy as np
import pytest

import prepass
from prepass.amdgpu.inputs import compile_to_assembly
from prepass.amdgpu.opcodes import Kind
from prepass.checking.numerics import compare
from prepass.ir.targets import Target
from prepass.ir.targets.attention import reason_to_rotate_apart
from prepass.ir.targets.attention_shape import AttentionShape

from .conftest import GFX942, LLVM_CPU
from .dispatches import cost
from .graphs import DTYPES, Graph, Tensor, softmax, tensor_type
from .rope_forms import FORMS, begin
from .test_canonicalize_rope import other_rows

FUSED = "builtin.module(prepass-fuse-query-rope{fuse=always},prepass-canonicalize-rope,canonicalize,cse)"
DEFAULT = "builtin.module(prepass-fuse-query-rope,prepass-canonicalize-rope,canonicalize,cse)"
WHOLE = ("rotate_half", "tables_in_program", "halves_apart", "stacked_pairs", "matrices", "complex_numbers")


def attend(graph: Graph, query: Tensor, key: Tensor, value: Tensor, dims: str, *, transposed: bool = False) -> Tensor:
    """Attention over heads, with query and key as they are laid out and V as (heads, channels, keys)."""
    order = [dims.index(d) for d in "htd"]
    q, k = (tensor.array.transpose(order) for tensor in (query, key))
    scores = softmax(np.einsum("hmd,hkd->hmk", q, k) / 4, 2)
    array = np.einsum("hmk,hnk->hmn", scores, value.array)
    array = array.transpose(1, 0, 2) if transposed else array
    heads, tokens, channels = q.shape
    plain = tensor_type((heads, tokens, channels), query.element)
    scale, init, name = graph.constant(0.25, "f32"), graph.empty((heads, tokens, channels), query.element), graph.name()
    rows = {"htd": ("(h, m, d)", "(h, k, d)"), "thd": ("(m, h, d)", "(k, h, d)")}[dims]
    maps = ", ".join(f"affine_map<(h, m, n, d, k) -> {result}>" for result in (*rows, "(h, n, k)", "()", "(h, m, n)"))
    graph.lines += [
        f"{name} = iree_linalg_ext.attention <indexing_maps = [{maps}]> ins({query.name}, {key.name}, {value.name}, "
        f"{scale} : {query.type}, {key.type}, {value.type}, f32) outs({init} : {plain}) {{",
        "^bb0(%score: f32):",
        "iree_linalg_ext.yield %score : f32",
        f"}} -> {plain}",
    ]
    if not transposed:
        return Tensor(name, query.element, array)
    wide, moved = tensor_type(array.shape, query.element), graph.name()
    empty = graph.empty(array.shape, query.element)
    graph.lines.append(
        f"{moved} = linalg.transpose ins({name} : {plain}) outs({empty} : {wide}) permutation = [1, 0, 2]"
    )
    return Tensor(moved, query.element, array)


def rotated_attention(name, dims, heads, tokens, channels, element, **options):
    """A program whose query and key are rotated in one of the forms."""
    graph = Graph()
    query, key = (FORMS[name](begin(dims, heads, tokens, channels, element, seed, graph)) for seed in (1, 2))
    value = graph.argument(np.random.default_rng(3).normal(size=(heads, channels, tokens)), element)
    result = attend(graph, query, key, value, dims, **options)
    return graph.module(result), graph.inputs(), result.array


def run(source, inputs, pipeline, level):
    program = prepass.compile(source, pipeline=pipeline, flags=(*LLVM_CPU, f"--iree-opt-level={level}"))
    return [np.asarray(array) for array in prepass.run(program, *inputs)]


@pytest.mark.parametrize("name", FORMS)
def test_a_form_against_numpy(name):
    dims = "htd" if name in WHOLE[::2] else "thd"
    source, inputs, expected = rotated_attention(name, dims, 2, 32, 32, "f32", transposed=dims == "thd")
    result = prepass.Pipeline().fuse_query_rope(fuse="always").run(source)
    assert result.counters["fused"] == 1
    assert re.search(
        r"flow.dispatch.region [^}]*?linalg.generic .*?iree_linalg_ext.attention.*?flow.return", result.after, re.S
    )
    for level in ("O0", "O3") if name == "stacked_pairs" else ("O0",):
        assert compare(run(source, inputs, FUSED, level), [expected]).within(1e-4)


def test_a_key_that_is_no_rotation_is_read_as_it_is():
    """Where the query keeps the order of its channels, the key may be anything."""
    graph = Graph()
    query = FORMS["rotate_half"](begin("htd", 2, 32, 32, "f32", 1, graph))
    key = other_rows(begin("htd", 2, 32, 32, "f32", 2, graph))
    value = graph.argument(np.random.default_rng(3).normal(size=(2, 32, 32)), "f32")
    result = attend(graph, query, key, value, "htd")
    source = graph.module(result)
    assert prepass.Pipeline().fuse_query_rope(fuse="always").run(source).counters["fused"] == 1
    assert compare(run(source, graph.inputs(), FUSED, "O0"), [result.array]).within(1e-4)


def test_running_twice_equals_once():
    source, *_ = rotated_attention("stacked_pairs", "thd", 2, 32, 32, "bf16")
    once = prepass.Pipeline().fuse_query_rope(fuse="always").run(source).after
    assert prepass.Pipeline().fuse_query_rope(fuse="always").run(once).after == once


def test_where_gfx942_rotates_the_query_apart():
    shape = AttentionShape((24,), 4608, 128, 128, 4608, "bf16", value_transposed=True, k1_width=64)
    target = Target("rocm", "gfx942")
    assert reason_to_rotate_apart(target, shape) is None
    large, direct = {"k1": 192, "n": 192}, {"k1": 40, "n": 40}
    for changes in ({"m": 64}, {"m": None}, {"m": 4600}, {"masked": True}, large, direct, {"k1_width": 24}):
        assert reason_to_rotate_apart(target, replace(shape, **changes))
    assert reason_to_rotate_apart(Target("llvm-cpu"), shape)


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("name", ["rotate_half", "stacked_pairs", "first_channels", "first_neighbours"])
def test_kernels_for_gfx942(name, element):
    """The loop of the attention is as good as without a rotation, and nothing is loaded two bytes at a time."""
    source, *_ = rotated_attention(name, "thd", 4, 1024, 128, element)
    rotation, fused = compile_to_assembly(source, pipeline=DEFAULT, flags=GFX942)
    *_, apart = compile_to_assembly(
        source, pipeline="builtin.module(prepass-canonicalize-rope,prepass-configure-attention)", flags=GFX942
    )
    assert fused.hottest and apart.hottest
    assert fused.spills == rotation.spills == 0
    assert fused.metadata.lds_bytes <= 64 * 1024
    assert fused.hottest.counts.mfmas == apart.hottest.counts.mfmas > 0
    assert fused.hottest.counts.kinds[Kind.VALU] <= apart.hottest.counts.kinds[Kind.VALU] + 11
    assert fused.hottest.counts.load_width() == 16
    assert fused.counts.accesses_of("load", width=2) == rotation.counts.accesses_of("load", width=2) == 0
    assert rotation.counts.accesses_of("load", width=8) == 0
    channels = sum(rotation.counts.accesses_of("store", width=width) * width // 2 for width in (8, 16))
    assert rotation.counts.total <= 35 * channels


@pytest.mark.slow
@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize("name", ["half_f16", "half_bf16", "halfT_bf16", "flux_bf16"])
def test_exported_models(corpus, name, level):
    """Attention with rotary embeddings from torch: two dispatches on gfx942, and stock's results on llvm-cpu."""
    path = corpus / "rope" / f"{name}.mlir"
    assert cost(path, "builtin.module(prepass-default)", level).dispatches <= 2
    # 2 heads and 96 tokens for 24 and 4608.
    small = path.read_text().replace("4608", "96").replace("3072", "256")
    small = re.sub(r",24,(64|128)", r",2,\1", small).replace("[1,24,", "[1,2,")
    small = re.sub(r"constant\.int 24$", "constant.int 2", small, flags=re.MULTILINE)
    signature = re.search(r"func.func @main\((.*?)\) ->", small)[1]
    rng = np.random.default_rng(0)
    inputs = [
        rng.normal(size=[int(size) for size in shape.split(",")]).astype(DTYPES[element])
        for shape, element in re.findall(r"vtensor<\[([\d,]+)\],(\w+)>", signature)
    ]
    stock, ours = (run(small, inputs, pipeline, level) for pipeline in (None, "builtin.module(prepass-default)"))
    assert compare(ours, stock).within(2e-2)


@pytest.mark.slow
@pytest.mark.parametrize("level", ["O0", "O3"])
def test_flux_attention_with_its_angles(corpus, level):
    """Two dispatches for the tables of the two tensors of angles, one for the key, one for the rest."""
    path = corpus / "seeds" / "flux_rope_attention.mlir"
    flags = (*GFX942, f"--iree-opt-level={level}")
    kernels = compile_to_assembly(path, pipeline="builtin.module(prepass-default)", flags=flags)
    assert len(kernels) == cost(path, "builtin.module(prepass-default)", level).dispatches == 4
    *_, key, attention = kernels
    apart = "builtin.module(prepass-canonicalize-rope,prepass-configure-attention)"
    *_, plain = compile_to_assembly(path, pipeline=apart, flags=flags)
    assert key.counts.total <= 200
    assert key.counts.accesses_of("load", width=2) == 0
    assert attention.spills == 0
    assert attention.metadata.lds_bytes <= 64 * 1024
    loop, plain_loop = attention.hottest.counts, plain.hottest.counts
    assert loop.mfmas == plain_loop.mfmas > 0
    assert loop.kinds[Kind.VALU] <= plain_loop.kinds[Kind.VALU] + 10
    assert loop.load_width() == 16

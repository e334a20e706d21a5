# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels in whole models: how many ops they compute, and how long compiling takes with them."""

import time
from collections import Counter

import numpy as np
import pytest
from iree.compiler import ir

import prepass
from prepass.checking.numerics import compare
from prepass.compiler.kernels import kernel_dispatches
from prepass.ir.kernels import ATTENTION, CONVOLUTION
from prepass.ir.match import find_ops, walk_ops
from prepass.pipeline.base import RemarkKind
from prepass.pipelines.sdxl import PIPELINE as SDXL
from prepass.simulator import compile_program, run_program, simulate

from .conftest import GFX942
from .graphs import Graph, with_constants
from .horizontal_cases import layers_of_cross_attention

# Of CPU time, all passes of the preset included: 50 s against 46 s were measured.
MOST_TIME = 1.3


def count_dispatches(module, counts):
    """Count how often each kernel's dispatches, and those of attention and convolutions without one, are dispatched."""
    names = dict.fromkeys(kernel_dispatches(module), "kernel")
    for function in walk_ops(module, "func.func"):
        name = function.attributes["sym_name"].value
        for kind in (ATTENTION, CONVOLUTION):
            if name not in names and find_ops(function, kind.recognizes):
                names[name] = f"{kind.name} without"
    for dispatch in walk_ops(module, "stream.cmd.dispatch"):
        for entry in dispatch.attributes["entry_points"]:
            name = ir.SymbolRefAttr(entry).value[-1]
            counts[names.get(name, "other"), "attention" in name, "conv" in name] += 1


@pytest.mark.slow
def test_the_unet_is_computed_by_kernels(corpus):
    path = corpus / "models" / "unet.mlir"
    flags = [*GFX942, *SDXL.flags_beside(GFX942)]
    started = time.process_time()
    prepass.compile(path, flags=flags)
    stock = time.process_time() - started
    counts, remarks = Counter(), []
    hooks = {"executable-sources": lambda module: count_dispatches(module, counts)}
    started = time.process_time()
    prepass.compile(
        path,
        preset="prepass-sdxl",
        kernels="default",
        flags=GFX942,
        hooks=hooks,
        on_remark=lambda remark, _: remarks.append(remark),
    )
    ours = time.process_time() - started
    selected = [remark for remark in remarks if remark.pass_name == "prepass-select-kernels"]
    print(f"\ndispatches: {dict(counts)}; compile time {ours:.0f} s, stock {stock:.0f} s")
    print("\n".join(f"{count} × {text}" for text, count in Counter(remark.message for remark in selected).items()))
    assert counts["attention without", True, False] == 0
    # The first has 4 channels, the last computes 8.
    assert counts["convolution without", False, True] == 2
    assert ours <= MOST_TIME * stock


def attention_block(batch, tokens, heads, channels):
    """Self attention as SDXL has it: projections, attention, an output projection and a residual."""
    graph, random, width = Graph(), np.random.default_rng(3), heads * channels
    x = graph.argument(random.standard_normal((batch, tokens, width)), "f16")
    weights = [graph.argument(random.standard_normal((width, width)) / width**0.5, "f16") for _ in range(4)]

    def project(value, weight):
        return graph.cast(graph.contract(value, "btc", weight, "dc", "btd", "f32"), "f16")

    def split(value):
        split_heads = graph.reshape(value, [[0], [1], [2, 3]], (batch, tokens, heads, channels))
        return graph.transpose(split_heads, (0, 2, 1, 3))

    query, key, value = (split(project(x, weight)) for weight in weights[:3])
    scores = graph.scalar("mulf", graph.contract(query, "bhtc", key, "bhsc", "bhts", "f32"), channels**-0.5)
    probabilities = graph.cast(graph.softmax(scores, 3, named=False), "f16")
    result = graph.cast(graph.contract(probabilities, "bhts", value, "bhsc", "bhtc", "f32"), "f16")
    joined = graph.reshape(graph.transpose(result, (0, 2, 1, 3)), [[0], [1], [2, 3]], (batch, tokens, width))
    return graph, graph.binary("addf", project(joined, weights[3]), x, "abc", "abc")


def test_a_block_with_kernels_is_what_it_is_without():
    graph, expected = attention_block(2, 144, 2, 64)
    source, inputs = graph.module(expected), graph.inputs()
    computed = []
    program = compile_program(
        source,
        preset="prepass-sdxl",
        kernels="all",
        on_remark=lambda remark, _: computed.append((remark.pass_name, remark.kind, remark.op_name)),
    )
    assert ("prepass-select-kernels", RemarkKind.APPLIED, "iree_linalg_ext.attention") in computed
    (result,) = run_program(program, inputs)
    (stock,) = simulate(source, inputs)
    scale = np.abs(expected.array).max()
    assert compare([result], [expected.array]).within(1e-3 * scale)
    assert compare([result], [stock]).within(1e-3 * scale)


def test_attention_kernels_read_at_offsets_that_they_are_given():
    graph, expected = layers_of_cross_attention(2, 80, 64, 2, 64, "f16")
    computed = []
    program = compile_program(
        with_constants(graph, *expected),
        pipeline="builtin.module(prepass-raise-attention,prepass-fuse-horizontal-contractions{form=packed})",
        kernels="all",
        on_remark=lambda remark, _: computed.append((remark.pass_name, remark.kind, remark.op_name)),
    )
    assert ("prepass-select-kernels", RemarkKind.APPLIED, "iree_linalg_ext.attention") in computed
    found = compare(run_program(program, graph.inputs()[:1]), [each.array for each in expected])
    assert found.within(1e-3 * found.scale)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-fold-unit-dims` changes no number, and batch 1 takes no more dispatches than batch 2."""

import numpy as np
import pytest

import prepass
from prepass.amdgpu.inputs import compile_to_assembly
from prepass.checking.numerics import compare
from prepass.ir.match import walk_ops

from .conftest import GFX942, LLVM_CPU
from .dispatches import cost
from .graphs import Graph
from .unit_dim_cases import Linear, RandomGraph

PIPELINE = "builtin.module(prepass-fold-unit-dims{matrices=always})"
# Absolute, of numbers around 1 to 10, after some roundings to eleven bits and to eight.
TOLERANCES = {"f32": 1e-4, "f16": 0.03, "bf16": 0.3}

LINEARS = [
    Linear(bias=False),
    Linear(element="f32", activation="tanh"),
    Linear(element="bf16", activation="exp"),
    Linear(heads=3),
    Linear(tokens=1, activation="tanh"),
    Linear(tokens=77, heads=6, bias=False),
    Linear(outputs=1),
    Linear(channels=1),
]


@pytest.mark.parametrize("linear", LINEARS, ids=str)
def test_linear_layers_compute_what_numpy_does(linear):
    graph, result = linear.graph()
    program = prepass.compile(graph.module(result), pipeline=PIPELINE, flags=LLVM_CPU)
    got = np.asarray(prepass.run(program, *graph.inputs())[0])
    assert compare([got], [result.array]).within(TOLERANCES[linear.element])


@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize("linear", LINEARS[:5], ids=str)
def test_batch_1_takes_as_many_dispatches_as_batch_2(linear, level):
    def dispatches(batch):
        graph, result = Linear(**{**vars(linear), "batch": batch}).graph()
        return cost(graph.module(result), PIPELINE, level).dispatches

    assert dispatches(1) <= dispatches(2)


def test_without_the_pass_the_cast_is_a_dispatch_of_its_own():
    graph, result = Linear().graph()
    assert cost(graph.module(result), None, "O0").dispatches > cost(graph.module(result), PIPELINE, "O0").dispatches


@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize("shape", [(77, 2048, 640), (1500, 1280, 1280)], ids=str)
def test_rows_that_fill_no_tile_use_matrix_instructions(shape, level):
    tokens, channels, outputs = shape
    graph, result = Linear(tokens=tokens, channels=channels, outputs=outputs).graph()
    flags = (*GFX942, f"--iree-opt-level={level}")
    (kernel,) = compile_to_assembly(graph.module(result), pipeline=PIPELINE, flags=flags)
    assert kernel.counts.mfmas
    assert not kernel.spills


@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize("element", ["f32", "bf16"])
def test_llvm_cpu_gets_the_kernels_it_had_for_matrices(element, level):
    graph, result = Linear(element=element, activation="tanh").graph()
    found = []
    for pipeline in (None, "builtin.module(prepass-fold-unit-dims)"):
        executables: list[str] = []
        flags = (*LLVM_CPU, f"--iree-opt-level={level}")
        hooks = {"flow": lambda module, into=executables: into.extend(map(str, walk_ops(module, "flow.executable")))}
        prepass.compile(graph.module(result), pipeline=pipeline, flags=flags, hooks=hooks)
        found.append(sorted(executables))
    assert found[0] == found[1] != []


@pytest.mark.parametrize("element", ["f32", "f16", "bf16"])
def test_random_graphs_compute_what_numpy_does(element):
    cases = [RandomGraph(seed, element).build() for seed in range(24)]
    functions = [graph.module(result, function=f"f{number}") for number, (graph, result) in enumerate(cases)]
    program = prepass.compile("\n".join(functions), pipeline=PIPELINE, flags=LLVM_CPU)
    for number, (graph, result) in enumerate(cases):
        got = np.asarray(prepass.run(program, *graph.inputs(), function=f"f{number}")[0])
        scale = max(1.0, np.abs(result.array).max(initial=0))
        assert compare([got], [result.array]).within(TOLERANCES[element] * scale), f"seed {number}"


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("shape", [(1, 4, 40, 64), (2, 1, 40, 64), (1, 1, 40, 64), (1, 4, 1, 64), (1, 1, 1, 64)])
def test_attention_without_unit_batches_computes_what_numpy_does(shape, element):
    batch, heads, queries, keys = shape
    graph, rng = Graph(), np.random.default_rng(0)
    query = graph.argument(rng.normal(0, 1, (batch, heads, queries, 32)), element)
    key, value = (graph.argument(rng.normal(0, 1, (batch, heads, keys, 32)), element) for _ in range(2))
    scores = graph.scalar("mulf", graph.contract(query, "abmk", key, "abnk", "abmn", "f32"), 0.25)
    weights = graph.softmax(scores, 3, named=False)
    result = graph.cast(graph.contract(weights, "abmk", value, "abkn", "abmn", "f32"), element)
    pipeline = PIPELINE.replace("prepass", "prepass-raise-attention,prepass", 1)
    program = prepass.compile(graph.module(result), pipeline=pipeline, flags=LLVM_CPU)
    got = np.asarray(prepass.run(program, *graph.inputs())[0])
    assert compare([got], [result.array]).within({"f32": 1e-4, "f16": 4e-3}[element])
    folded = prepass.Pipeline().raise_attention().fold_unit_dims().run(graph.module(result))
    _, attention, operands = str(folded.module).partition("iree_linalg_ext.attention")
    assert attention
    assert "tensor<1x" not in operands.partition(" outs(")[0] or queries == 1


def test_twice_is_once():
    for seed in range(20):
        graph, result = RandomGraph(seed, "f32").build()
        pipeline = prepass.Pipeline().fold_unit_dims()
        once = pipeline.run(graph.module(result))
        twice = pipeline.run(once.module)
        assert str(twice.module) == str(once.module), f"seed {seed}"


def convolution_onto_bias(pixels, channels, filters, window, body):
    image, result = f"1x{channels}x{pixels + window - 1}x{pixels + window - 1}", f"1x{filters}x{pixels}x{pixels}"
    weight, onto = f"{filters}x{channels}x{window}x{window}", f"tensor<{result}xf32>"
    return f"""\
func.func @main(%x: tensor<{image}xf32>, %w: tensor<{weight}xf32>, %bias: tensor<{filters}xf32>) -> {onto} {{
  %empty = tensor.empty() : {onto}
  %init = linalg.generic {{
      indexing_maps = [affine_map<(a, b, c, d) -> (b)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
      ins(%bias : tensor<{filters}xf32>) outs(%empty : {onto}) {{
  ^bb0(%in: f32, %out: f32):
    {body}
  }} -> {onto}
  %conv = linalg.conv_2d_nchw_fchw {{strides = dense<1> : vector<2xi64>, dilations = dense<1> : vector<2xi64>}}
      ins(%x, %w : tensor<{image}xf32>, tensor<{weight}xf32>) outs(%init : {onto}) -> {onto}
  return %conv : {onto}
}}
"""


BROADCAST, TWICE = "linalg.yield %in : f32", "%twice = arith.addf %in, %in : f32\n    linalg.yield %twice : f32"


@pytest.mark.parametrize("body", [BROADCAST, TWICE], ids=["broadcast", "computed"])
@pytest.mark.parametrize("sizes", [(6, 8, 6, 1), (33, 64, 100, 1), (13, 64, 10, 3)], ids=str)
@pytest.mark.parametrize("preset", ["prepass-default", "prepass-sdxl"])
def test_a_convolution_onto_a_bias_compiles_for_gfx942(preset, sizes, body):
    """IREE does not compile it where a reshape is between the two."""
    prepass.compile(convolution_onto_bias(*sizes, body), preset=preset, flags=GFX942)


@pytest.mark.parametrize("body", [BROADCAST, TWICE], ids=["broadcast", "computed"])
def test_a_bias_behind_its_convolution_changes_no_number(body):
    rng = np.random.default_rng(3)
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape in ((1, 8, 8, 8), (6, 8, 3, 3), (6,))]
    program = convolution_onto_bias(6, 8, 6, 3, body)
    (stock,), (got,) = (
        prepass.run(prepass.compile(program, pipeline=pipeline, flags=LLVM_CPU), *inputs)
        for pipeline in (None, PIPELINE)
    )
    assert compare([got], [stock]).within(1e-5)

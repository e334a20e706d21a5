# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-transpose-convolutions` keeps results, and the layout of all between convolutions."""

import re
from collections import Counter

import numpy as np
import pytest
from iree.compiler import ir

import prepass
from prepass.amdgpu.inputs import compile_to_assembly
from prepass.checking.numerics import compare
from prepass.compiler.api import compile_to
from prepass.errors import CompileError
from prepass.ir.layout.convolutions import read_convolution
from prepass.ir.match import find_ops

from .conftest import GFX942, LLVM_CPU
from .graphs import DTYPES
from .layout_programs import random_program

# Files of the corpus, each with one convolution or a few.
VECTORIZED = [
    "bias_silu_f16",
    "c1x1_f16",
    "c1x1_s2_f16",
    "c3x3_bf16",
    "c3x3_f16",
    "c3x3_s2_f16",
    "chain3_f16",
    "conv1d_f16",
    "conv_in4_f16",
    "conv_out4_f16",
    "gn_silu_conv_f16",
    "grouped32_f16",
    "up_conv_f16",
]


def run(text, inputs, pipeline):
    remarks = []
    program = prepass.compile(
        text, pipeline=pipeline, flags=LLVM_CPU, on_remark=lambda remark, _: remarks.append(remark.text)
    )
    return prepass.run(program, *inputs), remarks


def check(seed):
    program = random_program(seed)
    text, inputs = program.text(*program.images[-2:]), program.inputs()
    order = ["hwcf", "fhwc"][seed % 2]
    try:
        wanted, _ = run(text, inputs, None)
    except CompileError:
        pytest.skip("the compiler alone does not compile it")
    found, remarks = run(text, inputs, f"builtin.module(prepass-transpose-convolutions{{filters={order}}})")
    assert any("applied" in remark for remark in remarks)
    scale = max(1.0, *(float(np.abs(array).max()) for array in wanted))
    assert compare(found, wanted).within(1e-5 * scale)


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_keep_their_results(seed):
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8, 100))
def test_more_random_programs_keep_their_results(seed):
    check(seed)


UNPADDED = """
func.func @main(%x: tensor<1x16x10x10xf32>, %w: tensor<32x16x3x3xf32>) -> tensor<1x32x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x32x8x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32>
  %conv = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x16x10x10xf32>, tensor<32x16x3x3xf32>)
      outs(%init : tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32>
  return %conv : tensor<1x32x8x8xf32>
}
"""


ONE_ROW = {
    "inserted": """
func.func @main(%x: tensor<1x8x3x10xf32>, %w: tensor<8x8x3x3xf32>) -> tensor<1x9x1x8xf32> {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<1x8x1x8xf32>
  %init = linalg.fill ins(%one : f32) outs(%e : tensor<1x8x1x8xf32>) -> tensor<1x8x1x8xf32>
  %conv = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x3x10xf32>, tensor<8x8x3x3xf32>)
      outs(%init : tensor<1x8x1x8xf32>) -> tensor<1x8x1x8xf32>
  %into = tensor.empty() : tensor<1x9x1x8xf32>
  %ones = linalg.fill ins(%one : f32) outs(%into : tensor<1x9x1x8xf32>) -> tensor<1x9x1x8xf32>
  %r = tensor.insert_slice %conv into %ones[0, 1, 0, 0] [1, 8, 1, 8] [1, 1, 1, 1]
      : tensor<1x8x1x8xf32> into tensor<1x9x1x8xf32>
  return %r : tensor<1x9x1x8xf32>
}
""",
    "dilated": """
func.func @main(%x: tensor<1x8x5x8xf32>, %w: tensor<8x8x3x3xf32>, %bias: tensor<8xf32>) -> tensor<1x8x1x4xf32> {
  %e = tensor.empty() : tensor<1x8x1x4xf32>
  %init = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (b)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%bias : tensor<8xf32>) outs(%e : tensor<1x8x1x4xf32>) {
  ^bb0(%in: f32, %o: f32):
    %r = arith.addf %in, %in : f32
    linalg.yield %r : f32
  } -> tensor<1x8x1x4xf32>
  %conv = linalg.conv_2d_nchw_fchw {dilations = dense<2> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%x, %w : tensor<1x8x5x8xf32>, tensor<8x8x3x3xf32>) outs(%init : tensor<1x8x1x4xf32>) -> tensor<1x8x1x4xf32>
  return %conv : tensor<1x8x1x4xf32>
}
""",
}


@pytest.mark.parametrize("flags", [LLVM_CPU, GFX942], ids=["llvm-cpu", "gfx942"])
@pytest.mark.parametrize("level", ["O0", "O3"])
def test_a_transposed_argument_does_not_fold_into_its_convolution(flags, level):
    inputs: list[bool] = []

    def look(module: ir.Module) -> None:
        for op in find_ops(module.operation, lambda op: read_convolution(op) is not None):
            inputs.append(read_convolution(op).is_channels_last)

    flags = [*flags, f"--iree-opt-level={level}"]
    prepass.compile(UNPADDED, preset="sdxl", flags=flags, hooks={"flow": look})
    assert inputs == [True]


def messages_on_llvm_cpu(text: str) -> list[str]:
    """What the pass says of a module."""
    found: list[str] = []
    compile_to(
        text,
        "preprocessing",
        hooks={},
        pipeline="builtin.module(prepass-transpose-convolutions)",
        flags=LLVM_CPU,
        on_remark=lambda remark, _: found.append(remark.message),
    )
    return found


@pytest.mark.parametrize(
    ("filters", "reasons"), [(32, []), (512 * 32, ["no other layout is known to be faster on llvm-cpu"])]
)
def test_large_filters_are_left_alone_on_llvm_cpu(filters, reasons):
    text = UNPADDED.replace("x32x8x8", f"x{filters}x8x8").replace("tensor<32x", f"tensor<{filters}x")
    assert [message for message in messages_on_llvm_cpu(text) if "faster" in message] == reasons


VOLUMES = """\
func.func @main(%x: tensor<1x8x6x6x6xf32>, %w: tensor<16x8xWINDOWxf32>, %acc: tensor<1x16xRESULTxf32>)
    -> tensor<1x16xRESULTxf32> {
  %0 = linalg.conv_3d_ncdhw_fcdhw {strides = dense<STRIDE> : vector<3xi64>, dilations = dense<1> : vector<3xi64>}
      ins(%x, %w : tensor<1x8x6x6x6xf32>, tensor<16x8xWINDOWxf32>) outs(%acc : tensor<1x16xRESULTxf32>)
      -> tensor<1x16xRESULTxf32>
  return %0 : tensor<1x16xRESULTxf32>
}
"""


@pytest.mark.parametrize(
    ("window", "stride", "result", "reasons"),
    [
        ("3x3x3", 1, "4x4x4", ["no other layout is known to be faster on llvm-cpu"]),
        ("3x3x3", 2, "2x2x2", ["no other layout is known to be faster on llvm-cpu"]),
        ("2x2x2", 2, "3x3x3", ["it gains less from channels-last than transposes would cost"]),
    ],
)
def test_windows_of_volumes_are_left_alone_on_llvm_cpu(window, stride, result, reasons):
    text = VOLUMES.replace("WINDOW", window).replace("STRIDE", str(stride)).replace("RESULT", result)
    assert messages_on_llvm_cpu(text) == reasons


@pytest.mark.parametrize("flags", [LLVM_CPU, GFX942], ids=["llvm-cpu", "gfx942"])
@pytest.mark.parametrize("pipeline", ["prepass-transpose-convolutions", "prepass-sdxl"])
@pytest.mark.parametrize("rows", ["inserted", "dilated"])
def test_one_row_of_results_compiles_with_what_is_around_it(rows, pipeline, flags):
    """In channels-last IREE does not compile an insertion for llvm-cpu, and a dilation with a bias for gfx942."""
    prepass.compile(ONE_ROW[rows], pipeline=f"builtin.module({pipeline})", flags=flags)


@pytest.mark.parametrize("name", VECTORIZED)
def test_convolutions_load_whole_vectors_on_gfx942(corpus, name):
    """One convolution with NCHW arguments and a weight: its loop loads no two bytes, and it multiplies matrices."""
    source = corpus / "convolution" / f"{name}.mlir"
    kernels = [k for k in compile_to_assembly(source, preset="prepass-sdxl", flags=GFX942) if k.counts.mfmas]
    assert kernels
    loops = [kernel.hottest.counts for kernel in kernels if kernel.hottest]
    assert all(not loop.accesses_of("load", width=2) for loop in loops)


@pytest.mark.parametrize("name", ["depthwise_f16"])
def test_what_gains_nothing_is_left_alone_on_gfx942(corpus, name):
    remarks = []
    source = corpus / "convolution" / f"{name}.mlir"
    compile_to_assembly(
        source, preset="prepass-sdxl", flags=GFX942, on_remark=lambda remark, _: remarks.append(remark.text)
    )
    assert any("gains less from channels-last" in remark for remark in remarks)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*VECTORIZED, "depthwise_f16"])
def test_exported_convolutions_agree_with_the_compiler_alone(corpus, name):
    text, image = with_weights((corpus / "convolution" / f"{name}.mlir").read_text())
    results = [
        prepass.run(prepass.compile(text, preset=preset, flags=LLVM_CPU), image, function="main")
        for preset in (None, "prepass-sdxl")
    ]
    scale = float(np.abs(results[0][0].astype(np.float64)).max())
    rounding = 1.6e-2 if name.endswith("bf16") else 2e-3
    assert compare(results[1], results[0]).within(scale * rounding)


def with_weights(text):
    """The program with numbers for its parameters, and an image for its argument."""
    rng = np.random.default_rng(0)

    def constant(match):
        shape = [int(size) for size in match[2].split("x")]
        array = rng.standard_normal(shape) / np.sqrt(max(1, np.prod(shape[1:])))
        data = array.astype(DTYPES[match[3]]).tobytes().hex()
        return f'util.global private @{match[1]} = dense<"0x{data}"> : tensor<{match[2]}x{match[3]}>'

    parameter = r"util\.global private @(\S+) = #flow\.parameter\.named<[^>]*> : tensor<([\dx]+)x(b?f\d+)>"
    sizes, element = re.search(r"@main\(%arg0: !torch\.vtensor<\[([\d,]+)\],(b?f\d+)>", text).groups()
    image = rng.standard_normal([int(size) for size in sizes.split(",")]).astype(DTYPES[element])
    return re.sub(parameter, constant, text), image


@pytest.mark.slow
@pytest.mark.parametrize("model", ["vae64", "unet"])
def test_models_are_channels_last_but_for_their_edges(corpus, model):
    counters, remarks = Counter(), []

    def stop(_):
        raise _StopError

    with pytest.raises(_StopError):
        prepass.compile(
            corpus / "models" / f"{model}.mlir",
            pipeline="builtin.module(prepass-default,prepass-transpose-convolutions)",
            flags=GFX942,
            on_remark=lambda remark, _: remarks.append(remark),
            hooks={"preprocessing": stop},
        )
    for remark in remarks:
        if remark.pass_name == "prepass-transpose-convolutions":
            counters[remark.message.partition(":")[0]] += 1
    assert counters["channels-last"] == {"vae64": 36, "unet": 51}[model]
    # The image on its way in, and on its way out.
    assert sum(counters.values()) - counters["channels-last"] == 2


class _StopError(Exception):
    """Compilation has gone far enough."""

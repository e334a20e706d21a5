# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The convolution kernel: in the simulator against numpy and IREE's own code, its static figures, its refusals."""

import dataclasses
import re

import numpy as np
import pytest
from iree.compiler import ir

import prepass
from prepass.amdgpu.inputs import compile_to_assembly
from prepass.ir.kernels import CONVOLUTION
from prepass.ir.match import find_ops
from prepass.ir.targets import Target
from prepass.kernels.convolution.kernel import CONVOLUTION_KERNEL
from prepass.kernels.implicit_product.kernel import SIDES
from prepass.kernels.implicit_product.problem import Axis, Problem
from prepass.kernels.implicit_product.tile import Tile, best_tile
from prepass.simulator import compile_program, run_program, simulate

from .conftest import GFX942
from .convolution_kernel_cases import FUSE_PADDING, TOLERANCE, Case, convolve, expected, relative_error

# IREE itself takes instructions of 16x16 for these.
OURS = "v_mfma_f32_32x32x8"

CASES = [
    Case(1, 8, 16, 32, 128),  # one tile, to the last pixel
    Case(2, 7, 9, 32, 128),  # pixels end in a tile, which lies in two images
    Case(1, 13, 11, 64, 192),  # filters end in a tile
    Case(2, 13, 13, 16, 130),  # 16 channels, filters that are no multiple of 8, six workgroups
    Case(1, 6, 5, 48, 129),  # 16 channels at a time, an odd number of filters
    Case(2, 9, 10, 32, 320, stride=2),
    Case(1, 9, 9, 80, 144, window=1, stride=2),
    Case(1, 1, 3, 16, 128),  # a row: the loop over its rows is gone
]


def tiled(sides):
    """Hooks that compute convolutions with one tile, whichever is best."""
    kernel = dataclasses.replace(CONVOLUTION_KERNEL, tiles=(sides,))

    def hook(module):
        with module.context, ir.Location.unknown():
            for op in find_ops(module, lambda op: CONVOLUTION.recognizes(op)):
                kernel.match(op, Target("rocm", "gfx942")).rewrite()

    return {"executable-sources": hook}


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_against_numpy(case, element):
    case = dataclasses.replace(case, element=element)
    inputs = case.inputs()
    program = compile_program(case.source, kernels="convolution", flags=[FUSE_PADDING])
    assert OURS in "".join(program.assembly)
    (result,) = run_program(program, inputs)
    assert relative_error(result, expected(case, inputs)) <= TOLERANCE[element]


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("case", [Case(1, 6, 6, 32, 128, window=1), Case(2, 9, 11, 48, 200, window=1)], ids=str)
def test_single_pixels(case, element):
    # IREE makes matrix products of them.
    case = dataclasses.replace(case, element=element)
    inputs = case.inputs()
    program = compile_program(case.source, kernels="staged-matmul")
    assert OURS in "".join(program.assembly)
    (result,) = run_program(program, inputs)
    assert relative_error(result, expected(case, inputs)) <= TOLERANCE[element]


@pytest.mark.parametrize("case", [CASES[0], CASES[1], Case(1, 16, 16, 32, 128, stride=2)], ids=str)
def test_against_the_stock_compile(case):
    inputs = case.inputs()
    # Padding is not fused, so that the kernel reads a padded image.
    (result,) = simulate(case.source, inputs, kernels="convolution")
    (stock,) = simulate(case.source, inputs)
    assert relative_error(result, stock.astype(np.float64)) <= TOLERANCE["f16"]


@pytest.mark.parametrize("filters", [160, 300])
@pytest.mark.parametrize("sides", SIDES, ids=str)
def test_each_tile(sides, filters):
    case = Case(1, 12, 12, 32, filters)
    inputs = case.inputs()
    program = compile_program(case.source, hooks=tiled(sides), flags=[FUSE_PADDING])
    (result,) = run_program(program, inputs)
    assert relative_error(result, expected(case, inputs)) <= TOLERANCE["f16"]


FUSED = """\
func.func @main(%x: tensor<2x5x6x32xf16>, %w: tensor<128x3x3x32xf16>, %t: tensor<128x2xf16>, %y: tensor<2x5x6x128xf32>)
    -> (tensor<2x5x6x128xf16>, tensor<2x5x6x128xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f16
  %border = arith.constant 0.0 : f16
  %padded = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%n: index, %h: index, %v: index, %c: index):
    tensor.yield %border : f16
  } : tensor<2x5x6x32xf16> to tensor<2x7x8x32xf16>
  %e = tensor.empty() : tensor<2x5x6x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x6x128xf32>) -> tensor<2x5x6x128xf32>
  %sums = linalg.conv_2d_nhwc_fhwc {strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
      ins(%padded, %w : tensor<2x7x8x32xf16>, tensor<128x3x3x32xf16>)
      outs(%f : tensor<2x5x6x128xf32>) -> tensor<2x5x6x128xf32>
  %o = tensor.empty() : tensor<2x5x6x128xf16>
  %r:2 = linalg.generic {indexing_maps = [
      affine_map<(n, h, w, f) -> (n, h, w, f)>, affine_map<(n, h, w, f) -> (f, n)>,
      affine_map<(n, h, w, f) -> (n, h, w, f)>, affine_map<(n, h, w, f) -> (n, h, w, f)>,
      affine_map<(n, h, w, f) -> (n, h, w, f)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%sums, %t, %y : tensor<2x5x6x128xf32>, tensor<128x2xf16>, tensor<2x5x6x128xf32>)
      outs(%o, %e : tensor<2x5x6x128xf16>, tensor<2x5x6x128xf32>) {
  ^bb0(%sum: f32, %time: f16, %add: f32, %q: f16, %s: f32):
    %narrow = arith.truncf %sum : f32 to f16
    %timed = arith.addf %narrow, %time : f16
    %minus = arith.negf %timed : f16
    %exp = math.exp %minus : f16
    %more = arith.addf %exp, %one : f16
    %silu = arith.divf %timed, %more : f16
    %total = arith.addf %sum, %add : f32
    linalg.yield %silu, %total : f16, f32
  } -> (tensor<2x5x6x128xf16>, tensor<2x5x6x128xf32>)
  return %r#0, %r#1 : tensor<2x5x6x128xf16>, tensor<2x5x6x128xf32>
}
"""


SLICE = "%t = tensor.extract_slice %all[0, 1] [128, 2] [1, 1] : tensor<128x3xf16> to tensor<128x2xf16>"
SLICED = FUSED.replace("%t: tensor<128x2xf16>", "%all: tensor<128x3xf16>").replace("%zero =", f"{SLICE}\n  %zero =", 1)


@pytest.mark.parametrize(("source", "times", "scalars"), [(FUSED, 2, False), (SLICED, 3, True)], ids=["all", "sliced"])
def test_what_is_fused_with_it_stays_fused(source, times, scalars):
    random = np.random.default_rng(5)
    image, filters = (random.standard_normal(s).astype(np.float16) for s in ((2, 5, 6, 32), (128, 3, 3, 32)))
    filters = (filters / 8).astype(np.float16)
    time = random.standard_normal((128, times)).astype(np.float16)
    residual = random.standard_normal((2, 5, 6, 128)).astype(np.float32)
    program = compile_program(source, kernels="convolution", flags=[FUSE_PADDING])
    (assembly,) = program.assembly
    assert assembly.count(".amdhsa_kernel ") == 1
    assert OURS in assembly
    # A time embedding of which each image has every other element is read by vectors, unless the last ends too early.
    assert ("_load_ushort" in assembly) == scalars
    silu, total = run_program(program, [image, filters, time, residual])
    sums = convolve(image, filters, 1, 1)
    timed = sums + time[:, times - 2 :].T[:, None, None, :]
    assert relative_error(silu, timed / (1 + np.exp(-timed))) <= 2 * TOLERANCE["f16"]
    assert relative_error(total, sums + residual) <= 1e-5


def figures_of(source, **options):
    """The figures of the one kernel with matrix instructions."""
    kernels = compile_to_assembly(source, flags=[*GFX942, FUSE_PADDING], **options)
    (kernel,) = [kernel for kernel in kernels if kernel.counts.mfmas]
    return kernel


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("sizes", [(2, 64, 64, 320, 320), (1, 256, 256, 256, 256), (2, 64, 64, 640, 640)], ids=str)
def test_the_matrix_cores_bound_it(sizes, element):
    kernel = figures_of(Case(*sizes, element=element).source, kernels="convolution")
    cost = kernel.hottest.cost
    assert cost.bound == "MFMA"
    assert cost.cu.lds < cost.cu.mfma
    assert kernel.spills == 0
    stores = kernel.counts.accesses_of("store", "global", "buffer")
    assert stores == kernel.counts.accesses_of("store", "global", "buffer", width=16) > 0
    stock = figures_of(Case(*sizes, element=element).source).hottest.cost
    assert cost.cu.lds / cost.cu.mfma < stock.cu.lds / stock.cu.mfma


def test_a_bias_that_the_sums_start_from():
    case = Case(1, 7, 9, 32, 128)
    start = """\
  %fill = linalg.generic {indexing_maps = [affine_map<(n, h, w, f) -> (f)>, affine_map<(n, h, w, f) -> (n, h, w, f)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%b : tensor<128xf16>) outs(%empty : tensor<1x7x9x128xf32>) {
  ^bb0(%from: f16, %o: f32):
    %bias = arith.extf %from : f16 to f32
    linalg.yield %bias : f32
  } -> tensor<1x7x9x128xf32>
"""
    (fill,) = [line for line in case.source.splitlines(keepends=True) if "%fill =" in line]
    inputs = case.inputs()
    program = compile_program(case.source.replace(fill, start), kernels="convolution", flags=[FUSE_PADDING])
    assert OURS in program.assembly[0]
    (result,) = run_program(program, inputs)
    image, filters, bias = inputs
    reference = np.maximum(convolve(image, filters, 1, 1) + 2 * bias.astype(np.float64), 0)
    assert relative_error(result, reference) <= TOLERANCE["f16"]


def dynamic_batch(source):
    """A module of one image, of any number of images."""
    size = "  %first = arith.constant 0 : index\n  %images = tensor.dim %x, %first : tensor<?x8x8x32xf16>\n"
    dynamic = re.sub(r"tensor<1x(8x8|10x10)x", r"tensor<?x\1x", source)
    return re.sub(r"tensor.empty\(\)", "tensor.empty(%images)", dynamic).replace("  %zero =", size + "  %zero =", 1)


def channels_first(source):
    """A module that stores its result with the channels outside of the pixels."""
    outside = source.replace("(n, h, w, f)>], iterator_types", "(n, f, h, w)>], iterator_types")
    return outside.replace("1x8x8x128xf16", "1x128x8x8xf16")


def padded_channels(source):
    """A module that pads the last 16 channels."""
    padded = source.replace("high[0, 1, 1, 0]", "high[0, 1, 1, 16]")
    return padded.replace("tensor<1x8x8x32xf16>", "tensor<1x8x8x16xf16>")


def remarks_of(source):
    """What the pass says of a module."""
    found = []
    flags = [*GFX942, FUSE_PADDING]
    prepass.compile(source, flags=flags, kernels="convolution", on_remark=lambda remark, _: found.append(remark))
    return [remark.message for remark in found]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (Case(1, 8, 8, 24, 128).source, "C is 24, not a multiple of 16"),
        (Case(1, 8, 8, 32, 63).source, "F is 63, less than a tile has"),
        (dynamic_batch(Case(1, 8, 8, 32, 128).source), "a shape is dynamic"),
        (channels_first(Case(1, 8, 8, 32, 128).source), "channels are not innermost in what is stored"),
        (padded_channels(Case(1, 8, 8, 32, 128).source), "the channels are padded"),
        (Case(1, 8, 8, 32, 128).source.replace("%border = arith.constant 0.0", "%border = arith.constant 1.0"),
         "the padding is not zeros"),
        (Case(1, 8, 8, 32, 128).source.replace("%zero = arith.constant 0.0", "%zero = arith.constant 1.0"),
         "the sums start neither from zero nor from what an elementwise op computes"),
        (FUSED.replace("arith.addf %narrow, %time", "arith.addf %narrow, %x0").replace(
            "%timed =", "%i = linalg.index 3 : index\n%j = arith.index_cast %i : index to i16\n"
            "%x0 = arith.sitofp %j : i16 to f16\n%timed ="), "a step does linalg.index"),
    ],
)  # fmt: skip
def test_each_reason_to_leave_an_op_alone(source, reason):
    assert remarks_of(source) == [f"convolution: {reason}"]


@pytest.mark.parametrize(
    ("pixels", "filters", "sides"),
    [
        (65536, 256, (128, 128)),
        (8192, 640, (128, 160)),  # 256 workgroups, which leave no CU two
        (2048, 1280, (96, 128)),  # 220; 128x128 would be 160
        (2048, 320, (64, 64)),  # CUs are idle
    ],
)
def test_the_tile_with_which_the_busiest_cu_is_done_first(pixels, filters, sides):
    problem = Problem((Axis(pixels, 32, pixels),), 32, (filters,), 32, "f16")
    tile = best_tile(problem, [Tile(*SIDES[each], 32) for each in SIDES])
    assert (tile.pixels.rows, tile.filters.rows) == sides


@pytest.mark.parametrize("sides", SIDES, ids=str)
def test_cycles_are_those_of_the_code(sides):
    tile = Tile(*SIDES[sides], 32)
    source = Case(1, 16, 16, 64, 160).source
    with_tile = compile_to_assembly(source, flags=[*GFX942, FUSE_PADDING], hooks=tiled(sides))
    (kernel,) = [kernel for kernel in with_tile if kernel.counts.mfmas]
    # LLVM unrolls some loops.
    found = kernel.hottest.cost.cu
    assert found.mfma % tile.matrix_cycles == 0
    assert found.lds / found.mfma == tile.lds_cycles / tile.matrix_cycles
    assert kernel.metadata.lds_bytes == tile.lds_bytes
    assert kernel.spills == 0

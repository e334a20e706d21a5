# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-configure-reductions`: norms of batch 1 compile for gfx942, and compute what numpy does.

Without it compiling does not come to an end, so that these tests would not either.
"""

import subprocess

import numpy as np
import pytest

from prepass.amdgpu.inputs import compile_to_assembly
from prepass.checking.numerics import compare
from prepass.simulator import simulate

from .conftest import GFX942

PIPELINE = "builtin.module(prepass-configure-reductions)"
# A whole norm is one dispatch.
FUSION = "--iree-dispatch-creation-enable-aggressive-fusion=true"
EPSILON = 1e-5
CONVOLUTION = """
#g = affine_map<(g, c, n) -> (g, c, n)>
#s = affine_map<(g, c, n) -> (g)>
#i = affine_map<(g) -> (g)>
func.func @main(%x: tensor<1x32x32x32xf16>, %w: tensor<32x32x1x1xf16>) -> (tensor<8xf32>, tensor<8xf32>) {
  %half = arith.constant 0.0 : f16
  %zero = arith.constant 0.0 : f32
  %ratio = arith.constant 2.44140625E-4 : f32
  %e0 = tensor.empty() : tensor<1x32x32x32xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<1x32x32x32xf32>) -> tensor<1x32x32x32xf32>
  %conv = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x32x32x32xf16>, tensor<32x32x1x1xf16>)
      outs(%f0 : tensor<1x32x32x32xf32>) -> tensor<1x32x32x32xf32>
  %flat = tensor.collapse_shape %conv [[0, 1], [2, 3]] : tensor<1x32x32x32xf32> into tensor<32x1024xf32>
  %groups = tensor.expand_shape %flat [[0, 1], [2]] output_shape [8, 4, 1024]
      : tensor<32x1024xf32> into tensor<8x4x1024xf32>
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#g, #s], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%groups : tensor<8x4x1024xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %b = arith.addf %in, %out : f32
    linalg.yield %b : f32
  } -> tensor<8xf32>
  %mean = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%sum : tensor<8xf32>)
      outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.mulf %in, %ratio : f32
    linalg.yield %a : f32
  } -> tensor<8xf32>
  %squares = linalg.generic {indexing_maps = [#g, #s, #s], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%groups, %mean : tensor<8x4x1024xf32>, tensor<8xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%in: f32, %m: f32, %out: f32):
    %d = arith.subf %in, %m : f32
    %p = arith.mulf %d, %d : f32
    %b = arith.addf %p, %out : f32
    linalg.yield %b : f32
  } -> tensor<8xf32>
  return %mean, %squares : tensor<8xf32>, tensor<8xf32>
}
"""


def norm(positions: int, groups: int, channels: int) -> str:
    """The mean of each group, and the norm itself."""
    whole, small = f"tensor<{positions}x{groups}x{channels}xf16>", f"tensor<{groups}xf32>"
    reduce = 'iterator_types = ["parallel", "reduction", "reduction"]'
    return f"""
#x = affine_map<(g, n, c) -> (n, g, c)>
#s = affine_map<(g, n, c) -> (g)>
#i = affine_map<(g) -> (g)>
#all = affine_map<(n, g, c) -> (n, g, c)>
#group = affine_map<(n, g, c) -> (g)>
func.func @main(%x: {whole}) -> ({small}, {whole}) {{
  %zero = arith.constant 0.0 : f32
  %ratio = arith.constant {1 / (positions * channels):.9e} : f32
  %epsilon = arith.constant {EPSILON:.9e} : f32
  %e = tensor.empty() : {small}
  %f = linalg.fill ins(%zero : f32) outs(%e : {small}) -> {small}
  %sum = linalg.generic {{indexing_maps = [#x, #s], {reduce}}} ins(%x : {whole}) outs(%f : {small}) {{
  ^bb0(%in: f16, %out: f32):
    %a = arith.extf %in : f16 to f32
    %b = arith.addf %a, %out : f32
    linalg.yield %b : f32
  }} -> {small}
  %mean = linalg.generic {{indexing_maps = [#i, #i], iterator_types = ["parallel"]}} ins(%sum : {small})
      outs(%e : {small}) {{
  ^bb0(%in: f32, %out: f32):
    %a = arith.mulf %in, %ratio : f32
    linalg.yield %a : f32
  }} -> {small}
  %squares = linalg.generic {{indexing_maps = [#x, #s, #s], {reduce}}} ins(%x, %mean : {whole}, {small})
      outs(%f : {small}) {{
  ^bb0(%in: f16, %m: f32, %out: f32):
    %a = arith.extf %in : f16 to f32
    %d = arith.subf %a, %m : f32
    %p = arith.mulf %d, %d : f32
    %b = arith.addf %p, %out : f32
    linalg.yield %b : f32
  }} -> {small}
  %o = tensor.empty() : {whole}
  %y = linalg.generic {{indexing_maps = [#all, #group, #group, #all],
      iterator_types = ["parallel", "parallel", "parallel"]}} ins(%x, %mean, %squares : {whole}, {small}, {small})
      outs(%o : {whole}) {{
  ^bb0(%in: f16, %m: f32, %s: f32, %out: f16):
    %a = arith.extf %in : f16 to f32
    %d = arith.subf %a, %m : f32
    %v = arith.mulf %s, %ratio : f32
    %w = arith.addf %v, %epsilon : f32
    %r = math.rsqrt %w : f32
    %p = arith.mulf %d, %r : f32
    %b = arith.truncf %p : f32 to f16
    linalg.yield %b : f16
  }} -> {whole}
  return %mean, %y : {small}, {whole}
}}
"""


# Whole workgroups; lanes of several waves with some idle; positions that do not spread over lanes; one channel.
@pytest.mark.parametrize("shape", [(1024, 8, 4), (256, 8, 16), (1000, 3, 2), (77, 3, 10), (640, 64, 1)], ids=str)
def test_simulated_against_numpy(shape):
    x = (np.random.default_rng(0).standard_normal(shape) * 2 + 3).astype(np.float16)
    wide = x.astype(np.float64)
    mean, variance = wide.mean((0, 2), keepdims=True), wide.var((0, 2), keepdims=True)
    found = simulate(norm(*shape), [x], pipeline=PIPELINE, flags=[FUSION])
    expected = [mean.reshape(-1), (wide - mean) / np.sqrt(variance + EPSILON)]
    assert compare(found, [array.astype(np.float32) for array in expected]).within(2e-3)


def test_a_norm_of_batch_1_is_one_kernel_with_wide_loads():
    (kernel,) = compile_to_assembly(norm(4096, 32, 16), pipeline=PIPELINE, flags=[*GFX942, FUSION])
    assert kernel.spills == 0
    assert kernel.counts.accesses_of("load", width=16) >= 3


def test_channels_last_brings_it_along():
    """A convolution and its GroupNorm at batch 1, with the flags of the preset."""
    applied = set()

    def note(remark, _):
        applied.add((remark.pass_name, remark.kind.value))

    assert compile_to_assembly(CONVOLUTION, preset="prepass-sdxl", flags=GFX942, on_remark=note)
    assert ("prepass-configure-reductions", "applied") in applied


@pytest.mark.slow
def test_the_decoder_of_sdxl_compiles_to_a_program(corpus, program, tmp_path):
    try:
        result = program(
            "prepass-compile",
            corpus / "models" / "vae64.mlir",
            "--prepass-preset=prepass-sdxl",
            *GFX942,
            "-o",
            tmp_path / "vae.vmfb",
            timeout=600,
        )
    except subprocess.TimeoutExpired:
        pytest.fail("the compiler does not come to an end")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "vae.vmfb").stat().st_size > 100_000

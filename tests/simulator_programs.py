# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small programs for the simulator, with inputs and what numpy makes of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

Arrays = Sequence[np.ndarray]


@dataclass(frozen=True)
class Case:
    """A program.

    Attributes:
      inputs: From a random generator.
      reference: In float64 or exact.
      tolerance: The largest absolute difference.
    """

    name: str
    source: str
    inputs: Callable[[np.random.Generator], list[np.ndarray]]
    reference: Callable[..., np.ndarray | tuple[np.ndarray, ...]]
    tolerance: float


def normal(*shape: int, dtype: type = np.float32, scale: float = 1.0) -> Callable[[np.random.Generator], np.ndarray]:
    """Random numbers of a shape and type."""
    return lambda random: (random.standard_normal(shape) * scale).astype(dtype)


def bf16(*shape: int) -> Callable[[np.random.Generator], np.ndarray]:
    """Random numbers that bf16 holds, as float32."""

    def make(random: np.random.Generator) -> np.ndarray:
        bits = random.standard_normal(shape).astype(np.float32).view(np.uint32)
        return (bits & np.uint32(0xFFFF0000)).view(np.float32)

    return make


def integers(low: int, high: int, *shape: int, dtype: type = np.int64) -> Callable[[np.random.Generator], np.ndarray]:
    """Random integers, `high` excluded."""
    return lambda random: random.integers(low, high, shape).astype(dtype)


def _inputs(*makers: Callable[[np.random.Generator], np.ndarray]) -> Callable[[np.random.Generator], list[np.ndarray]]:
    return lambda random: [make(random) for make in makers]


def _matmul_source(m: int, n: int, k: int, kind: str, result: str) -> str:
    zero = "0" if result[0] == "i" else "0.0"
    return f"""\
func.func @main(%a: tensor<{m}x{k}x{kind}>, %b: tensor<{k}x{n}x{kind}>) -> tensor<{m}x{n}x{result}> {{
  %zero = arith.constant {zero} : {result}
  %e = tensor.empty() : tensor<{m}x{n}x{result}>
  %f = linalg.fill ins(%zero : {result}) outs(%e : tensor<{m}x{n}x{result}>) -> tensor<{m}x{n}x{result}>
  %r = linalg.matmul ins(%a, %b : tensor<{m}x{k}x{kind}>, tensor<{k}x{n}x{kind}>)
      outs(%f : tensor<{m}x{n}x{result}>) -> tensor<{m}x{n}x{result}>
  return %r : tensor<{m}x{n}x{result}>
}}
"""


def _matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    exact = np.int64 if a.dtype == np.int8 else np.float64
    return a.astype(exact) @ b.astype(exact)


def attention_source(batch: int, m: int, keys: int, dim: int, kind: str) -> str:
    """An attention op: queries and keys are [batch, rows, dim]."""
    q, k = f"tensor<{batch}x{m}x{dim}x{kind}>", f"tensor<{batch}x{keys}x{dim}x{kind}>"
    return f"""\
func.func @main(%q: {q}, %k: {k}, %v: {k}) -> {q} {{
  %scale = arith.constant {dim**-0.5:.8f} : {kind}
  %e = tensor.empty() : {q}
  %0 = iree_linalg_ext.attention <{{indexing_maps = [
    affine_map<(b, m, n, k1, k2) -> (b, m, k1)>,
    affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>,
    affine_map<(b, m, n, k1, k2) -> (b, k2, n)>,
    affine_map<(b, m, n, k1, k2) -> ()>,
    affine_map<(b, m, n, k1, k2) -> (b, m, n)>]}}>
    ins(%q, %k, %v, %scale : {q}, {k}, {k}, {kind}) outs(%e : {q}) {{
    ^bb0(%x: f32):
      iree_linalg_ext.yield %x : f32
  }} -> {q}
  return %0 : {q}
}}
"""


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Attention in float64."""
    q, k, v = (array.astype(np.float64) for array in (q, k, v))
    return softmax(q @ k.transpose(0, 2, 1) * q.shape[-1] ** -0.5) @ v


def softmax(scores: np.ndarray) -> np.ndarray:
    """Softmax over the last dimension in float64."""
    powers = np.exp(scores.astype(np.float64) - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


CONVOLUTION = """\
func.func @main(%a: tensor<1x10x10x32xf16>, %w: tensor<3x3x32x32xf16>) -> tensor<1x8x8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x8x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x8x32xf32>) -> tensor<1x8x8x32xf32>
  %r = linalg.conv_2d_nhwc_hwcf ins(%a, %w : tensor<1x10x10x32xf16>, tensor<3x3x32x32xf16>)
      outs(%f : tensor<1x8x8x32xf32>) -> tensor<1x8x8x32xf32>
  return %r : tensor<1x8x8x32xf32>
}
"""


def _convolution(a: np.ndarray, w: np.ndarray) -> np.ndarray:
    a, w = a.astype(np.float64), w.astype(np.float64)
    return sum(np.einsum("nhwc,cf->nhwf", a[:, i : i + 8, j : j + 8], w[i, j]) for i in range(3) for j in range(3))


# 197 columns fit no tile.
SOFTMAX = """\
func.func @main(%a: tensor<48x197xf32>) -> tensor<48x197xf32> {
  %e = tensor.empty() : tensor<48x197xf32>
  %r = linalg.softmax dimension(1) ins(%a : tensor<48x197xf32>) outs(%e : tensor<48x197xf32>) -> tensor<48x197xf32>
  return %r : tensor<48x197xf32>
}
"""

LAYER_NORM = """\
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>
#all = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%a: tensor<24x640xf32>, %gain: tensor<640xf32>, %bias: tensor<640xf32>) -> tensor<24x640xf32> {
  %zero = arith.constant 0.0 : f32
  %count = arith.constant 640.0 : f32
  %epsilon = arith.constant 1.0e-5 : f32
  %e = tensor.empty() : tensor<24xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<24xf32>) -> tensor<24xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<24x640xf32>) outs(%f : tensor<24xf32>) {
    ^bb0(%x: f32, %y: f32):
      %0 = arith.addf %x, %y : f32
      linalg.yield %0 : f32
  } -> tensor<24xf32>
  %squares = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a, %sum : tensor<24x640xf32>, tensor<24xf32>) outs(%f : tensor<24xf32>) {
    ^bb0(%x: f32, %s: f32, %y: f32):
      %mean = arith.divf %s, %count : f32
      %d = arith.subf %x, %mean : f32
      %square = arith.mulf %d, %d : f32
      %0 = arith.addf %square, %y : f32
      linalg.yield %0 : f32
  } -> tensor<24xf32>
  %e2 = tensor.empty() : tensor<24x640xf32>
  %r = linalg.generic {indexing_maps = [#all, #row, #row, #column, #column, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%a, %sum, %squares, %gain, %bias
        : tensor<24x640xf32>, tensor<24xf32>, tensor<24xf32>, tensor<640xf32>, tensor<640xf32>)
      outs(%e2 : tensor<24x640xf32>) {
    ^bb0(%x: f32, %s: f32, %q: f32, %g: f32, %b: f32, %y: f32):
      %mean = arith.divf %s, %count : f32
      %d = arith.subf %x, %mean : f32
      %variance = arith.divf %q, %count : f32
      %v = arith.addf %variance, %epsilon : f32
      %scale = math.rsqrt %v : f32
      %0 = arith.mulf %d, %scale : f32
      %1 = arith.mulf %0, %g : f32
      %2 = arith.addf %1, %b : f32
      linalg.yield %2 : f32
  } -> tensor<24x640xf32>
  return %r : tensor<24x640xf32>
}
"""


def _layer_norm(a: np.ndarray, gain: np.ndarray, bias: np.ndarray) -> np.ndarray:
    a = a.astype(np.float64)
    return (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 1e-5) * gain + bias


ELEMENTWISE = """\
#line = affine_map<(d0) -> (d0)>
func.func @main(%a: tensor<1000xf32>, %b: tensor<1000xf16>) -> (tensor<1000xf32>, tensor<1000xf16>) {
  %e = tensor.empty() : tensor<1000xf32>
  %h = tensor.empty() : tensor<1000xf16>
  %r:2 = linalg.generic {indexing_maps = [#line, #line, #line, #line], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<1000xf32>, tensor<1000xf16>) outs(%e, %h : tensor<1000xf32>, tensor<1000xf16>) {
    ^bb0(%x: f32, %y: f16, %o: f32, %p: f16):
      %0 = math.exp %x : f32
      %1 = math.erf %x : f32
      %2 = math.tanh %0 : f32
      %3 = math.sin %x : f32
      %4 = arith.divf %1, %2 : f32
      %5 = arith.addf %4, %3 : f32
      %6 = math.sqrt %0 : f32
      %7 = arith.mulf %5, %6 : f32
      %8 = arith.truncf %x : f32 to f16
      %9 = arith.divf %8, %y : f16
      linalg.yield %7, %9 : f32, f16
  } -> (tensor<1000xf32>, tensor<1000xf16>)
  return %r#0, %r#1 : tensor<1000xf32>, tensor<1000xf16>
}
"""


def _elementwise(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    wide = a.astype(np.float64)
    first = (np.vectorize(math.erf)(wide) / np.tanh(np.exp(wide)) + np.sin(wide)) * np.sqrt(np.exp(wide))
    return first, (a.astype(np.float16) / b).astype(np.float16)


REDUCTION = """\
func.func @main(%a: tensor<37x1000xf16>) -> tensor<37xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<37xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  %s = linalg.generic {
      indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<37x1000xf16>) outs(%f : tensor<37xf32>) {
    ^bb0(%x: f16, %y: f32):
      %0 = arith.extf %x : f16 to f32
      %1 = arith.addf %0, %y : f32
      linalg.yield %1 : f32
  } -> tensor<37xf32>
  return %s : tensor<37xf32>
}
"""

TRANSPOSE = """\
func.func @main(%a: tensor<3x70x50xf16>) -> tensor<50x3x70xf16> {
  %e = tensor.empty() : tensor<50x3x70xf16>
  %t = linalg.transpose ins(%a : tensor<3x70x50xf16>) outs(%e : tensor<50x3x70xf16>) permutation = [2, 0, 1]
  return %t : tensor<50x3x70xf16>
}
"""

GATHER = """\
func.func @main(%table: tensor<100x40xf16>, %rows: tensor<17xi64>) -> tensor<17x40xf16> {
  %e = tensor.empty() : tensor<17x40xf16>
  %g = linalg.generic {
      indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%rows : tensor<17xi64>) outs(%e : tensor<17x40xf16>) {
    ^bb0(%row: i64, %o: f16):
      %p = arith.index_cast %row : i64 to index
      %q = linalg.index 1 : index
      %v = tensor.extract %table[%p, %q] : tensor<100x40xf16>
      linalg.yield %v : f16
  } -> tensor<17x40xf16>
  return %g : tensor<17x40xf16>
}
"""

_HALF = np.float16
_QKV = ((2, 128, 64), (2, 192, 64), (2, 192, 64))
# Tolerances: f32 1e-5; half types an ulp of the largest result, and of the probabilities in attention.
CASES = (
    Case(
        "matmul_f16",
        _matmul_source(128, 64, 128, "f16", "f32"),
        _inputs(normal(128, 128, dtype=_HALF), normal(128, 64, dtype=_HALF)),
        _matmul,
        1e-5,
    ),
    Case("matmul_bf16", _matmul_source(64, 64, 96, "bf16", "f32"), _inputs(bf16(64, 96), bf16(96, 64)), _matmul, 1e-5),
    Case(
        "matmul_i8",
        _matmul_source(64, 64, 96, "i8", "i32"),
        _inputs(integers(-128, 128, 64, 96, dtype=np.int8), integers(-128, 128, 96, 64, dtype=np.int8)),
        _matmul,
        0,
    ),
    Case(
        "matmul_f32", _matmul_source(64, 64, 96, "f32", "f32"), _inputs(normal(64, 96), normal(96, 64)), _matmul, 1e-5
    ),
    Case(
        "matmul_that_fits_no_tile",
        _matmul_source(37, 29, 53, "f16", "f32"),
        _inputs(normal(37, 53, dtype=_HALF), normal(53, 29, dtype=_HALF)),
        _matmul,
        1e-5,
    ),
    Case(
        "convolution",
        CONVOLUTION,
        _inputs(normal(1, 10, 10, 32, dtype=_HALF), normal(3, 3, 32, 32, dtype=_HALF)),
        _convolution,
        2e-5,
    ),
    Case("softmax", SOFTMAX, _inputs(normal(48, 197, scale=3)), softmax, 1e-5),
    Case("layer_norm", LAYER_NORM, _inputs(normal(24, 640, scale=3), normal(640), normal(640)), _layer_norm, 1e-5),
    Case(
        "attention_64_f16",
        attention_source(2, 128, 192, 64, "f16"),
        _inputs(*(normal(*shape, dtype=_HALF) for shape in _QKV)),
        attention,
        1e-3,
    ),
    Case(
        "attention_128_f16",
        attention_source(1, 64, 128, 128, "f16"),
        _inputs(*(normal(1, rows, 128, dtype=_HALF) for rows in (64, 128, 128))),
        attention,
        2e-3,
    ),
    Case(
        "attention_64_bf16",
        attention_source(1, 64, 128, 64, "bf16"),
        _inputs(*(bf16(1, rows, 64) for rows in (64, 128, 128))),
        attention,
        1e-2,
    ),
    Case(
        "attention_64_f32",
        attention_source(1, 64, 64, 64, "f32"),
        _inputs(*(normal(1, 64, 64) for _ in range(3))),
        attention,
        1e-5,
    ),
    Case("elementwise", ELEMENTWISE, _inputs(normal(1000), normal(1000, dtype=_HALF)), _elementwise, 1e-5),
    Case("reduction", REDUCTION, _inputs(normal(37, 1000, dtype=_HALF)), lambda a: a.astype(np.float64).sum(1), 1e-5),
    Case("transpose", TRANSPOSE, _inputs(normal(3, 70, 50, dtype=_HALF)), lambda a: a.transpose(2, 0, 1), 0),
    Case(
        "gather",
        GATHER,
        _inputs(normal(100, 40, dtype=_HALF), integers(0, 100, 17)),
        lambda table, rows: table[rows],
        0,
    ),
)

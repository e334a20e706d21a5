# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of the stock compiler, simulated, against numpy."""

import numpy as np
import pytest

from prepass.checking.numerics import compare
from prepass.errors import PrepassError
from prepass.simulator import simulate

from .simulator_programs import CASES

# Four dispatches on two levels, a constant table, a fill, and a result that a later dispatch reads.
CHAIN = """\
func.func @main(%a: tensor<16x8xf32>, %rows: tensor<4xi64>) -> (tensor<16x8xf32>, tensor<4x8xf16>, tensor<16xf32>) {
  %row = arith.constant dense<[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.5]]> : tensor<1x8xf32>
  %table = arith.constant dense<TABLE> : tensor<32x8xf16>
  %half = util.unfoldable_constant dense<0.5> : tensor<16x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x8xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (0, d1)>,
                       affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%a, %row, %half : tensor<16x8xf32>, tensor<1x8xf32>, tensor<16x8xf32>) outs(%e : tensor<16x8xf32>) {
    ^bb0(%x: f32, %y: f32, %h: f32, %o: f32):
      %0 = arith.mulf %x, %y : f32
      %1 = arith.addf %0, %h : f32
      linalg.yield %1 : f32
  } -> tensor<16x8xf32>
  %barrier = util.optimization_barrier %r : tensor<16x8xf32>
  %e1 = tensor.empty() : tensor<16xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<16xf32>) -> tensor<16xf32>
  %s = linalg.reduce ins(%barrier : tensor<16x8xf32>) outs(%f1 : tensor<16xf32>) dimensions = [1]
    (%x: f32, %y: f32) {
      %0 = arith.addf %x, %y : f32
      linalg.yield %0 : f32
    }
  %e2 = tensor.empty() : tensor<4x8xf16>
  %g = linalg.generic {
      indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%rows : tensor<4xi64>) outs(%e2 : tensor<4x8xf16>) {
    ^bb0(%x: i64, %o: f16):
      %p = arith.index_cast %x : i64 to index
      %q = linalg.index 1 : index
      %v = tensor.extract %table[%p, %q] : tensor<32x8xf16>
      linalg.yield %v : f16
  } -> tensor<4x8xf16>
  return %barrier, %g, %s : tensor<16x8xf32>, tensor<4x8xf16>, tensor<16xf32>
}
"""


@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_against_numpy(case, level):
    inputs = case.inputs(np.random.default_rng(7))
    flags = [] if level == "O0" else [f"--iree-opt-level={level}"]
    results = simulate(case.source, inputs, flags=flags)
    expected = case.reference(*inputs)
    difference = compare(results, expected if isinstance(expected, tuple) else (expected,))
    assert difference.within(case.tolerance), difference


def test_several_dispatches_and_constants():
    table = np.arange(256).reshape(32, 8)
    text = str([[float(number) for number in row] for row in table])
    a = np.random.default_rng(1).standard_normal((16, 8)).astype(np.float32)
    rows = np.array([3, 0, 31, 7])
    result, gathered, sums = simulate(CHAIN.replace("TABLE", text), [a, rows])
    expected = a.astype(np.float64) * [1, 2, 3, 4, 5, 6, 7, 8.5] + 0.5
    assert compare([result, gathered, sums], [expected, table[rows], expected.sum(1)]).within(1e-5)


DYNAMIC = """\
func.func @main(%a: tensor<?x64xf32>, %b: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %0 = arith.addf %a, %b : tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}
"""


@pytest.mark.parametrize("rows", [1, 37])
def test_dynamic_shape(rows):
    a, b = np.random.default_rng(rows).standard_normal((2, rows, 64)).astype(np.float32)
    (result,) = simulate(DYNAMIC, [a, b])
    assert compare([result], [a + b]).within(0)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([np.zeros((3, 64), np.float32)], "takes 2 inputs, not 1"),
        ([np.zeros((3, 32), np.float32)] * 2, "has the shape"),
        ([np.zeros((3, 64), np.float16)] * 2, "of type f32, not f16"),
        ([np.zeros((3, 64), np.complex64)] * 2, "complex64 are not supported"),
    ],
)
def test_wrong_inputs(inputs, message):
    with pytest.raises(PrepassError, match=message):
        simulate(DYNAMIC, inputs)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bytes and operations of single ops, against what one counts by hand."""

import pytest
from iree.compiler import ir

from prepass.analysis.costs import Cost, is_convolution, is_matrix_op, op_cost, tensor_bytes, total
from prepass.ir.match import find_ops

MATMUL = """\
func.func @f(%a: tensor<8x16xf16>, %b: tensor<16x32xf16>) -> tensor<8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x32xf32>) -> tensor<8x32xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<8x16xf16>, tensor<16x32xf16>)
      outs(%init : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}
"""
ONTO = """\
func.func @f(%a: tensor<8x16xf16>, %b: tensor<16x32xf16>, %c: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<8x16xf16>, tensor<16x32xf16>) outs(%c : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}
"""
CONVOLUTION = """\
func.func @f(%x: tensor<1x4x10x10xf32>, %w: tensor<8x4x3x3xf32>, %c: tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32> {
  %0 = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x4x10x10xf32>, tensor<8x4x3x3xf32>)
      outs(%c : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
  return %0 : tensor<1x8x8x8xf32>
}
"""
ROWS = "affine_map<(d0, d1) -> (d0)>"
BOTH = "affine_map<(d0, d1) -> (d0, d1)>"
SQUARES = f"""\
func.func @f(%x: tensor<8x64xf32>, %init: tensor<8xf32>) -> tensor<8xf32> {{
  %0 = linalg.generic {{indexing_maps = [{BOTH}, {ROWS}], iterator_types = ["parallel", "reduction"]}}
      ins(%x : tensor<8x64xf32>) outs(%init : tensor<8xf32>) {{
  ^bb0(%in: f32, %out: f32):
    %1 = arith.mulf %in, %in : f32
    %2 = arith.addf %out, %1 : f32
    linalg.yield %2 : f32
  }} -> tensor<8xf32>
  return %0 : tensor<8xf32>
}}
"""
LOOKUP = f"""\
func.func @f(%table: tensor<1000x64xf16>, %ids: tensor<7xi64>) -> tensor<7x64xf16> {{
  %empty = tensor.empty() : tensor<7x64xf16>
  %0 = linalg.generic {{indexing_maps = [{ROWS}, {BOTH}], iterator_types = ["parallel", "parallel"]}}
      ins(%ids : tensor<7xi64>) outs(%empty : tensor<7x64xf16>) {{
  ^bb0(%id: i64, %out: f16):
    %row = arith.index_cast %id : i64 to index
    %column = linalg.index 1 : index
    %element = tensor.extract %table[%row, %column] : tensor<1000x64xf16>
    linalg.yield %element : f16
  }} -> tensor<7x64xf16>
  return %0 : tensor<7x64xf16>
}}
"""
ATTENTION = """\
func.func @f(%q: tensor<2x77x64xf16>, %k: tensor<2x99x64xf16>, %v: tensor<2x99x32xf16>, %s: f16)
    -> tensor<2x77x32xf16> {
  %empty = tensor.empty() : tensor<2x77x32xf16>
  %0 = iree_linalg_ext.attention <{indexing_maps = [
      affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d3)>,
      affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2)>, affine_map<(d0, d1, d2, d3, d4) -> ()>,
      affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>]}>
      ins(%q, %k, %v, %s : tensor<2x77x64xf16>, tensor<2x99x64xf16>, tensor<2x99x32xf16>, f16)
      outs(%empty : tensor<2x77x32xf16>) {
  ^bb0(%score: f32):
    iree_linalg_ext.yield %score : f32
  } -> tensor<2x77x32xf16>
  return %0 : tensor<2x77x32xf16>
}
"""
CASES = {
    "a fill is not read": (MATMUL, "linalg.matmul", Cost(8 * 16 * 2 + 16 * 32 * 2, 8 * 32 * 4, 2 * 8 * 16 * 32)),
    "an accumulator is": (ONTO, "linalg.matmul", Cost(8 * 16 * 2 + 16 * 32 * 2 + 1024, 1024, 2 * 8 * 16 * 32)),
    "convolution": (
        CONVOLUTION,
        "linalg.conv_2d_nchw_fchw",
        Cost(4 * (400 + 288 + 512), 4 * 512, 2 * 8 * 64 * 4 * 9),
    ),
    "a sum of squares is for vector units": (SQUARES, "linalg.generic", Cost(8 * 64 * 4 + 32, 32, 0, 2 * 8 * 64)),
    "a lookup reads rows": (LOOKUP, "linalg.generic", Cost(7 * 8 + 7 * 64 * 2, 7 * 64 * 2)),
    "attention": (
        ATTENTION,
        "iree_linalg_ext.attention",
        Cost(2 * (77 * 64 + 99 * 64 + 99 * 32) * 2, 2 * 77 * 32 * 2, 2 * 2 * 77 * 99 * (64 + 32), 5 * 2 * 77 * 99),
    ),
}


def only(context, text, name):
    module = ir.Module.parse(text, context)
    (op,) = find_ops(module.operation, lambda op: op.name == name)
    return module, op


@pytest.mark.parametrize(("text", "name", "expected"), CASES.values(), ids=CASES)
def test_the_cost_of_an_op(context, text, name, expected):
    _module, op = only(context, text, name)
    with context:
        assert op_cost(op) == expected


DYNAMIC = """\
func.func @f(%a: tensor<?x16xf16>, %b: tensor<16x32xf16>, %c: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<?x16xf16>, tensor<16x32xf16>) outs(%c : tensor<?x32xf32>) -> tensor<?x32xf32>
  return %0 : tensor<?x32xf32>
}
"""


def test_a_dynamic_size_counts_once_and_is_told(context):
    _module, op = only(context, DYNAMIC, "linalg.matmul")
    with context:
        cost = op_cost(op)
        assert not cost.exact
        assert cost.matrix_flops == 2 * 16 * 32
        assert not total([cost, Cost(1)]).exact


def test_matrix_ops(context):
    found = {}
    for text, name in (
        (MATMUL, "linalg.matmul"),
        (CONVOLUTION, "linalg.conv_2d_nchw_fchw"),
        (SQUARES, "linalg.generic"),
    ):
        _module, op = only(context, text, name)
        with context:
            found[name] = is_matrix_op(op), is_convolution(op)
    assert found == {
        "linalg.matmul": (True, False),
        "linalg.conv_2d_nchw_fchw": (True, True),
        "linalg.generic": (False, False),
    }


@pytest.mark.parametrize(
    ("text", "count"),
    [("tensor<3xi1>", 3), ("tensor<5xi4>", 3), ("tensor<2x?xf16>", 4), ("tensor<2xcomplex<f32>>", 16), ("f32", 0)],
)
def test_bytes_of_types(context, text, count):
    assert tensor_bytes(ir.Type.parse(text, context)) == count

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of single ops and bytes of types, against what one counts by hand."""

import pytest
from iree.compiler import ir

from prepass.analysis.costs import Cost, captured_bytes, is_convolution, is_matrix_op, op_flops, tensor_bytes, total
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
    "contraction": (MATMUL, "linalg.matmul", (2 * 8 * 16 * 32, 0)),
    "convolution": (CONVOLUTION, "linalg.conv_2d_nchw_fchw", (2 * 8 * 64 * 4 * 9, 0)),
    "a sum of squares is for vector units": (SQUARES, "linalg.generic", (0, 2 * 8 * 64)),
    "a lookup computes nothing": (LOOKUP, "linalg.generic", (0, 0)),
    "attention": (ATTENTION, "iree_linalg_ext.attention", (2 * 2 * 77 * 99 * (64 + 32), 5 * 2 * 77 * 99)),
}


def only(context, text, name):
    module = ir.Module.parse(text, context)
    (op,) = find_ops(module.operation, lambda op: op.name == name)
    return module, op


@pytest.mark.parametrize(("text", "name", "expected"), CASES.values(), ids=CASES)
def test_operations(context, text, name, expected):
    _module, op = only(context, text, name)
    with context:
        assert op_flops(op) == expected


@pytest.mark.parametrize(("rows", "expected"), [("1000", 7 * 64 * 2), ("3", 3 * 64 * 2)])
def test_a_lookup_reads_its_rows_and_at_most_the_table(context, rows, expected):
    _module, op = only(context, LOOKUP.replace("tensor<1000x", f"tensor<{rows}x"), "linalg.generic")
    with context:
        assert captured_bytes(op) == expected


DYNAMIC = """\
func.func @f(%a: tensor<?x16xf16>, %b: tensor<16x32xf16>, %c: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<?x16xf16>, tensor<16x32xf16>) outs(%c : tensor<?x32xf32>) -> tensor<?x32xf32>
  return %0 : tensor<?x32xf32>
}
"""


def test_a_dynamic_size_counts_once(context):
    _module, op = only(context, DYNAMIC, "linalg.matmul")
    with context:
        assert op_flops(op) == (2 * 16 * 32, 0)


def test_a_sum_is_exact_where_all_its_parts_are():
    assert total([Cost(1), Cost(2, 3)]) == Cost(3, 3)
    assert not total([Cost(1), Cost(2, exact=False)]).exact


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

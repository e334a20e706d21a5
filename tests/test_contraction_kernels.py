# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels for matrix products that go through LDS: in the simulator against numpy and IREE's own code."""

import numpy as np
import pytest

import prepass
from prepass.analysis.kernel_costs import STOCK, price_example
from prepass.kernels.contraction.examples import linear_layer
from prepass.kernels.contraction.skinny_matmul import SKINNY_MATMUL
from prepass.kernels.contraction.staged_matmul import STAGED_MATMUL
from prepass.simulator import compile_program, run_program, simulate

from .conftest import GFX942
from .convolution_kernel_cases import TOLERANCE, relative_error

# IREE itself takes instructions of 16x16 for these.
OURS = "v_mfma_f32_32x32x8"


def layer_inputs(rows, terms, columns, element):
    random = np.random.default_rng(rows + columns)
    values = [random.standard_normal(shape).astype(np.float32) for shape in ((rows, terms), (columns, terms), columns)]
    if element == "f16":
        return [value.astype(np.float16) for value in values]
    return [(value.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32) for value in values]


def reference(inputs):
    rows, weights, bias = (value.astype(np.float64) for value in inputs)
    return rows @ weights.T + bias


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize(
    ("kernel", "sizes"),
    [
        ("skinny-matmul", (77, 256, 96)),
        ("skinny-matmul", (17, 320, 40)),  # 64 terms at a time; columns that end in a tile
        ("skinny-matmul", (160, 256, 32)),
        ("skinny-matmul", (154, 448, 100)),
        ("staged-matmul", (130, 96, 130)),
        ("staged-matmul", (64, 48, 64)),
    ],
)
def test_against_numpy(kernel, sizes, element):
    inputs = layer_inputs(*sizes, element)
    program = compile_program(linear_layer(*sizes, element=element).source, kernels=kernel)
    assert OURS in program.assembly[0]
    (result,) = run_program(program, inputs)
    assert relative_error(result, reference(inputs)) <= TOLERANCE[element]


@pytest.mark.parametrize("sizes", [(77, 256, 2304), (77, 256, 64)])
def test_against_the_stock_compile(sizes):
    inputs = layer_inputs(*sizes, "f16")
    source = linear_layer(*sizes).source
    (result,), (stock,) = (simulate(source, inputs, kernels=kernels) for kernels in ("skinny-matmul", "none"))
    assert relative_error(result, stock.astype(np.float64)) <= TOLERANCE["f16"]


def heads(rows, terms, count, channels):
    """A projection of which each head is apart, as attention reads it."""
    x, w = f"tensor<{rows}x{terms}xf16>", f"tensor<{count}x{channels}x{terms}xf16>"
    sums, result = (f"tensor<{count}x{rows}x{channels}x{element}>" for element in ("f32", "f16"))
    return f"""\
func.func @main(%x: {x}, %w: {w}) -> {result} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {sums}
  %f = linalg.fill ins(%zero : f32) outs(%e : {sums}) -> {sums}
  %s = linalg.generic {{indexing_maps = [affine_map<(h, m, n, k) -> (m, k)>, affine_map<(h, m, n, k) -> (h, n, k)>,
      affine_map<(h, m, n, k) -> (h, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}}
      ins(%x, %w : {x}, {w}) outs(%f : {sums}) {{
  ^bb0(%a: f16, %b: f16, %o: f32):
    %c = arith.extf %a : f16 to f32
    %d = arith.extf %b : f16 to f32
    %p = arith.mulf %c, %d : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  }} -> {sums}
  %n = tensor.empty() : {result}
  %r = linalg.generic {{indexing_maps = [affine_map<(h, m, n) -> (h, m, n)>, affine_map<(h, m, n) -> (h, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel"]}} ins(%s : {sums}) outs(%n : {result}) {{
  ^bb0(%a: f32, %o: f16):
    %t = arith.truncf %a : f32 to f16
    linalg.yield %t : f16
  }} -> {result}
  return %r : {result}
}}
"""


def remarks_of(source, kernel="skinny-matmul"):
    found = []
    prepass.compile(source, flags=GFX942, kernels=kernel, on_remark=lambda remark, _: found.append(remark.message))
    return found


def vector_product(rows, columns, terms):
    """Sums of products of operands with these dims beside the terms; None where there is no such dim."""
    loops = [(name, size) for name, size in (("m", rows), ("n", columns)) if size is not None]

    def dims(*of):
        return ", ".join(name for name, _ in [*loops, ("k", terms)] if name in of)

    def tensor(element, *of):
        return f"tensor<{''.join(f'{size}x' for name, size in [*loops, ('k', terms)] if name in of)}{element}>"

    loop_names = dims("m", "n", "k")
    maps = ", ".join(f"affine_map<({loop_names}) -> ({dims(*of)})>" for of in ("mk", "nk", "mn"))
    kinds = ", ".join(['"parallel"'] * len(loops) + ['"reduction"'])
    x, w, sums = tensor("f16", "m", "k"), tensor("f16", "n", "k"), tensor("f32", "m", "n")
    return f"""\
func.func @main(%x: {x}, %w: {w}) -> {sums} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {sums}
  %f = linalg.fill ins(%zero : f32) outs(%e : {sums}) -> {sums}
  %s = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
      ins(%x, %w : {x}, {w}) outs(%f : {sums}) {{
  ^bb0(%a: f16, %b: f16, %o: f32):
    %c = arith.extf %a : f16 to f32
    %d = arith.extf %b : f16 to f32
    %p = arith.mulf %c, %d : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  }} -> {sums}
  return %s : {sums}
}}
"""


@pytest.mark.parametrize("kernel", ["skinny-matmul", "staged-matmul"])
@pytest.mark.parametrize(("rows", "columns"), [(None, 128), (128, None), (None, None)])
def test_products_of_vectors_are_left_alone(kernel, rows, columns):
    remarks = remarks_of(vector_product(rows, columns, 256), kernel)
    assert remarks == [f"{kernel}: image or filters have no dim but the channels"]


def test_heads_apart():
    rows, weights, _ = layer_inputs(50, 256, 6 * 24, "f16")
    program = compile_program(heads(50, 256, 6, 24), kernels="skinny-matmul")
    assert OURS in program.assembly[0]
    (result,) = run_program(program, [rows, weights.reshape(6, 24, 256)])
    expected = np.moveaxis((rows.astype(np.float64) @ weights.astype(np.float64).T).reshape(50, 6, 24), 1, 0)
    assert relative_error(result, expected) <= TOLERANCE["f16"]


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ((16, 256, 64), "there are 16 rows, not 17 to 160"),
        ((161, 256, 64), "there are 161 rows, not 17 to 160"),
        ((77, 192, 64), "C is 192, less than 256"),
        ((77, 288, 64), "C is 288, not a multiple of 64"),
        ((77, 256, 31), "F is 31, less than a tile has"),
        ((160, 256, 4096), "320 workgroups are more than there are CUs"),
    ],
)
def test_each_reason_to_leave_few_rows_alone(sizes, reason):
    assert remarks_of(linear_layer(*sizes).source) == [f"skinny-matmul: {reason}"]


def test_heads_that_vectors_would_cross_are_left_alone():
    (remark,) = remarks_of(heads(50, 256, 6, 20))
    assert remark == "skinny-matmul: the innermost channels are 20, not a multiple of 8"


@pytest.mark.parametrize("sizes", [(17, 256, 9000), (77, 256, 640), (160, 1280, 1280)])
def test_few_rows_take_less_time_than_iree_s(sizes):
    priced = price_example(SKINNY_MATMUL, linear_layer(*sizes))
    ours, stock = priced["skinny-matmul"].workgroup, priced[STOCK].workgroup
    assert ours.busiest_cu_cycles < stock.busiest_cu_cycles


def test_many_rows_take_no_more_time_than_iree_s():
    priced = price_example(STAGED_MATMUL, linear_layer(2048, 320, 640))
    ours, stock = priced["staged-matmul"], priced[STOCK]
    assert ours.workgroup.busiest_cu_cycles <= stock.workgroup.busiest_cu_cycles
    assert ours.figures.spills == 0

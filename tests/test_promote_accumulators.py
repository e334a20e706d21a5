# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-promote-accumulators`: norms and sums are right in f16 and bf16, and all contractions compile for gfx942."""

import numpy as np
import pytest

import prepass
from prepass.amdgpu.inputs import compile_to_assembly
from prepass.checking.numerics import compare

from .conftest import GFX942, LLVM_CPU
from .contraction_forms import FORMS
from .dispatches import cost
from .norm_cases import NORM_CASES

PIPELINE = "builtin.module(prepass-promote-accumulators)"

# Relative to the largest result: four roundings to f16, of eleven bits, and to bf16, of eight.
TOLERANCES = {"f16": 2e-3, "bf16": 1.6e-2}
# At std 300 the variance and at mean 1000 the sum of squares of few numbers are beyond f16.
DISTRIBUTIONS = [(0, 1), (20, 20), (20, 0.1), (1000, 300)]


def relative_error(program, case, element, mean, std):
    inputs = case.inputs(element, mean, std)
    expected = case.expected(element, inputs)
    (result,) = prepass.run(program, *inputs)
    difference = compare([np.asarray(result)], [expected])
    assert difference.nan_mismatches == 0
    return difference.largest / max(np.abs(expected[np.isfinite(expected)]).max(initial=0), 1e-30)


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("case", NORM_CASES, ids=str)
def test_norms_are_right_where_half_precision_sums_are_not(case, element):
    program = prepass.compile(case.module(element), pipeline=PIPELINE, flags=(*LLVM_CPU, "--iree-opt-level=O2"))
    for mean, std in DISTRIBUTIONS:
        error = relative_error(program, case, element, mean, std)
        assert error <= TOLERANCES[element], (mean, std, error)


def test_without_the_pass_a_layer_norm_is_wrong():
    case = next(case for case in NORM_CASES if case.name == "layer_norm")
    program = prepass.compile(case.module("f16"), flags=(*LLVM_CPU, "--iree-opt-level=O2"))
    assert relative_error(program, case, "f16", 0, 20) > 0.9


@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize("case", NORM_CASES, ids=str)
def test_no_norm_costs_a_dispatch_or_memory(case, level):
    stock, ours = (cost(case.module("f16"), pipeline, level) for pipeline in (None, PIPELINE))
    assert ours.dispatches <= stock.dispatches
    # A mean in f32 takes two bytes more than one in f16.
    assert ours.transient_bytes <= stock.transient_bytes + 256


@pytest.mark.parametrize("element", ["f16", "bf16", "i8"])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_contractions_compile_for_gfx942(form, element):
    kernels = compile_to_assembly(form.module(element), pipeline=PIPELINE, flags=(*GFX942, "--iree-opt-level=O3"))
    assert len(kernels) == 1
    assert bool(kernels[0].counts.mfmas) == form.mfma
    assert kernels[0].spills == 0


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("form", [form for form in FORMS if form.einsum], ids=lambda form: form.name)
def test_contractions_are_right(form, element):
    program = prepass.compile(form.module(element), pipeline=PIPELINE, flags=LLVM_CPU)
    inputs = form.inputs(element)
    expected = np.einsum(form.einsum, *(array.astype(np.float64) for array in inputs))
    difference = compare(prepass.run(program, *inputs), [expected])
    assert difference.within(np.abs(expected).max() * TOLERANCES[element] / 2), difference


@pytest.mark.parametrize("form", [form for form in FORMS if form.einsum], ids=lambda form: form.name)
def test_integers_wrap_around_as_before(form):
    program = prepass.compile(form.module("i8"), pipeline=PIPELINE, flags=LLVM_CPU)
    inputs = form.inputs("i8")
    exact = np.einsum(form.einsum, *(array.astype(np.int64) for array in inputs))
    (result,) = prepass.run(program, *inputs)
    np.testing.assert_array_equal(result, exact.astype(np.int8))


def test_a_dynamic_mean():
    module = """\
func.func @main(%x: tensor<?x?xf16>) -> tensor<?xf16> {
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf16>
  %n = tensor.dim %x, %c1 : tensor<?x?xf16>
  %n64 = arith.index_cast %n : index to i64
  %count = arith.sitofp %n64 : i64 to f16
  %empty = tensor.empty(%m) : tensor<?xf16>
  %fill = linalg.fill ins(%zero : f16) outs(%empty : tensor<?xf16>) -> tensor<?xf16>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x?xf16>) outs(%fill : tensor<?xf16>) {
  ^bb0(%in: f16, %acc: f16):
    %s = arith.addf %in, %acc : f16
    linalg.yield %s : f16
  } -> tensor<?xf16>
  %mean = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%sum : tensor<?xf16>) outs(%empty : tensor<?xf16>) {
  ^bb0(%in: f16, %out: f16):
    %d = arith.divf %in, %count : f16
    linalg.yield %d : f16
  } -> tensor<?xf16>
  return %mean : tensor<?xf16>
}
"""
    program = prepass.compile(module, pipeline=PIPELINE, flags=LLVM_CPU)
    x = np.full((3, 70000), 20.0, np.float16)
    (result,) = prepass.run(program, x)
    np.testing.assert_array_equal(result, np.full(3, 20.0, np.float16))

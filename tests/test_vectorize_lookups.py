# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-vectorize-lookups` keeps results, and loads rows in wide loads on gfx942."""

import numpy as np
import pytest

import prepass
from prepass.amdgpu.inputs import compile_to_assembly
from prepass.checking.numerics import compare
from prepass.ir.match import walk_ops

from .conftest import GFX942, LLVM_CPU
from .lookup_cases import LookupCase

PIPELINE = "builtin.module(prepass-strip-assertions,prepass-vectorize-lookups)"
WITH_RANGES = (
    "builtin.module(prepass-strip-assertions{mode=assume},util.func(iree-util-optimize-int-arithmetic,canonicalize),"
    "prepass-vectorize-lookups)"
)
SCALAR = "builtin.module(prepass-strip-assertions,prepass-vectorize-lookups{form=scalar})"

# The rows, less their sum.
REDUCED = """\
  %float0 = arith.constant 0.0 : f32
  %sums = tensor.empty() : tensor<80xf32>
  %fill = linalg.fill ins(%float0 : f32) outs(%sums : tensor<80xf32>) -> tensor<80xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%found : tensor<80x768xf16>) outs(%fill : tensor<80xf32>) {
  ^bb0(%x: f16, %acc: f32):
    %wide = arith.extf %x : f16 to f32
    %next = arith.addf %wide, %acc : f32
    linalg.yield %next : f32
  } -> tensor<80xf32>
  %result = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%found, %sum : tensor<80x768xf16>, tensor<80xf32>) outs(%init : tensor<80x768xf16>) {
  ^bb0(%x: f16, %y: f32, %out: f16):
    %wide = arith.extf %x : f16 to f32
    %less = arith.subf %wide, %y : f32
    %narrow = arith.truncf %less : f32 to f16
    linalg.yield %narrow : f16
  } -> tensor<80x768xf16>
"""

CASES = [
    LookupCase(),
    LookupCase(ids="i32", element="f16"),
    LookupCase(dynamic=True),
    LookupCase(dynamic=True, ids="i32", element="f16", columns=33),
    LookupCase(asserted=False),
    LookupCase(fix_up=True),
    LookupCase(rows=1, columns=1),
    LookupCase(ids="i8", rows=127),
]


@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize("pipeline", [PIPELINE, WITH_RANGES, SCALAR], ids=["auto", "ranges", "scalar"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_results_stay_the_same(case, pipeline, level):
    flags = (*LLVM_CPU, f"--iree-opt-level={level}")
    gathers = []
    hooks = {"preprocessing": lambda module: gathers.extend(map(str, walk_ops(module, "iree_linalg_ext.gather")))}
    program = prepass.compile(case.module(), pipeline=pipeline, flags=flags, hooks=hooks)
    # The row of a fix-up is computed, unless ranges show that it is not needed; rows of one number are no rows.
    assert len(gathers) == (pipeline != SCALAR and not (case.fix_up and pipeline == PIPELINE) and case.columns > 1)
    table, ids = case.inputs()
    (result,) = prepass.run(program, table, ids)
    np.testing.assert_array_equal(result, table[ids])


@pytest.mark.parametrize("level", ["O0", "O3"])
def test_a_reduction_of_rows_stays_the_same(level):
    case = LookupCase(count=80, columns=768, element="f16", tail=REDUCED)
    program = prepass.compile(case.module(), pipeline=PIPELINE, flags=(*LLVM_CPU, f"--iree-opt-level={level}"))
    table, ids = case.inputs()
    rows = table[ids].astype(np.float32)
    difference = compare(prepass.run(program, table, ids), [(rows - rows.sum(1, keepdims=True)).astype(np.float16)])
    assert difference.within(0.1), difference


def form(tail: str = "") -> str:
    """The form that gfx942 gets."""
    found = []

    def look(module):
        found.extend(name for name in ("iree_linalg_ext.gather", "util.assume.int") if walk_ops(module, name))

    prepass.compile(
        LookupCase(count=80, columns=768, element="f16", tail=tail).module(),
        pipeline=PIPELINE,
        flags=GFX942,
        hooks={"preprocessing": look},
    )
    return " ".join(found)


def test_gfx942_gets_a_gather_only_where_a_tiled_op_reads_the_rows():
    assert form() == "util.assume.int"
    assert form("  %result = arith.addf %found, %found : tensor<80x768xf16>\n") == "util.assume.int"
    assert form(REDUCED) == "iree_linalg_ext.gather"


def test_gfx942_loads_whole_rows():
    source = LookupCase(rows=49408, columns=768, count=128, element="f16").module()
    (stock,) = compile_to_assembly(source, flags=GFX942)
    assert stock.counts.accesses_of("load", width=2) == 8
    (kernel,) = compile_to_assembly(source, pipeline=PIPELINE, flags=GFX942)
    assert kernel.counts.accesses_of("load", width=16) == 1
    assert kernel.counts.accesses_of("load", width=2) == 0
    assert kernel.counts.total <= 40 < stock.counts.total


def test_gfx942_loads_whole_rows_into_a_reduction():
    source = LookupCase(rows=49408, columns=768, count=80, element="f16", tail=REDUCED).module()
    flags = (*GFX942, "--iree-opt-level=O3")
    (kernel,) = compile_to_assembly(source, pipeline=PIPELINE, flags=flags)
    assert kernel.counts.accesses_of("load", width=2) == kernel.counts.accesses_of("load", "scratch") == 0
    # What the pass is there to prevent: each thread copies the row to memory of its own.
    (scalar,) = compile_to_assembly(source, pipeline=SCALAR, flags=flags)
    assert scalar.counts.accesses_of("load", "scratch") > 0


def test_a_small_clip_stays_the_same(corpus):
    path = corpus / "attention" / "hf" / "clip_text.mlir"
    arrays = np.load(path.with_suffix(".npz"))
    inputs = [arrays[name] for name in sorted(arrays) if name.startswith("in")]
    program = prepass.compile(path, pipeline=PIPELINE, flags=(*LLVM_CPU, "--iree-opt-level=O3"), start="abi")
    np.testing.assert_allclose(prepass.run(program, *inputs)[0], arrays["out0"], atol=1e-4)

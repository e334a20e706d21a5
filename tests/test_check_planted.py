# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-check` finds an error planted in any pass whose rewrites a CPU can run, and names pass and op."""

import re
from pathlib import Path

import pytest
from iree.compiler import ir
from iree.compiler.api import Session

from prepass.ir.targets import Target
from prepass.passes import PASSES
from prepass.pipeline.base import PREPROCESSING, RemarkKind
from prepass.pipeline.control import Control
from prepass.pipeline.manager import run_pipeline
from prepass.pipeline.registry import default_registry
from prepass.pipeline.resolve import resolve_pipeline
from prepass.tools.split import split_source

from .test_check import planted

LIT = Path(__file__).resolve().parent.parent / "lit_tests" / "passes"
LOOKUP = """
func.func @main(%table: tensor<10x4xf32>, %rows: tensor<3xi64>) -> tensor<3x4xf32> {
  %e = tensor.empty() : tensor<3x4xf32>
  %found = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%rows : tensor<3xi64>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%row: i64, %o: f32):
    %c0 = arith.constant 0 : i64
    %positive = arith.cmpi sge, %row, %c0 : i64
    cf.assert %positive, "too small"
    %i = arith.index_cast %row : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %table[%i, %j] : tensor<10x4xf32>
    linalg.yield %v : f32
  } -> tensor<3x4xf32>
  return %found : tensor<3x4xf32>
}
"""
# Without the assertion, behind which a lookup is left alone.
ROWS = "\n".join(line for line in LOOKUP.splitlines() if "cf.assert" not in line and "%positive" not in line)
CONSTANTS = """
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = arith.constant dense_resource<a> : tensor<2xf32>
  %b = arith.constant dense_resource<b> : tensor<2xf32>
  %0 = arith.addf %x, %a : tensor<2xf32>
  %1 = arith.mulf %0, %b : tensor<2xf32>
  return %1 : tensor<2xf32>
}
{-# dialect_resources: { builtin: { a: "0x040000000000803F00000040", b: "0x040000000000803F00000040" } } #-}
"""
CONVOLUTION = """
func.func @main(%x: tensor<1x6x66x320xf16>, %w: tensor<1x3x3x320xf16>) -> tensor<1x4x64x1xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x64x1xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x64x1xf32>) -> tensor<1x4x64x1xf32>
  %conv = linalg.conv_2d_nhwc_fhwc ins(%x, %w : tensor<1x6x66x320xf16>, tensor<1x3x3x320xf16>)
      outs(%init : tensor<1x4x64x1xf32>) -> tensor<1x4x64x1xf32>
  return %conv : tensor<1x4x64x1xf32>
}
"""
# A module, or a function of the pass's lit file, and the target that is rewritten for where the CPU is left alone.
CASES = {
    "decompose-transposed-convolutions": ("kernel_3_of_one_dim", ""),
    "fold-padding": ("chain", ""),
    "merge-constants": (CONSTANTS, ""),
    "strip-assertions": (LOOKUP, ""),
    "guard-padding": ("depthwise", "gfx942"),
    "pad-input-channels": ("as_it_is", "gfx942"),
    "pad-output-channels": (CONVOLUTION, "gfx942"),
    "unfold-patches": ("last", ""),
    "vectorize-lookups": (ROWS, ""),
    "canonicalize-rope": ("halves", ""),
    "configure-attention": ("main", ""),
    "decompose-attention": ("unmasked", ""),
    "transpose-attention-keys": ("channels_innermost", ""),
    "pad-attention-keys": ("broadcast_mask", "gfx942"),
    "promote-accumulators": ("generic", ""),
    "simplify-casts": ("trailing", ""),
    "split-gated-projections": ("gated", ""),
    "fold-unit-dims": ("reduction", ""),
    "fold-contraction-layouts": ("dynamic", "gfx942"),
    "fuse-horizontal-contractions": ("time_embeddings", "gfx942"),
    "raise-attention": ("scale", ""),
    "fuse-query-rope{fuse=always}": ("halves", "gfx942"),
    "transpose-convolutions": ("after", ""),
}
# The compiler sorts constants before passes run, so that it is the other one that is replaced.
PLACES = {"merge-constants": "3:8"}


def module_of(case, stem):
    """A case's module, and the function that is called."""
    if "func.func" in case:
        return case, "main"
    text = (LIT / f"{stem.replace('-', '_')}.mlir").read_bytes()
    found = [
        part.decode() for part in split_source(text) if re.search(rf"\n *(?:util|func)\.func.*@{case}\(".encode(), part)
    ]
    assert found, f"'{case}' is not in the lit file of {stem}"
    return found[0], case


def first_rewrite(path, name, rewrite_for):
    """The function that a pass rewrites first, and where."""
    context = Session().context
    with context, ir.Location.unknown():
        module = ir.Module.parseFile(str(path))
        pipeline = resolve_pipeline(f"builtin.module({name})", default_registry(), context)
        control = Control(target=Target("rocm", rewrite_for) if rewrite_for else Target("llvm-cpu", "", 64))
        found = []

        def on_remark(remark, _):
            if remark.kind is RemarkKind.APPLIED:
                found.append(remark)

        run_pipeline(pipeline, module.operation, control=control, on_remark=on_remark)
    line = int(found[0].location.split(":")[-2])
    before = path.read_text().splitlines()[:line]
    return re.findall(r"^ *(?:util|func)\.func.*?@(\w+)\(", "\n".join(before), re.MULTILINE)[-1], found[0].location


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_an_error_in_any_pass_is_found(name, tmp_path, program):
    case, rewrite_for = CASES[name]
    path = tmp_path / "case.mlir"
    stem = name.partition("{")[0]
    text, called = module_of(case, stem)
    path.write_text(text)
    function, location = first_rewrite(path, f"prepass-{name}", rewrite_for)
    assert function == called
    flags = [f"--function={function}", *([f"--rewrite-for={rewrite_for}"] if rewrite_for else [])]
    lines, command = planted(program, path, tmp_path, f"planted-{name},cse", *flags)
    where = next(number for number, line in enumerate(lines) if line.startswith("first difference"))
    assert lines[where].startswith(f"first difference: planted-{stem}, rewrite 1 of "), lines
    place = f"{path}:{PLACES[name]}" if name in PLACES else location
    assert lines[where + 1].startswith(f"  {place}: "), lines
    assert command.startswith(f"prepass-check {tmp_path / 'out' / 'reproducer.mlir'} ")


def test_only_passes_whose_rewrites_are_code_for_gfx942_are_left_out():
    covered = {name.partition("{")[0] for name in CASES}
    left_out = {name for name in PASSES if name.removeprefix("prepass-") not in covered}
    assert left_out == {
        "prepass-configure-rope",
        "prepass-configure-contractions",
        "prepass-configure-convolutions",
        "prepass-configure-reductions",
        "prepass-select-kernels",
    }
    assert PREPROCESSING not in {default_registry().find_pass(name).phase for name in left_out}

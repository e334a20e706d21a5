# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-stats`: counts, traffic and rooflines, and baselines."""

import json
import math
import os
import signal
import sys

import pytest

from prepass.amdgpu.machine import GFX942
from prepass.analysis.roofline import roofline_seconds
from prepass.checking.baseline import Baseline, baseline_text, compare_with_baseline, read_baseline
from prepass.checking.child import ChildCrash, call_in_child
from prepass.checking.statistics import ProgramStatistics, measure
from prepass.checking.statistics_report import groups_of
from prepass.errors import PrepassError
from prepass.tools.main import main as prepass_main
from prepass.tools.stats import main

from .conftest import GFX942 as FLAGS

# A contraction, a look-up of 4 rows of 1000, a transpose that nothing fuses with, a row sum, and a sum of two tensors.
KINDS = """\
func.func @main(%a: tensor<64x128xf16>, %b: tensor<128x32xf16>, %table: tensor<1000x16xf32>, %rows: tensor<4xi64>,
                %c: tensor<8x4xf32>, %d: tensor<8x4xf32>)
    -> (tensor<64x32xf16>, tensor<4x16xf32>, tensor<4x8xf32>, tensor<8xf32>, tensor<8x4xf32>) {
  %zero = arith.constant 0.0 : f16
  %wide_zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x32xf16>
  %f = linalg.fill ins(%zero : f16) outs(%e : tensor<64x32xf16>) -> tensor<64x32xf16>
  %product = linalg.matmul ins(%a, %b : tensor<64x128xf16>, tensor<128x32xf16>)
      outs(%f : tensor<64x32xf16>) -> tensor<64x32xf16>
  %eg = tensor.empty() : tensor<4x16xf32>
  %found = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%rows : tensor<4xi64>) outs(%eg : tensor<4x16xf32>) {
  ^bb0(%row: i64, %o: f32):
    %i = arith.index_cast %row : i64 to index
    %j = linalg.index 1 : index
    %x = tensor.extract %table[%i, %j] : tensor<1000x16xf32>
    linalg.yield %x : f32
  } -> tensor<4x16xf32>
  %et = tensor.empty() : tensor<4x8xf32>
  %turned = linalg.transpose ins(%c : tensor<8x4xf32>) outs(%et : tensor<4x8xf32>) permutation = [1, 0]
  %es = tensor.empty() : tensor<8xf32>
  %fs = linalg.fill ins(%wide_zero : f32) outs(%es : tensor<8xf32>) -> tensor<8xf32>
  %sums = linalg.reduce {arith.addf} ins(%d : tensor<8x4xf32>) outs(%fs : tensor<8xf32>) dimensions = [1]
  %total = arith.addf %c, %d : tensor<8x4xf32>
  return %product, %found, %turned, %sums, %total
      : tensor<64x32xf16>, tensor<4x16xf32>, tensor<4x8xf32>, tensor<8xf32>, tensor<8x4xf32>
}
"""
ONE = """\
func.func @main(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = arith.mulf %a, %a : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""
# The row sums need a dispatch of their own.
TWO = """\
func.func @main(%a: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>) {
  %0 = arith.mulf %a, %a : tensor<8x4xf32>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %1 = linalg.reduce {arith.maximumf} ins(%a : tensor<8x4xf32>) outs(%f : tensor<8xf32>) dimensions = [1]
  return %0, %1 : tensor<8x4xf32>, tensor<8xf32>
}
"""


@pytest.fixture
def files(tmp_path):
    for name, text in (("one", ONE), ("two", TWO), ("kinds", KINDS)):
        (tmp_path / f"{name}.mlir").write_text(text)
    return tmp_path


def test_kinds_and_traffic():
    statistics = measure(KINDS, flags=FLAGS)
    sites = {site.kind: site for site in statistics.main}
    assert set(sites) == {"contraction", "lookup", "transpose", "reduction", "elementwise"}
    product, found = sites["contraction"], sites["lookup"]
    assert (product.cost.read_bytes, product.cost.written_bytes) == (2 * (64 * 128 + 128 * 32), 2 * 64 * 32)
    assert (product.cost.matrix_flops, product.element) == (2 * 64 * 128 * 32, "f16")
    # Four rows of the table and their numbers, not the table.
    assert (found.cost.read_bytes, found.cost.written_bytes) == (4 * 16 * 4 + 4 * 8, 4 * 16 * 4)
    assert sites["elementwise"].cost.vector_flops == 32
    assert product.location.endswith(":8:14")
    assert statistics.target.architecture == "gfx942"


def test_roofline():
    site = next(site for site in measure(KINDS, flags=FLAGS).main if site.kind == "contraction")
    units = roofline_seconds(site, GFX942)
    assert math.isclose(units["MFMA"], 2 * 64 * 128 * 32 / (2048 * 304 * 2.1e9))
    assert math.isclose(units["HBM"], site.cost.bytes / 5.3e12)
    *_, everything = groups_of([site, site], GFX942)
    assert math.isclose(everything.seconds, 2 * max(units.values()))


def kept(statistics: ProgramStatistics) -> Baseline:
    return read_baseline(baseline_text(statistics), "baseline")


def test_kernels_that_differ_in_their_number_are_the_same(files):
    one, two = (measure(files / f"{name}.mlir", flags=FLAGS) for name in ("one", "two"))
    assert compare_with_baseline(one, kept(one)) == []
    (change,) = compare_with_baseline(two, kept(one))
    assert (change.before, change.after, change.regresses, change.gone) == (1, 2, True, [])
    assert [site.kind for site in change.new] == ["reduction"]
    (change,) = compare_with_baseline(one, kept(two))
    assert not change.regresses
    assert change.gone == [site.signature for site in two.main if site.kind == "reduction"]


def test_a_baseline_is_written_and_fails_with_the_new_dispatches(files, capsys):
    baseline = files / "counts.json"
    assert main([str(files / "one.mlir"), f"--baseline={baseline}", "--update"]) == 0
    assert sum(json.loads(baseline.read_text())["dispatches"].values()) == 1
    assert main([str(files / "one.mlir"), f"--baseline={baseline}"]) == 0
    capsys.readouterr()
    assert main([str(files / "two.mlir"), f"--baseline={baseline}"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "dispatches: 1 before, 2 now"
    assert lines[1].startswith("  new: ")
    assert "two.mlir:6:8: main_dispatch_" in lines[1]
    assert lines[-1].startswith("prepass-stats: failed: more than in ")
    assert list(files.glob(".*")) == []


def test_text_and_json_agree(files, capsys):
    assert main([str(files / "kinds.mlir"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["static"], document["roofline_machine"], document["dispatches"]) == (True, "MI300X", 5)
    assert prepass_main(["stats", str(files / "kinds.mlir"), "--all"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    traffic = sum(site["read_bytes"] + site["written_bytes"] for site in document["sites"])
    assert next(words[1:3] for words in lines if words[:1] == ["all"]) == ["5", f"{traffic / 1e6:.1f}"]
    names = {site["name"] for site in document["sites"]}
    assert names == {words[0] for words in lines if words and words[0].startswith("main_dispatch_")}


def test_pipelines_presets_and_flags_reach_the_compiler(files, capsys):
    path = str(files / "one.mlir")
    assert main([path, "--pipeline=builtin.module(prepass-nothing)"]) == 1
    assert "column 16: unknown pass 'prepass-nothing'" in capsys.readouterr().err
    assert main([path, "--prepass-preset=llm", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["target"] == "gfx942"
    # A flag that the compiler keeps for a process, and one that it does not know.
    assert main([path, "--mlir-disable-threading", "--iree-hal-target-device=local",
                 "--iree-hal-local-target-device-backends=llvm-cpu", "--json"]) == 0  # fmt: skip
    document = json.loads(capsys.readouterr().out)
    assert (document["target"], document["roofline_machine"]) == ("llvm-cpu", None)
    assert main([path, "--iree-no-such-flag"]) == 1
    assert "Unknown command line argument '--iree-no-such-flag'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected one input file, got 0"),
        (["missing.mlir"], "cannot open input 'missing.mlir': No such file or directory"),
        (["{one}", "--baseline=missing.json"], "cannot open input 'missing.json'"),
        (["{one}", "--baseline={one}"], "is no JSON"),
        (["{one}", "--update"], "--update needs --baseline=<file>"),
        (["{one}", "--update", "--baseline=no/such/file"], "cannot open output 'no/such/file'"),
    ],
)
def test_mistakes_are_one_line(files, capsys, arguments, message):
    assert main([text.format(one=files / "one.mlir") for text in arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith("prepass-stats: error: ")
    assert message in error
    assert error.count("\n") == 1


def crash(how):
    """What a child is to do, for the tests below."""
    if how == "signal":
        print("LLVM ERROR: deliberate", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "exit":
        sys.exit(7)
    raise PrepassError("mistaken") if how == "mistake" else ValueError("broken")


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ("signal", ChildCrash, "working crashed with SIGSEGV: LLVM ERROR: deliberate"),
        ("exit", ChildCrash, "working failed: exit code 7"),
        ("mistake", PrepassError, "mistaken"),
        ("bug", ChildCrash, "working failed: ValueError: broken"),
    ],
)
def test_a_crash_of_a_child_is_one_line(how, error, message):
    with pytest.raises(error) as raised:
        call_in_child(crash, how, what="working")
    assert str(raised.value) == message

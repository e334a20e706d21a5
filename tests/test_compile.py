# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass.compile` and `prepass.run`: phases, hooks, flags, diagnostics."""

import numpy as np
import pytest
from iree.compiler import ir

import prepass
from prepass.checking.numerics import compare
from prepass.checking.statistics import ProgramStatistics
from prepass.compiler import library

from .conftest import ADD, GFX942, LLVM_CPU

ONES = np.ones(4, np.float32)


def test_compiles_text_bytes_paths_and_modules_alike(add_file, context):
    program = prepass.compile(ADD, flags=LLVM_CPU)
    (result,) = prepass.run(program, ONES, ONES)
    np.testing.assert_array_equal(result, 4 * ONES)
    module = ir.Module.parse(ADD, context)
    for source in (ADD.encode(), add_file, str(add_file), module):
        (again,) = prepass.run(prepass.compile(source, flags=LLVM_CPU), ONES, 2 * ONES)
        np.testing.assert_array_equal(again, 9 * ONES)
    assert str(module).count("func.func") == 1


def test_hooks_run_after_their_phases_and_see_edits():
    seen = []

    def replace_mul(module: ir.Operation) -> None:
        seen.append("abi")
        text = str(module)
        assert "util.func" in text

    prepass.compile(
        ADD,
        flags=LLVM_CPU,
        pipeline="builtin.module(cse)",
        hooks={
            "flow": lambda module: seen.append("flow" if "flow.dispatch" in str(module) else "no dispatch"),
            "abi": replace_mul,
            "executable-sources": lambda module: seen.append("sources"),
        },
    )
    assert seen == ["abi", "flow", "sources"]


def test_the_pipeline_runs_with_target_devices_assigned():
    devices = []
    prepass.compile(ADD, flags=GFX942, hooks={"preprocessing": lambda module: devices.append("gfx942" in str(module))})
    assert devices == [True]


def test_process_wide_flags_are_honoured(capfd):
    program = prepass.compile(ADD, flags=[*LLVM_CPU, "--mlir-timing"], pipeline="builtin.module(cse)")
    assert program.startswith(b"PK")
    assert "Execution time report" in capfd.readouterr().err
    (result,) = prepass.run(program, ONES, ONES)
    np.testing.assert_array_equal(result, 4 * ONES)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"source": "missing.mlir"}, prepass.PrepassError, "cannot open 'missing.mlir': No such file"),
        ({"source": "func.func @f( {\n"}, prepass.CompileError, "<text>:1:14: error: expected non-function type"),
        ({"source": ADD, "flags": ()}, prepass.CompileError, "error: no HAL devices defined"),
        ({"source": ADD, "flags": ["--iree-opt-level=O9"]}, prepass.PrepassError, "--iree-opt-level=O9"),
        ({"source": ADD, "flags": [*LLVM_CPU, "--no-such-flag"]}, prepass.CompileError, "--no-such-flag"),
        ({"source": ADD, "hooks": {"nowhere": print}}, prepass.PrepassError, "no phase 'nowhere'"),
        ({"source": ADD, "hooks": {"abi": print}, "flags": ["--mlir-timing"]}, prepass.PrepassError, "hooks"),
        ({"source": ADD, "pipeline": "builtin.module(csee)"}, prepass.PipelineError, "did you mean 'cse'"),
    ],
)
def test_mistakes_are_said_with_their_place(arguments, error, message):
    with pytest.raises(error) as caught:
        prepass.compile(**{"flags": LLVM_CPU, **arguments})
    assert message in str(caught.value)


def test_running_what_is_not_there_is_one_line():
    program = prepass.compile(ADD, flags=LLVM_CPU)
    for call in (
        lambda: prepass.run(program, ONES, ONES, function="other"),
        lambda: prepass.run(program, ONES),
        lambda: prepass.run(program, ONES, ONES, device="nowhere"),
        lambda: prepass.run(b"not a program", ONES, ONES),
    ):
        with pytest.raises(prepass.PrepassError) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_another_compiler_version_is_warned_about(monkeypatch, capsys):
    monkeypatch.setattr(library.version, "VERSION", "3.14.0")
    library.check_version.cache_clear()
    library.check_version()
    library.check_version()
    library.check_version.cache_clear()
    message = "prepass: warning: IREE 3.13.x is supported, 3.14.0 is installed; passes may fail to match or to verify\n"
    assert capsys.readouterr().err == message


def test_statistics_count_dispatches_and_memory():
    source = """
    util.global private @weight = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
    func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<4x4xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32>
      %0 = linalg.matmul ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
      %1 = linalg.matmul ins(%0, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
      return %1 : tensor<4x4xf32>
    }
    """
    statistics = ProgramStatistics()
    prepass.compile(source, flags=LLVM_CPU, hooks=statistics.hooks)
    assert (statistics.dispatches, statistics.initializer_dispatches, statistics.transient_bytes) == (2, 0, 64)


def test_compare_sees_nan_infinity_and_shape():
    a = np.array([1.0, np.nan, np.inf, -np.inf], np.float32)
    assert compare([a], [a]).within(0.0)
    assert compare([a], [np.array([1.5, np.nan, np.inf, -np.inf])]).largest == 0.5
    assert compare([a], [np.array([1.0, 0.0, np.inf, np.inf])]).nan_mismatches == 2
    with pytest.raises(ValueError, match="shape"):
        compare([a], [a[:2]])

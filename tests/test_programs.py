# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs, run as a user runs them: outputs, exit codes, one line for each mistake."""

import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import ADD, CORPUS, GFX942, LLVM_CPU

PASSES = Path(__file__).with_name("passes_for_tests.py")
LOAD = f"--prepass-load={PASSES}"
PREPROCESS = "--iree-preprocessing-pass-pipeline="
PROGRAMS = ("prepass-opt", "prepass-compile")


def pipeline_flag(name: str, text: str) -> str:
    return (PREPROCESS if name == "prepass-compile" else "--pass-pipeline=") + f"builtin.module({text})"


def target_flags(name: str) -> tuple[str, ...]:
    return LLVM_CPU if name == "prepass-compile" else ()


def check_one_line(result: subprocess.CompletedProcess, *expected: str) -> None:
    """A failure: a non-zero exit code, one line of ours, no traceback."""
    error = result.stderr.decode()
    assert result.returncode not in (0, -6, -11)
    assert "Traceback" not in error
    lines = [line for line in error.splitlines() if line.startswith("prepass-")]
    assert len(lines) == 1, error
    for text in expected:
        assert text in lines[0]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("csee", ("column 16", "unknown pass 'csee'", "did you mean 'cse'?")),
        ("cse,prepass-raise-attentoin", ("column 20", "did you mean 'prepass-raise-attention'?")),
        ("test-options{pad-key=1}", ("column 29", "did you mean 'pad-keys'?")),
        ("cse", ()),
        ("test-fail", ("pass 'test-fail' failed: ValueError: deliberate",)),
        ("test-fail{how=break}", ()),
    ],
)
def test_pipeline_mistakes(name, text, expected, program, add_file, tmp_path):
    flag = pipeline_flag(name, text)
    if text == "cse":
        flag, expected = flag[:-1], ("column 15", "unbalanced '('")
    output = tmp_path / "output"
    result = program(name, add_file, *target_flags(name), LOAD, flag, "-o", output)
    check_one_line(result, *expected)
    assert not output.exists()


@pytest.mark.parametrize("name", PROGRAMS)
def test_file_mistakes(name, program, add_file, tmp_path):
    flags = (*target_flags(name), LOAD, pipeline_flag(name, "test-report-adds"))
    invalid = tmp_path / "invalid.mlir"
    invalid.write_text("func.func @f( {")
    output = tmp_path / "output"
    output.write_text("precious")
    check_one_line(program(name, tmp_path / "missing.mlir", *flags, "-o", output), "cannot open input", "missing.mlir")
    check_one_line(program(name, tmp_path, *flags, "-o", output), "cannot open input", "Is a directory")
    check_one_line(program(name, add_file, *flags, "-o", tmp_path), "cannot open output", "Is a directory")
    check_one_line(program(name, add_file, *flags, "-o", tmp_path / "no" / "x"), "cannot open output")
    check_one_line(program(name, add_file, add_file, *flags, "-o", output), "expected one input file, got 2")
    result = program(name, invalid, *flags, "-o", output)
    check_one_line(result, "is not a valid module")
    assert "invalid.mlir:1:14: error: expected non-function type" in result.stderr.decode()
    assert output.read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["add.mlir", "invalid.mlir", "output"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_flag_mistakes(name, program, add_file):
    flags = (*target_flags(name), pipeline_flag(name, "prepass-raise-attention"))
    check_one_line(program(name, add_file, *flags, "--prepass-load=missing.py"), "missing.py")
    check_one_line(program(name, add_file, *flags, "--prepass-remarks=some"), "none, all, applied, missed")
    broken = add_file.with_name("broken.txt")
    broken.write_text("'unbalanced")
    check_one_line(program(name, add_file, *flags, f"@{broken}"), "response file", "No closing quotation")
    unknown = program(name, add_file, *flags, "--no-such-flag")
    assert unknown.returncode == 1
    assert "no-such-flag" in unknown.stderr.decode()


def test_opt_reads_stdin_and_writes_stdout(program):
    result = program("prepass-opt", "-", "--pass-pipeline=builtin.module(func.func(cse))", stdin=ADD)
    assert result.returncode == 0
    assert result.stdout.decode().count("arith.addf") == 1


def test_opt_reads_and_writes_bytecode(program, add_file, tmp_path):
    bytecode = tmp_path / "add.mlirbc"
    assert program("prepass-opt", add_file, "--emit-bytecode", "-o", bytecode).returncode == 0
    assert bytecode.read_bytes().startswith(b"ML\xefR")
    text = program("prepass-opt", bytecode).stdout
    assert text == program("prepass-opt", add_file).stdout
    assert text.decode().count("arith.addf") == 2


def test_opt_reports_what_passes_did(program, add_file):
    result = program(
        "prepass-opt",
        add_file,
        LOAD,
        "--pass-pipeline=builtin.module(test-report-adds,cse)",
        "--prepass-remarks=missed",
        "--mlir-print-ir-after-all",
        "--mlir-timing",
        "--mlir-pass-statistics",
        "--mlir-print-debuginfo",
    )
    error = result.stderr.decode()
    assert f"{add_file}:2:8: remark: test-report-adds: missed: seen for no target [arith.addf]" in error
    for expected in ("IR Dump After ReportAddsPass", "IR Dump After CSEPass", "Execution time report", "(S) 2 adds"):
        assert expected in error
    assert "loc(" in result.stdout.decode()
    quiet = program("prepass-opt", add_file, LOAD, "--pass-pipeline=builtin.module(test-report-adds)")
    assert quiet.stderr == b""


def test_opt_refuses_what_it_cannot_honour(program, add_file):
    check_one_line(program("prepass-opt", add_file, "--mlir-print-ir-after=cse"), "--mlir-print-ir-after")


@pytest.mark.parametrize(
    "flags", [(), ("--iree-opt-level=O3",), ("--iree-hal-target-device", "local"), ("--compile-to=flow",), ("--help",)]
)
def test_compile_without_prepass_is_the_stock_compiler(flags, program, add_file, tmp_path):
    ours, stock = tmp_path / "ours", tmp_path / "stock"
    arguments = (add_file, *LLVM_CPU, *flags)
    first = program("prepass-compile", *arguments, "-o", ours)
    second = program("iree-compile", *arguments, "-o", stock)
    assert first.returncode == second.returncode
    assert first.stderr == second.stderr
    assert first.stdout.endswith(second.stdout)
    assert ours.exists() == stock.exists()
    if ours.exists():
        assert ours.read_bytes() == stock.read_bytes()


@pytest.mark.parametrize("flags", [(), ("--compile-to=abi",), ("--compile-to=flow", "--emit-mlir-bytecode")])
def test_compile_with_prepass_keeps_the_outputs(flags, program, add_file, tmp_path):
    """A pass that changes nothing must change nothing, although the compiler stops for it."""
    ours, stock = tmp_path / "ours", tmp_path / "stock"
    arguments = (add_file, *LLVM_CPU, *flags)
    assert program("prepass-compile", *arguments, LOAD, PREPROCESS + "builtin.module(test-report-adds)", "-o", ours)
    assert program("iree-compile", *arguments, "-o", stock).returncode == 0
    assert ours.read_bytes() == stock.read_bytes()


def test_bytecode_versions_are_numbers(program, add_file):
    flags = (*LLVM_CPU, "--compile-to=abi", "--emit-mlir-bytecode", PREPROCESS + "builtin.module(prepass-default)")
    result = program("prepass-compile", add_file, *flags, "--emit-mlir-bytecode-version=6")
    assert result.stdout.startswith(b"ML\xefR")
    check_one_line(
        program("prepass-compile", add_file, *flags, "--emit-mlir-bytecode-version=x"), "takes a whole number, not 'x'"
    )


def test_opt_verifies_input_that_is_not_text(program):
    result = program("prepass-opt", "--verify-diagnostics", stdin=b"\xff\xfe// expected-error {{custom op}}")
    assert result.returncode == 1
    assert b"Traceback" not in result.stderr


def test_compile_takes_values_behind_a_blank_and_response_files(program, add_file, tmp_path):
    response = tmp_path / "flags.txt"
    response.write_text("--iree-hal-target-device local --iree-hal-local-target-device-backends llvm-cpu")
    output = tmp_path / "add.vmfb"
    flags = (f"@{response}", LOAD, PREPROCESS + "builtin.module(test-report-adds)", "--prepass-remarks", "all")
    result = program("prepass-compile", *flags, "-o", output, add_file)
    assert result.returncode == 0, result.stderr
    assert "seen for llvm-cpu" in result.stderr.decode()
    assert output.stat().st_size > 0


def test_compile_applies_transform_specs_after_the_pipeline(program, add_file, tmp_path):
    spec = tmp_path / "spec.mlir"
    spec.write_text(
        "module attributes {transform.with_named_sequence} {\n"
        "  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {\n"
        '    %adds = transform.structured.match ops{["arith.addf"]} in %m\n'
        "        : (!transform.any_op) -> !transform.any_op\n"
        "    transform.print %adds : !transform.any_op\n"
        "    transform.yield\n  }\n}\n"
    )
    arguments = (add_file, *LLVM_CPU, f"--iree-preprocessing-transform-spec-filename={spec}", "-o", tmp_path / "x")
    stock = program("iree-compile", *arguments)
    ours = program("prepass-compile", *arguments, LOAD, PREPROCESS + "builtin.module(test-mark-adds)")
    assert b"IR printer" in stock.stdout and b"marked" not in stock.stdout
    assert ours.returncode == 0
    assert ours.stdout.count(b"IR printer") == 1
    assert b"{marked}" in ours.stdout


def test_compile_splits_and_dumps_phases(program, tmp_path):
    source = tmp_path / "two.mlir"
    source.write_text(f"{ADD}// -----\n{ADD.replace('@main', '@second')}")
    flags = (*LLVM_CPU, LOAD, PREPROCESS + "builtin.module(test-report-adds)", "--prepass-remarks=all")
    result = program("prepass-compile", source, *flags, "--split-input-file", "--compile-to=input")
    assert result.stdout.decode().count("arith.mulf") == 2
    result = program("prepass-compile", source, *flags, "--split-input-file", "--compile-to=flow", "-o", tmp_path / "o")
    assert b"two.mlir:2:8: remark" in result.stderr
    assert b"two.mlir:9:8: remark" in result.stderr
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    source.write_text(ADD)
    assert program("prepass-compile", source, *flags, f"--dump-compilation-phases-to={dumps}").returncode == 0
    assert {"two.1.input.mlir", "two.3.preprocessing.mlir"} <= {path.name for path in dumps.iterdir()}


def test_run_compiles_runs_and_compares(program, add_file):
    arguments = (add_file, "--function=main", "--input=4xf32=1 2 3 4", "--input=4xf32=1 1 1 1", LOAD)
    pipeline = "--pass-pipeline=builtin.module(test-report-adds)"
    right = program("prepass-run", *arguments, pipeline, "--expected_output=4xf32=4 9 16 25", "--prepass-remarks=all")
    assert right.returncode == 0, right.stderr
    assert b"seen for llvm-cpu" in right.stderr
    assert program("prepass-run", *arguments, pipeline, "--expected_output=4xf32=4 9 16 26").returncode == 1
    check_one_line(program("prepass-run", *arguments, "--device=nowhere"), "no target known for device 'nowhere'")
    check_one_line(program("prepass-run", "missing.mlir"), "cannot open input 'missing.mlir'")


def test_run_takes_compiled_programs(program, add_file, tmp_path):
    vmfb = tmp_path / "add.vmfb"
    assert program("prepass-compile", add_file, *LLVM_CPU, "-o", vmfb).returncode == 0
    inputs = ("--function=main", "--input=4xf32=1", "--input=4xf32=1", "--expected_output=4xf32=4")
    assert program("prepass-run", vmfb, *inputs).returncode == 0
    check_one_line(program("prepass-run", vmfb, "--pass-pipeline=builtin.module(cse)"), "is compiled already")


def test_run_help_says_how_to_reach_a_gpu(program):
    text = program("prepass-run", "--help").stdout.decode()
    assert "--device=hip" in text
    assert "MI300" in text


def test_prepass_lists_and_explains(program):
    assert b"prepass-raise-attention\t" in program("prepass", "passes").stdout
    assert b"prepass-default\t" in program("prepass", "pipelines").stdout
    shown = program("prepass", "--prepass-load", PASSES, "passes", "test-options").stdout.decode()
    assert "pad-keys=16\tan integer\tAn integer." in shown
    assert b"Equal producers" in program("prepass", "pipelines", "prepass-default").stdout
    shown = program("prepass", "--prepass-load", PASSES, "pipelines", "show", "test-pipeline").stdout.decode()
    assert "--iree-opt-level=O3\tall\tAll of it." in shown
    assert b"Equal producers" in program("prepass", "pipelines", "show", "default").stdout
    # The steps of a pipeline within a pipeline are explained as well.
    assert b"\n  prepass-raise-attention\tOne attention op" in program("prepass", "pipelines", "show", "sdxl").stdout
    assert b"expected the name of one" in program("prepass", "pipelines", "show").stderr
    assert b"IREE compiler 3.13" in program("prepass", "version").stdout
    unknown = program("prepass", "passes", "prepass-raise-attentoin")
    assert unknown.returncode == 1
    assert b"did you mean 'prepass-raise-attention'?" in unknown.stderr


def test_a_closed_pipe_is_no_traceback(program, add_file):
    command = f"prepass-opt {add_file} | head -c 1 >/dev/null"
    result = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert b"Traceback" not in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("flags", [LLVM_CPU, GFX942], ids=["llvm-cpu", "gfx942"])
@pytest.mark.parametrize("path", sorted(CORPUS.glob("seeds/*.mlir")) + sorted(CORPUS.glob("models/*.mlir")), ids=str)
def test_compile_without_prepass_matches_on_the_corpus(path, flags, program, tmp_path):
    ours, stock = tmp_path / "ours", tmp_path / "stock"
    first = program("prepass-compile", path, *flags, "-o", ours)
    second = program("iree-compile", path, *flags, "-o", stock)
    assert first.returncode == second.returncode
    if second.returncode == 0:
        assert ours.read_bytes() == stock.read_bytes()


@pytest.mark.parametrize("module", ["prepass", "prepass.tools.compile", "prepass.tools.opt"])
def test_programs_start_without_what_they_may_not_need(module):
    code = f"import {module}, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    # The definitions of all linalg ops take as long to load as the rest.
    late = ("iree.compiler.dialects.linalg", "prepass.analysis", "prepass.tuning", "distributed", "torch")
    assert module in loaded
    assert [name for name in late if name in loaded] == []

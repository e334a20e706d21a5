# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mistakes that any program can be given: each is one line that says what is wrong, and nothing is written."""

import importlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import prepass
from prepass.errors import PrepassError

from .conftest import LLVM_CPU

CSE = "--pipeline=builtin.module(cse)"
ONE = "--input=4xf32=1"


@pytest.fixture
def mistake(capsys):
    """Runs a program in this process: `mistake("stats", "x.mlir")` is the one line that it ends with."""

    def run(name: str, *arguments: object) -> str:
        code = importlib.import_module(f"prepass.tools.{name}").main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        assert (code, printed.out, printed.err.count("\n")) == (1, "", 1), printed
        return printed.err

    return run


@pytest.fixture
def compiled(add_file):
    """What begins as a program that is compiled already."""
    file = add_file.with_name("add.vmfb")
    file.write_bytes(b"PK\x03\x04 and more")
    return file


@pytest.mark.parametrize("name", ["opt", "stats", "analyze", "simulate"])
def test_compiled_programs_are_no_mlir(name, mistake, compiled):
    assert f"'{compiled}' is compiled already; MLIR is needed" in mistake(name, compiled)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("analyze", ["--places=-1"], "--places takes a whole number from 0, not '-1'"),
        ("check", [CSE, "--dynamic-size=0"], "--dynamic-size takes a whole number from 1, not '0'"),
        ("check", [CSE, "--rewrite-for=gfx90a"], "--rewrite-for takes one of gfx942, not 'gfx90a'"),
        ("check", ["--pipeline=builtin.module(csee)"], "column 16: unknown pass 'csee'"),
        (
            "compile",
            ["--prepass-remarks=some"],
            "--prepass-remarks takes one of none, all, applied, missed, not 'some'",
        ),
        ("simulate", ["--input=4xi8=300"], "--input: 4xi8"),
        ("simulate", ["--input=4xi8=1.5"], "its numbers are whole"),
        ("simulate", ["--input=999999999999999xf32=1"], "--input: 999999999999999xf32"),
        ("simulate", [ONE, ONE, "--output=@a.npy", "--output=@b.npy"], "2 --output for 1 results"),
        ("simulate", [ONE, ONE, "--no-such-flag"], "flag --no-such-flag: unknown, or one that the compiler keeps"),
        ("stats", ["--prepass-tuning-table=missing.json"], "cannot read tuning table 'missing.json'"),
        ("tune", ["--prepass-kernels=all"], "--prepass-kernels is for programs that compile in one way"),
        ("tune", [], "the program has no op that can be tuned"),
    ],
)
def test_flags(name, arguments, expected, mistake, add_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert expected in mistake(name, add_file, *arguments)
    assert list(tmp_path.iterdir()) == [add_file]


@pytest.mark.parametrize("name", ["analyze", "check", "isa", "run", "simulate", "stats", "tune"])
def test_pipelines_have_the_same_names_everywhere(name, mistake, add_file):
    for flag in ("--pipeline", "--pass-pipeline", "--iree-preprocessing-pass-pipeline"):
        assert "column 16: unknown pass 'csee'" in mistake(name, add_file, f"{flag}=builtin.module(csee)")
    both = ("--pipeline=builtin.module(cse)", "--pass-pipeline=builtin.module(cse)")
    assert "--pipeline and --pass-pipeline are the same; give one" in mistake(name, add_file, *both)


def test_shapes_of_arguments_that_are_not_there(mistake, add_file):
    assert "no argument 2 to give a shape" in mistake("check", add_file, CSE, "--input-shape=2=4")


def test_files_that_cannot_be_what_is_asked_for(mistake, add_file, tmp_path):
    assert "Not a directory" in mistake("check", add_file, CSE, f"--output={add_file}")
    assert "Not a directory" in mistake("tune", add_file, f"--benchmarks={add_file}", "-o", tmp_path / "table.json")
    broken = tmp_path / "baseline.json"
    broken.write_text('{"version"')
    assert "is no JSON" in mistake("stats", add_file, f"--baseline={broken}")


def test_schedulers_without_a_port(mistake, tmp_path):
    pytest.importorskip("distributed")
    op = "attention:m=128,k1=32,k2=128"
    message = mistake("tune", op, "--limit=1", "--scheduler=host", "-o", tmp_path / "table.json")
    assert "--scheduler takes an address with a port, as tcp://host:8786, not 'host'" in message


def test_kernels_without_a_name(mistake):
    assert "--example is of a kernel" in mistake("main", "kernels", "--example", "x")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import sys\nsys.exit(3)", "SystemExit: 3 (passes.py:2)"),
        ("\nraise ValueError('one\\ntwo')", "ValueError: one (passes.py:2)"),
        ("def f(:", "SyntaxError: invalid syntax (passes.py, line 1)"),
    ],
)
def test_files_of_passes_that_fail(code, expected, mistake, add_file):
    passes = add_file.with_name("passes.py")
    passes.write_text(code)
    assert expected in mistake("opt", add_file, f"--prepass-load={passes}")


def test_coverage_of_what_is_no_assembly(tmp_path, capsys):
    file = tmp_path / "x.rocmasm"
    file.write_bytes(b"\xff\xfe\x00")
    assert importlib.import_module("prepass.tools.simulate").main(["--coverage", str(file)]) == 0
    assert "0 kernels" in capsys.readouterr().out


@pytest.mark.parametrize("output", ["/dev/full", "/proc/no-such-file"])
def test_outputs_that_cannot_be_written(output, program, add_file):
    result = program("prepass-opt", add_file, "-o", output)
    assert (result.returncode, result.stderr.count(b"\n")) == (1, 1)
    assert result.stderr.startswith(b"prepass-opt: error: cannot read or write")


@pytest.mark.parametrize("stream", ["<&-", ">&-", ">/dev/full"])
def test_standard_streams_that_are_closed_or_full(stream):
    opt = Path(sys.executable).with_name("prepass-opt")
    result = subprocess.run(["sh", "-c", f'"$0" - {stream}', opt], input=b"", capture_output=True, check=False)
    assert (result.returncode, result.stderr.count(b"\n")) == (1, 1)
    assert result.stderr.startswith(b"prepass-opt: error: cannot read or write")


def test_crashes_say_where(tmp_path):
    crash = "import os, signal\nfrom prepass.tools.common import run_program\n\n"
    crash += "def compile(_):\n    os.kill(os.getpid(), signal.SIGSEGV)\n\n\nrun_program('program', compile, [])"
    result = subprocess.run([sys.executable, "-c", crash], capture_output=True, check=False, cwd=tmp_path)
    assert result.returncode == -signal.SIGSEGV
    assert b"Segmentation fault" in result.stderr and b"in compile" in result.stderr


def test_versions(program):
    for name in ("prepass-opt", "prepass-stats"):
        assert f"prepass {prepass.__version__}" in program(name, "--version").stdout.decode()


def test_programs_that_read_standard_input(program, add_file):
    flags = ("--function=main", ONE, ONE)
    assert b"4xf32=4 4 4 4" in program("prepass-run", "-", *flags, stdin=add_file.read_bytes()).stdout
    assert b"[4. 4. 4. 4.]" in program("prepass-simulate", "-", *flags, stdin=add_file.read_bytes()).stdout


def test_flags_are_no_string(add_file):
    with pytest.raises(PrepassError, match="flags are a list of strings"):
        prepass.compile(add_file, flags=LLVM_CPU[0])

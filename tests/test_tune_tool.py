# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-tune` as a user runs it: tables, benchmarks, one line for each mistake."""

from pathlib import Path

import pytest

import prepass
from prepass.amdgpu.inputs import compile_to_assembly
from prepass.ir.targets.tuning_table import read_tuning_table
from prepass.tuning.op_text import op_module

from .conftest import GFX942, LLVM_CPU
from .tuning_cases import OP


def test_the_program_writes_a_table_that_compiles(tmp_path, program):
    table = tmp_path / "table.json"
    arguments = (OP, "--limit=4", "--jobs=2", "-o", table, f"--benchmarks={tmp_path / 'benchmarks'}", "--top=2")
    result = program("prepass-tune", *arguments)
    assert result.returncode == 0, result.stderr
    assert b"nothing was run" in result.stdout
    assert result.stderr == b""
    (entry,) = read_tuning_table(table).entries
    (kernel,) = compile_to_assembly(op_module(OP), flags=GFX942, tuning_table=table)
    assert (kernel.metadata.vgprs, kernel.metadata.lds_bytes) == (entry.price["vgprs"], entry.price["lds_bytes"])
    # Another op is added to the table.
    other = program("prepass", "tune", OP.replace("m=128", "m=64"), "--limit=1", "-o", table)
    assert other.returncode == 0, other.stderr
    assert [e.shape.m for e in read_tuning_table(table).entries] == [128, 64]
    _check_benchmarks(tmp_path / "benchmarks")


def _check_benchmarks(directory: Path) -> None:
    (folder,) = directory.iterdir()
    script = (folder / "run.sh").read_text()
    assert "have not been run on a GPU" in script
    commands = [line for line in script.splitlines() if line.startswith("iree-benchmark-module")]
    assert len(commands) >= 2
    for number, command in enumerate(commands):
        assert f"--module=candidate{number}.vmfb --function=main" in command
        assert "--device=hip" in command
        assert (folder / f"candidate{number}.vmfb").read_bytes()[:2] == b"PK"
        assert len(read_tuning_table(folder / f"candidate{number}.json").entries) == 1
    inputs = {"2x128x32xf16=@input0.bin": 2 * 128 * 32 * 2, "2x32x128xf16=@input2.bin": 2 * 32 * 128 * 2}
    for value, size in inputs.items():
        assert f"--input={value}" in commands[0]
        assert (folder / value.partition("@")[2]).stat().st_size == size
    # The dispatch is a program: stock IREE takes it from its phase on.
    assert prepass.compile(folder / "dispatch.mlir", start="flow", flags=GFX942)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected one input file or op, got 0"),
        (["none.mlir"], "cannot open input 'none.mlir': No such file or directory"),
        ([OP, "--limit=0"], "--limit takes a whole number from 1, not '0'"),
        ([OP, "--jobs=many"], "--jobs takes a whole number from 1, not 'many'"),
        ([OP, "--scheduler=tcp://127.0.0.1:1", "--jobs=2"], "--jobs is for this machine"),
        ([OP, "-o", "/none/table.json"], "cannot open output '/none/table.json'"),
        ([OP, "--op=conv*"], "no op to tune; ops that can be tuned are"),
        ([OP, *LLVM_CPU], "is not compiled for a target that can be tuned"),
        ([OP, "--prepass-tuning-table=x"], "-o says where this one goes"),
        (["attention:m=128,k1=32"], "attention: 'k2' is missing"),
        (["attention:m=128,k=32,k2=1"], "unknown size 'k'"),
        (["attention:m=0,k1=32,k2=1"], "'m' takes a whole number from 1, not '0'"),
        (["attention:m=8,k1=32,k2=1,element_type=i8"], "'element_type' takes one of f16, bf16, f32, not 'i8'"),
        (["attention:m=8,k1=32,k2=1,masked=maybe"], "'masked' takes true or false, not 'maybe'"),
    ],
)
def test_mistakes_are_one_line(arguments, message, program, tmp_path):
    result = program("prepass-tune", *arguments, cwd=tmp_path)
    error = result.stderr.decode()
    assert result.returncode == 1
    assert error.startswith("prepass-tune: error: ")
    assert message in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_scheduler_that_is_not_there_is_one_line(program, tmp_path, monkeypatch):
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "1s")
    result = program("prepass-tune", OP, "--scheduler=tcp://127.0.0.1:1", cwd=tmp_path)
    assert result.returncode == 1
    assert b"prepass-tune: error: cannot reach the Dask scheduler at 'tcp://127.0.0.1:1'" in result.stderr
    assert b"Traceback" not in result.stderr

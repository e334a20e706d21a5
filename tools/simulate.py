# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""prepass-simulate: run a program's gfx942 code on this machine, without a GPU."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from prepass.checking.numerics import compare
from prepass.compiler.api import TABLE_FLAG
from prepass.compiler.flags import CommandLine
from prepass.errors import PrepassError
from prepass.simulator import run as simulator
from prepass.simulator.coverage import Coverage, read_coverage
from prepass.tools.common import (
    COMPILE_FLAGS,
    COMPILE_FLAGS_HELP,
    PIPELINE_FLAGS,
    PIPELINE_HELP,
    check_input,
    check_output,
    input_source,
    load_files,
    one_input,
    pipeline_text,
    read_command_line,
    remark_printer,
    run_program,
    working,
    write_output,
)

PROGRAM = "prepass-simulate"

_FLAGS = {
    "coverage": False,
    **dict.fromkeys(PIPELINE_FLAGS, True),
    "compile-from": True,
    "function": True,
    "input": True,
    "parameter": True,
    "output": True,
    "expected_output": True,
    "expected_tolerance": True,
    **COMPILE_FLAGS,
}
_HELP = f"""\
OVERVIEW: compile for gfx942 and execute the kernels' code on this machine; no GPU is used

USAGE: {PROGRAM} [options] <input .mlir or .mlirbc file>
       {PROGRAM} --coverage <.rocmasm files or directories>

OPTIONS:
{PIPELINE_HELP}
  --compile-from=<phase>         The phase that the input has been through already
  --function=<name>              The function to call, when there are several
  --input=<value>                One for each argument: 2x3xf32=1 2 3 4 5 6, 2x3xf32=7, @file.npy
  --parameter=<key>=@<file.npy>  An external parameter, by scope::key or by key
  --output=@<file.npy>           Where to write each result, in order; otherwise results are printed
  --expected_output=<value>      Compare each result, in order; exit code 1 when one differs
  --expected_tolerance=<number>  The largest absolute difference (default: 1e-5)
  --coverage                     Which instructions of assembly the simulator executes; exit code 1 when not all
{COMPILE_FLAGS_HELP}
All other options go to the compiler, which is told to compile for gfx942.
"""
_TYPES = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "f16": np.float16, "bf16": np.float32, "f32": np.float32, "f64": np.float64,
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program."""
    return run_program(PROGRAM, _main, arguments)


def _main(arguments: list[str]) -> int:
    command_line = read_command_line(arguments, _FLAGS, _HELP, "iree-compile")
    if command_line.switch("coverage"):
        return _print_coverage([Path(path) for path in command_line.positional])
    return _simulate(one_input(command_line), command_line)


def _simulate(path: str, command_line: CommandLine) -> int:
    load_files(command_line)
    check_input(path)
    inputs = [_array(text, "input") for text in command_line.values.get("input", [])]
    expected = [_array(text, "expected_output") for text in command_line.values.get("expected_output", [])]
    tolerance = _number(command_line.last("expected_tolerance", "1e-5"))
    outputs = [_output_path(text) for text in command_line.values.get("output", [])]
    parameters = dict(_parameter(text) for text in command_line.values.get("parameter", []))
    with working(f"compiling {path}"):
        program = simulator.compile_program(
            input_source(path),
            pipeline=pipeline_text(command_line) or None,
            preset=command_line.last("prepass-preset") or None,
            kernels=command_line.last("prepass-kernels") or None,
            tuning_table=command_line.last(TABLE_FLAG) or None,
            flags=command_line.rest,
            start=command_line.last("compile-from", "start"),
            on_remark=remark_printer(command_line),
        )
    with working(f"simulating {path}"):
        function = command_line.last("function") or None
        results = simulator.run_program(program, inputs, function=function, parameters=parameters)
    if len(outputs) > len(results):
        raise PrepassError(f"{len(outputs)} --output for {len(results)} results")
    for result, output in zip(results, outputs, strict=False):
        _write(output, result)
    if expected:
        return _compare(results, expected, tolerance)
    for number, result in enumerate(results[len(outputs) :], len(outputs)):
        print(f"result[{number}]: {'x'.join(map(str, (*result.shape, result.dtype)))}\n{result}")
    return 0


def _array(text: str, flag: str) -> np.ndarray:
    """An array from `@file.npy` or `2x3xf32=1 2 3 4 5 6`; one number fills all of it."""
    if text.startswith("@"):
        check_input(text[1:])
        try:
            return np.load(text[1:])
        except (ValueError, EOFError) as error:
            raise PrepassError(f"--{flag}: '{text[1:]}' is no .npy file: {error}") from None
    match = re.fullmatch(r"((?:\d+x)*)(\w+)=(.*)", text)
    if not match or match[2] not in _TYPES:
        raise PrepassError(f"--{flag} takes @file.npy or a value such as 2x3xf32=1 2 3 4 5 6, not '{text}'")
    shape = tuple(int(size) for size in match[1].split("x")[:-1])
    numbers = [_number(word) for word in re.split(r"[\s,]+", match[3].strip())]
    if len(numbers) not in (1, int(np.prod(shape))):
        raise PrepassError(f"--{flag}: {len(numbers)} numbers do not fill {match[1]}{match[2]}")
    try:
        return _filled(numbers, shape, np.dtype(_TYPES[match[2]]))
    except (OverflowError, MemoryError) as error:
        raise PrepassError(f"--{flag}: {match[1]}{match[2]}: {error}") from None


def _filled(numbers: Sequence[float], shape: tuple[int, ...], type_: np.dtype) -> np.ndarray:
    if type_.kind == "i" and any(isinstance(number, float) for number in numbers):
        raise OverflowError("its numbers are whole")
    return np.broadcast_to(np.array(numbers, type_).reshape(shape if len(numbers) > 1 else ()), shape).copy()


def _number(text: str) -> float:
    try:
        return float(text) if re.search(r"[.einf]", text) else int(text)
    except ValueError:
        raise PrepassError(f"'{text}' is no number") from None


def _parameter(text: str) -> tuple[str, np.ndarray]:
    key, equals, value = text.partition("=")
    if not equals or not value.startswith("@"):
        raise PrepassError(f"--parameter takes key=@file.npy, not '{text}'")
    return key, _array(value, "parameter")


def _output_path(text: str) -> str:
    path = text.removeprefix("@")
    if not text.startswith("@"):
        raise PrepassError(f"--output takes @file.npy, not '{text}'")
    check_output(path)
    return path


def _write(path: str, result: np.ndarray) -> None:
    contents = io.BytesIO()
    np.save(contents, result)
    write_output(path, contents.getvalue())


def _compare(results: Sequence[np.ndarray], expected: Sequence[np.ndarray], tolerance: float) -> int:
    if len(expected) > len(results):
        raise PrepassError(f"{len(expected)} expected outputs for {len(results)} results")
    worst = 0
    for number, (result, reference) in enumerate(zip(results, expected, strict=False)):
        try:
            difference = compare([result], [reference])
        except ValueError as error:
            raise PrepassError(f"result[{number}]: {error}") from None
        verdict = "matches" if difference.within(tolerance) else "differs"
        worst |= not difference.within(tolerance)
        text = f"result[{number}] {verdict}: largest difference {difference.largest:g}"
        print(
            text + (f", {difference.nan_mismatches} NaN or infinite in one only" if difference.nan_mismatches else "")
        )
    return int(worst)


def _print_coverage(paths: Sequence[Path]) -> int:
    with working("reading assembly"):
        coverage = read_coverage(paths)
    executed, seen = len(coverage.executed), len(coverage.families)
    print(f"{coverage.files} files, {coverage.kernels} kernels, {coverage.different_kernels} of them different")
    print(f"instructions by name: {executed} executed of {seen} seen ({100 * executed / max(seen, 1):.1f} %)")
    known = coverage.written - len(coverage.unknown)
    print(f"as written, with operands and modifiers: {known} known of {coverage.written} seen")
    _print_groups(coverage)
    for text, reason in coverage.unknown.items():
        print(f"not known: {text}: {reason}")
    return int(bool(coverage.unknown) or executed < seen)


def _print_groups(coverage: Coverage) -> None:
    rows = [(group, str(executed), str(seen)) for group, (executed, seen) in coverage.groups().items()]
    if not sys.stdout.isatty():
        for row in rows:
            print("\t".join(row))
        return
    table = Table("group", "executed", "seen", box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())

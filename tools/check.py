# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""prepass-check: prove that a pipeline keeps a model's results, or find what changes them."""

from __future__ import annotations

import contextlib
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from iree.compiler.api import Session
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from prepass.checking.check import Report, Request, Verdict, check
from prepass.checking.check_report import report_lines
from prepass.checking.programs import Recipe
from prepass.checking.workspace import Inputs, OnStep, Tolerance
from prepass.compiler.api import TABLE_FLAG
from prepass.compiler.flags import CommandLine
from prepass.compiler.library import PHASES
from prepass.errors import PrepassError
from prepass.ir.targets.devices import DEVICE_FLAGS, compile_flags, flag_name
from prepass.ir.targets.tuning_table import read_tuning_table
from prepass.pipeline.kernels import resolve_with_kernels
from prepass.tools.common import (
    COMPILE_FLAGS,
    HOW_TO_COMPILE_HELP,
    LOAD_HELP,
    PIPELINE_FLAGS,
    PIPELINE_HELP,
    check_input,
    check_output,
    check_output_directory,
    load_files,
    one_input,
    read_command_line,
    run_program,
    with_preset,
)

PROGRAM = "prepass-check"

# What the flags that choose devices call this machine's CPU.
_CPU_DEVICES = ("local", "llvm-cpu", "vmvx")
_FLAGS = {
    **dict.fromkeys(PIPELINE_FLAGS, True),
    "rewrite-for": True,
    "compile-from": True,
    "function": True,
    "input": True,
    "input-shape": True,
    "dynamic-size": True,
    "seed": True,
    "tolerance-f32": True,
    "tolerance-f16": True,
    "no-bisect": False,
    "output": True,
    **{flag: True for flag in COMPILE_FLAGS if flag != "prepass-remarks"},
}
_HELP = f"""\
OVERVIEW: compile a model for this machine's CPU without and with a pipeline, run both and compare the results; where
they differ, find the first pass and the first op that make them differ, and write a small reproducer

USAGE: {PROGRAM} [options] <input .mlir or .mlirbc file>

OPTIONS:
{PIPELINE_HELP}
  --rewrite-for=gfx942           Let preprocessing passes rewrite as for another target; code is for the CPU still
  --compile-from=<phase>         The phase that the input has been through already
  --function=<name>              The function to call, when there are several
  --input=@<file.npy>            One for each argument, in order; the others are made
  --input-shape=<number>=<shape> The shape of an argument with dynamic dims, as 0=2x77; may be given several times
  --dynamic-size=<n>             Of all other dynamic dims (default: 16)
  --seed=<n>                     For arguments and external parameters (default: 0)
  --tolerance-f32=<number>       The largest difference, as a share of the largest magnitude of a result (default: 1e-3)
  --tolerance-f16=<number>       The same for programs with f16 or bf16 anywhere (default: 2e-2)
  --no-bisect                    Only compare
  --output=<directory>           Where to write a reproducer (default: prepass-check)
{LOAD_HELP}{HOW_TO_COMPILE_HELP}
All other options go to iree-compile. The exit code is 1 where the results differ.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; 1 where results differ."""
    return run_program(PROGRAM, _main, arguments)


def _main(arguments: list[str]) -> int:
    command_line = read_command_line(arguments, _FLAGS, _HELP, "iree-compile")
    path = one_input(command_line)
    load_files(command_line)
    request = _request(path, command_line)
    with tempfile.TemporaryDirectory(prefix="prepass-check-") as directory, _progress() as on_step:
        report = check(request, Path(directory), on_step)
    return _print(report)


def _request(path: str, command_line: CommandLine) -> Request:
    if path == "-":
        raise PrepassError("the input is read more than once, so that it cannot be standard input")
    check_input(path)
    if not command_line.switch("no-bisect"):
        output = command_line.last("output", "prepass-check")
        check_output_directory(output)
        # It is made beside its place, and renamed.
        check_output(f"{output.rstrip('/')}.part")
    flags = _with_target(command_line.rest)
    pipeline, preset_flags = with_preset(command_line, flags)
    kernels = command_line.last("prepass-kernels") or None
    if not pipeline and not preset_flags and kernels is None:
        raise PrepassError("nothing to check: give a --pipeline or a --prepass-preset")
    # Its mistakes are known before anything is compiled.
    resolve_with_kernels(pipeline, kernels, Session().context)
    before = Recipe(path, command_line.choice("compile-from", PHASES, "start"), tuple(flags))
    after = Recipe(
        path,
        before.start,
        (*preset_flags, *flags),
        pipeline,
        kernels,
        _table(command_line),
        rewrite_for=command_line.choice("rewrite-for", ("", "gfx942"), ""),
    )
    return Request(
        before,
        after,
        command_line.last("function") or None,
        _inputs(command_line),
        Tolerance(_number(command_line, "tolerance-f32", 1e-3), _number(command_line, "tolerance-f16", 2e-2)),
        not command_line.switch("no-bisect"),
        Path(command_line.last("output", "prepass-check")),
    )


def _table(command_line: CommandLine) -> str:
    path = command_line.last(TABLE_FLAG)
    if path:
        # A table that is wrong is known before anything is compiled.
        read_tuning_table(path)
    return path


def _with_target(flags: Sequence[str]) -> list[str]:
    """Flags with those for this machine's CPU where they choose no target. Raises PrepassError for another device."""
    names = {flag_name(flag) for flag in flags}
    for flag in flags:
        device = flag.partition("=")[2]
        if flag_name(flag) in DEVICE_FLAGS and device and device not in _CPU_DEVICES:
            advice = "--rewrite-for lets passes rewrite as for another target"
            raise PrepassError(f"programs are run on this machine's CPU, not on '{device}'; {advice}")
    return [*(compile_flags("local-task") if names.isdisjoint(DEVICE_FLAGS) else ()), *flags]


def _inputs(command_line: CommandLine) -> Inputs:
    files: list[str] = []
    for text in command_line.values.get("input", []):
        if not text.startswith("@"):
            raise PrepassError(f"--input takes @file.npy, not '{text}'")
        check_input(text[1:])
        files.append(text[1:])
    shapes: dict[int, tuple[int, ...]] = {}
    for text in command_line.values.get("input-shape", []):
        match = re.fullmatch(r"(\d+)=((?:\d+x)*\d+)", text)
        if match is None:
            raise PrepassError(f"--input-shape takes an argument's number and a shape, as 0=2x77, not '{text}'")
        shapes[int(match[1])] = tuple(map(int, match[2].split("x")))
    return Inputs(command_line.integer("seed", 0), command_line.integer("dynamic-size", 16, 1), shapes, tuple(files))


def _number(command_line: CommandLine, flag: str, default: float) -> float:
    text = command_line.last(flag, str(default))
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 0 <= number < 1e9:
        raise PrepassError(f"--{flag} takes a number that is not negative, not '{text}'")
    return number


@contextlib.contextmanager
def _progress() -> Iterator[OnStep]:
    """A bar on a terminal, nothing in a pipe."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    columns = (BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda text, done, total: progress.update(task, description=text, completed=done, total=total)


def _print(report: Report) -> int:
    stream = sys.stdout if report.verdict.passes else sys.stderr
    for line in report_lines(report):
        print(line, file=stream)
    if report.verdict is Verdict.VOID:
        print(f"{PROGRAM}: failed: other inputs are needed", file=sys.stderr)
    return int(not report.verdict.passes)


if __name__ == "__main__":
    sys.exit(main())

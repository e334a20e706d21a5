# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""prepass-tune: search for the best way to compile each op of a program, by a static cost model."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from iree.compiler import version as compiler_version
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

from prepass.amdgpu.inputs import with_target
from prepass.compiler.api import TABLE_FLAG
from prepass.compiler.flags import CommandLine
from prepass.errors import PrepassError
from prepass.ir.targets.tuning_table import TARGETS, TuningTable, read_tuning_table
from prepass.pipeline.registry import default_registry
from prepass.tools.common import (
    COMPILE_FLAGS,
    COMPILE_FLAGS_HELP,
    PIPELINE_FLAGS,
    PIPELINE_HELP,
    check_input,
    check_output,
    check_output_directory,
    input_source,
    load_files,
    one_input,
    read_command_line,
    remark_printer,
    run_program,
    with_preset,
    working,
    write_output,
)
from prepass.tools.tables import report_console
from prepass.tuning.benchmarks import NOT_RUN, BenchmarkOptions, write_benchmarks
from prepass.tuning.executors import DaskExecutor, Executor, LocalExecutor
from prepass.tuning.extract import Extraction, TunedOp, extract
from prepass.tuning.op_text import is_op_text, op_module
from prepass.tuning.report import STATIC, ops_table, results_table
from prepass.tuning.store import Store
from prepass.tuning.sweep import OpResult, Sweep

PROGRAM = "prepass-tune"

_FLAGS = {
    "o": True,
    "outcomes": True,
    "op": True,
    "limit": True,
    "jobs": True,
    "scheduler": True,
    "timeout": True,
    "benchmarks": True,
    "top": True,
    "list": False,
    **COMPILE_FLAGS,
    **dict.fromkeys(PIPELINE_FLAGS, True),
}
_HELP = f"""\
OVERVIEW: search for the best way to compile each op of a program for MI300, by compiling it in many ways and pricing
the code with a static cost model; nothing is run

USAGE: {PROGRAM} [options] <input .mlir or .mlirbc file>
       {PROGRAM} [options] attention:batch=20,m=4096,n=64,k1=64,k2=4096,element_type=f16

OPTIONS:
  -o <file>                      The tuning table (default: tuning.json). What a table that is there says of other
                                 ops stays. `--prepass-tuning-table=<file>` of prepass-compile uses it
  --outcomes=<file>              What has been compiled, so that it is not again: after an end of any kind, the same
                                 command goes on (default: <table>.outcomes)
  --op=<glob>                    Only ops of a kind (attention, contraction, convolution), or in dispatches, whose
                                 name matches; may be given several times
  --limit=<n>                    Ways to try for each op (default: 200)
  --jobs=<n>                     Compile so many at once, each in a process (default: one for each CPU)
  --scheduler=<address>          Compile on the workers of a Dask cluster that runs: tcp://host:8786
  --timeout=<seconds>            Give up a compilation after so long (default: 60)
  --benchmarks=<directory>       Write the best as programs to measure on a GPU, with inputs and commands
  --top=<n>                      So many of each op (default: 3)
  --list                         Show the ops, and compile no more
{PIPELINE_HELP}
{COMPILE_FLAGS_HELP}
All other options go to iree-compile. Without a target, the program is compiled for gfx942.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program."""
    return run_program(PROGRAM, _main, arguments)


def _main(arguments: list[str]) -> int:
    command_line = read_command_line(arguments, _FLAGS, _HELP, "iree-compile")
    one_input(command_line, "input file or op")
    if command_line.last(TABLE_FLAG):
        raise PrepassError(f"--{TABLE_FLAG} is for programs that use a table; -o says where this one goes")
    if command_line.last("prepass-kernels"):
        raise PrepassError("--prepass-kernels is for programs that compile in one way; each that fits is tried")
    numbers = {name: command_line.integer(name, default, 1) for name, default in _NUMBERS.items()}
    path = command_line.last("o", "tuning.json")
    load_files(command_line)
    # Mistakes come before work is spent.
    check_output(path)
    benchmarks = command_line.last("benchmarks")
    check_output_directory(benchmarks)
    kept = read_tuning_table(path) if Path(path).exists() else None
    flags = _flags(command_line)
    found = _extract(command_line, flags)
    ops = _chosen(found, command_line)
    _print_skipped(found)
    if command_line.switch("list"):
        _print(ops_table(ops))
        return 0
    options = BenchmarkOptions(found.target, tuple(flags), numbers["top"])
    results = _search(ops, command_line, numbers, options, path)
    entries = tuple(entry for result in results if (entry := result.entry()) is not None)
    table = kept or TuningTable(found.target, compiler_version.VERSION)
    write_output(path, table.with_entries(entries).text().encode())
    _print(results_table(results))
    _write_benchmarks(benchmarks, results, options)
    return 0


def _search(
    ops: Sequence[TunedOp],
    command_line: CommandLine,
    numbers: dict[str, int],
    options: BenchmarkOptions,
    path: str,
) -> list[OpResult]:
    files = tuple(str(file.resolve()) for file in default_registry().files)
    outcomes = command_line.last("outcomes", f"{path}.outcomes")
    with _executor(command_line, numbers) as executor, Store(outcomes) as store, _progress() as progress:
        sweep = Sweep(store, executor, options.target, numbers["limit"], options.flags, files, progress)
        results = sweep.run(ops)
    print(f"{sweep.compiled} compiled, {sweep.requested - sweep.compiled} known before")
    return results


_NUMBERS = {"limit": 200, "jobs": os.cpu_count() or 1, "timeout": 60, "top": 3}


def _flags(command_line: CommandLine) -> list[str]:
    flags = with_target(command_line.rest)
    return [*with_preset(command_line, flags)[1], *flags]


def _extract(command_line: CommandLine, flags: Sequence[str]) -> Extraction:
    name = command_line.positional[0]
    if is_op_text(name):
        source: str | bytes | Path = op_module(name)
    else:
        check_input(name)
        source = input_source(name)
    pipeline = with_preset(command_line, flags)[0] or None
    with working(f"compiling {name}"):
        found = extract(source, pipeline=pipeline, flags=flags, on_remark=remark_printer(command_line))
    if found.target not in TARGETS:
        known = ", ".join(TARGETS)
        raise PrepassError(f"'{name}' is not compiled for a target that can be tuned; there are {known}")
    return found


def _chosen(found: Extraction, command_line: CommandLine) -> list[TunedOp]:
    globs = command_line.values.get("op", ["*"])
    ops = [op for op in found.ops if any(fnmatch.fnmatchcase(name, glob) for name in _names(op) for glob in globs)]
    if not found.ops:
        raise PrepassError("the program has no op that can be tuned")
    if not ops:
        raise PrepassError(f"no op to tune; ops that can be tuned are {', '.join(op.name for op in found.ops)}")
    return ops


def _names(op: TunedOp) -> list[str]:
    return [op.kind, *(dispatch.name for dispatch in op.dispatches)]


def _print_skipped(found: Extraction) -> None:
    for reason in found.skipped:
        print(f"{PROGRAM}: note: left out: {reason}", file=sys.stderr)


def _executor(command_line: CommandLine, numbers: dict[str, int]) -> Executor:
    if address := command_line.last("scheduler"):
        if "jobs" in command_line.values:
            raise PrepassError("--jobs is for this machine; with --scheduler the workers have threads of their own")
        return DaskExecutor(address, numbers["timeout"])
    return LocalExecutor(numbers["jobs"], numbers["timeout"])


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """A bar, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda more, done: None
        return
    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("compiling", total=0)

        def advance(more: int, done: int) -> None:
            bar.update(task, total=(bar.tasks[0].total or 0) + more, advance=done)

        yield advance


def _write_benchmarks(directory: str, results: Sequence[OpResult], options: BenchmarkOptions) -> None:
    if directory:
        with working("writing benchmarks"):
            folders = write_benchmarks(Path(directory), results, options)
        print(f"benchmarks of {len(folders)} ops are in {directory}. {NOT_RUN}")


def _print(table: object) -> None:
    console = report_console()
    console.print(STATIC, style="dim")
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""prepass-stats: what a program costs, counted before it runs, and whether that became more."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from prepass.amdgpu.inputs import with_target
from prepass.checking.baseline import Baseline, baseline_text, compare_with_baseline, read_baseline
from prepass.checking.child import call_in_child
from prepass.checking.statistics import ProgramStatistics, measure
from prepass.checking.statistics_report import change_lines, statistics_document, statistics_report
from prepass.compiler.api import TABLE_FLAG
from prepass.compiler.flags import CommandLine
from prepass.compiler.library import set_process_flags
from prepass.errors import PrepassError
from prepass.ir.targets.tuning_table import read_tuning_table
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
    read_command_line,
    read_input,
    remark_printer,
    run_program,
    with_preset,
    working,
    write_output,
)
from prepass.tools.tables import report_console

PROGRAM = "prepass-stats"

_FLAGS = {
    "json": False,
    "all": False,
    "baseline": True,
    "update": False,
    **COMPILE_FLAGS,
    **dict.fromkeys(PIPELINE_FLAGS, True),
}
_HELP = f"""\
OVERVIEW: count a program's dispatches, memory and traffic, and estimate its roofline; nothing is run

USAGE: {PROGRAM} [options] <input .mlir or .mlirbc file, or '-' for stdin>

OPTIONS:
{PIPELINE_HELP}
  --all                          Each dispatch with its traffic, and where in the source it comes from
  --json                         As JSON
  --baseline=<file>              Compare with what was kept: exit code 1, and the new dispatches, when there are
                                 more in functions or in initializers
  --update                       Write the baseline, whatever it was before
{COMPILE_FLAGS_HELP}
All other options go to iree-compile. Without a target, the program is compiled for gfx942.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; 1 when a count is above its baseline."""
    return run_program(PROGRAM, _main, arguments)


def _main(arguments: list[str]) -> int:
    command_line = read_command_line(arguments, _FLAGS, _HELP, "iree-compile")
    path, baseline = one_input(command_line), command_line.last("baseline")
    update = command_line.switch("update")
    if update and not baseline:
        raise PrepassError("--update needs --baseline=<file>")
    check_input(path)
    # A baseline that cannot be read is known before the program is compiled.
    kept = {} if update or not baseline else read_baseline(read_input(baseline).decode(errors="replace"), baseline)
    if command_line.last(TABLE_FLAG):
        # A table changes no count: it is for what dispatches become. Its mistakes are mistakes all the same.
        read_tuning_table(command_line.last(TABLE_FLAG))
    if update:
        check_output(baseline)
    load_files(command_line)
    with working(f"compiling {path}"):
        statistics = call_in_child(_measure, input_source(path), command_line, what=f"compiling {path}")
    if update:
        write_output(baseline, baseline_text(statistics).encode())
    _print(statistics, command_line)
    return _compare(statistics, kept, baseline) if kept else 0


def _measure(source: bytes | Path, command_line: CommandLine) -> ProgramStatistics:
    """Runs in a process of its own, which takes the flags that the compiler keeps per process too."""
    flags = with_target(command_line.rest)
    pipeline, preset_flags = with_preset(command_line, flags)
    set_process_flags(PROGRAM, [*preset_flags, *flags])
    kernels = command_line.last("prepass-kernels") or None
    return measure(source, pipeline=pipeline or None, kernels=kernels, on_remark=remark_printer(command_line))


def _print(statistics: ProgramStatistics, command_line: CommandLine) -> None:
    if command_line.switch("json"):
        print(json.dumps(statistics_document(statistics), indent=2))
        return
    console = report_console()
    for part in statistics_report(statistics, in_full=command_line.switch("all")):
        console.print(part)


def _compare(statistics: ProgramStatistics, kept: Baseline, baseline: str) -> int:
    changes = compare_with_baseline(statistics, kept)
    regressions = [change for change in changes if change.regresses]
    for line in change_lines(changes):
        print(line, file=sys.stderr)
    if regressions:
        print(f"{PROGRAM}: failed: more than in '{baseline}'; --update accepts it", file=sys.stderr)
    return int(bool(regressions))


if __name__ == "__main__":
    sys.exit(main())

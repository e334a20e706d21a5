# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""prepass-isa: what the compiler made of kernels for AMD GPUs, read and priced without a GPU."""

from __future__ import annotations

import fnmatch
import json
import shlex
import sys
from collections.abc import Sequence

from rich.text import Text

from prepass.amdgpu.compare import Comparison, compare_kernels
from prepass.amdgpu.compare_report import SCREEN, comparison_report
from prepass.amdgpu.conditions import OLD_PREFIX, Condition, parse_condition
from prepass.amdgpu.documents import comparison_document, kernels_document
from prepass.amdgpu.figures import KernelFigures
from prepass.amdgpu.inputs import CompileOptions, read_program
from prepass.amdgpu.mca import McaReport, analyse
from prepass.amdgpu.metrics import LOOP_METRICS, LOOP_PREFIX, METRIC_NAMES, METRICS, metrics_of
from prepass.amdgpu.report import STATIC, kernel_report, kernels_table
from prepass.compiler.api import TABLE_FLAG
from prepass.compiler.flags import CommandLine, split_command_line
from prepass.errors import PrepassError, did_you_mean
from prepass.tools.common import (
    COMPILE_FLAGS,
    COMPILE_FLAGS_HELP,
    PIPELINE_FLAGS,
    PIPELINE_HELP,
    check_input,
    input_source,
    load_files,
    one_input,
    pipeline_text,
    read_command_line,
    remark_printer,
    run_program,
    working,
)
from prepass.tools.tables import report_console

PROGRAM = "prepass-isa"

_COMPILE = {**COMPILE_FLAGS, **dict.fromkeys(PIPELINE_FLAGS, True)}
_FLAGS = {
    "compare": False,
    "flags-a": True,
    "flags-b": True,
    "json": False,
    "all": False,
    "mca": False,
    "kernel": True,
    "sort": True,
    "fail-if": True,
    "metrics": False,
    **_COMPILE,
}
# With more kernels than these, a line for each.
_IN_FULL = 6
_HELP = f"""\
OVERVIEW: read and price the kernels of a program for AMD GPUs; nothing is run

USAGE: {PROGRAM} [options] <input .mlir, .mlirbc, .vmfb, .hsaco or .rocmasm file>
       {PROGRAM} --compare [options] <A> <B>
       {PROGRAM} --compare [options] --flags-a=<flags> --flags-b=<flags> <input>

OPTIONS:
  --compare                      Show two inputs, or two ways to compile one, side by side
  --flags-a=<flags>              More flags for A, --pipeline among them, in one string
  --flags-b=<flags>              The same for B
{PIPELINE_HELP}
  --kernel=<glob>                Only kernels whose name matches; may be given several times
  --sort=<metric>                The most of a metric first; with --compare of B's
  --all                          Every kernel and every difference in full
  --mca                          Let llvm-mca of an installed LLVM analyse the hottest loops as well
  --json                         As JSON
  --fail-if=<condition>          Exit with 1 when it holds for a kernel: 'spills > 0', 'loop.valu > 4 * loop.mfma';
                                 may be given several times; with --compare for those of B, 'old.' means A:
                                 'spills > old.spills'
  --metrics                      List the metrics that --sort and --fail-if take
{COMPILE_FLAGS_HELP}
All other options go to iree-compile. Without a target, MLIR is compiled for gfx942.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; 1 when a condition holds."""
    return run_program(PROGRAM, _main, arguments)


def _main(arguments: list[str]) -> int:
    command_line = read_command_line(arguments, _FLAGS, _HELP, "iree-compile")
    if command_line.switch("metrics"):
        _print_metrics()
        return 0
    conditions = [parse_condition(text) for text in command_line.values.get("fail-if", [])]
    _check_sort(command_line.last("sort"))
    load_files(command_line)
    if command_line.switch("compare"):
        return _compare(command_line, conditions)
    return _report(command_line, conditions)


def _report(command_line: CommandLine, conditions: list[Condition]) -> int:
    for flag in ("flags-a", "flags-b"):
        if flag in command_line.values:
            raise PrepassError(f"--{flag} needs --compare")
    for condition in conditions:
        if condition.compares:
            raise PrepassError(f"condition '{condition.text}': '{OLD_PREFIX}' needs --compare")
    kernels = _select(_read(one_input(command_line), command_line), command_line)
    in_full = command_line.switch("all") or len(kernels) <= _IN_FULL
    mca: dict[str, McaReport] = {}
    if command_line.switch("mca"):
        mca = {f.name: analyse(f.hottest.instructions, f.architecture) for f in kernels if f.hottest}
    if command_line.switch("json"):
        print(json.dumps(kernels_document(kernels, mca), indent=2))
    else:
        console = report_console()
        console.print(Text(STATIC, style="dim"))
        if in_full:
            for figures in kernels:
                console.print(kernel_report(figures, mca.get(figures.name), bars=console.is_terminal))
        else:
            console.print(kernels_table(kernels))
            console.print(Text("--kernel=<glob> shows kernels in full, --all does all of them", style="dim"))
    return _check(conditions, [(f, metrics_of(f)) for f in kernels])


def _compare(command_line: CommandLine, conditions: list[Condition]) -> int:
    paths = command_line.positional
    variants = [_split(command_line, flag) for flag in ("flags-a", "flags-b")]
    if len(paths) == 1 and not any(flag in command_line.values for flag in ("flags-a", "flags-b")):
        raise PrepassError("--compare needs two inputs, or one with --flags-a or --flags-b")
    if len(paths) not in (1, 2):
        raise PrepassError(f"--compare needs one or two inputs, got {len(paths)}")
    if command_line.switch("mca"):
        raise PrepassError("--mca cannot be used with --compare")
    old, new = (
        _read(path, _with_flags(command_line, flags))
        for path, flags in zip((paths[0], paths[-1]), variants, strict=True)
    )
    comparison = _select_pairs(compare_kernels(old, new), command_line)
    names = tuple(" ".join([path, *flags]) for path, flags in zip((paths[0], paths[-1]), variants, strict=True))
    if command_line.switch("json"):
        print(json.dumps(comparison_document(comparison, names), indent=2))
    else:
        _print_comparison(comparison, names, command_line.switch("all"))
    return _check(conditions, _comparable(comparison, conditions))


def _print_comparison(comparison: Comparison, names: tuple[str, str], everything: bool) -> None:
    console = report_console()
    for letter, name in zip("AB", names, strict=True):
        console.print(Text(f"{letter} is {name}", overflow="ellipsis", no_wrap=True))
    console.print(Text(STATIC, style="dim"))
    screen = console.height if console.is_terminal else SCREEN
    lines = None if everything else max(screen, 20) - 4
    for part in comparison_report(comparison, bars=console.is_terminal, lines=lines):
        console.print(part)


def _comparable(comparison: Comparison, conditions: list[Condition]) -> list[tuple[KernelFigures, dict[str, float]]]:
    pairs = [
        (pair.new, metrics_of(pair.new) | {OLD_PREFIX + n: v for n, v in metrics_of(pair.old).items()})
        for pair in comparison.pairs
    ]
    if any(condition.compares for condition in conditions):
        for figures in comparison.only_new:
            print(
                f"{PROGRAM}: note: {figures.name} has no counterpart in A; conditions with '{OLD_PREFIX}' skip it",
                file=sys.stderr,
            )
    return pairs + [(figures, metrics_of(figures)) for figures in comparison.only_new]


def _check(conditions: list[Condition], kernels: list[tuple[KernelFigures, dict[str, float]]]) -> int:
    failed = False
    for condition in conditions:
        for figures, values in kernels:
            if condition.compares and not any(name.startswith(OLD_PREFIX) for name in values):
                continue
            if condition.holds(values):
                failed = True
                found = ", ".join(f"{name} = {values[name]:g}" for name in sorted(condition.metrics))
                print(f"{PROGRAM}: failed: {figures.name}: {condition.text} ({found})", file=sys.stderr)
    return 1 if failed else 0


def _read(path: str, command_line: CommandLine) -> list[KernelFigures]:
    check_input(path)
    options = CompileOptions(
        pipeline=pipeline_text(command_line) or None,
        preset=command_line.last("prepass-preset") or None,
        kernels=command_line.last("prepass-kernels") or None,
        tuning_table=command_line.last(TABLE_FLAG) or None,
        flags=command_line.rest,
        on_remark=remark_printer(command_line) if "prepass-remarks" in command_line.values else None,
    )
    with working(f"reading {path}"):
        return read_program(input_source(path), options)


def _select(kernels: list[KernelFigures], command_line: CommandLine) -> list[KernelFigures]:
    chosen = [figures for figures in kernels if _is_wanted(figures, command_line)]
    if not chosen:
        raise _nothing_matches(kernels, command_line)
    if metric := command_line.last("sort"):
        chosen.sort(key=lambda f: metrics_of(f).get(metric, 0), reverse=True)
    return chosen


def _select_pairs(comparison: Comparison, command_line: CommandLine) -> Comparison:
    """What has a kernel that is wanted on either side."""
    pairs = [p for p in comparison.pairs if _is_wanted(p.old, command_line) or _is_wanted(p.new, command_line)]
    only_old, only_new = (
        tuple(figures for figures in side if _is_wanted(figures, command_line))
        for side in (comparison.only_old, comparison.only_new)
    )
    if not (pairs or only_old or only_new):
        kernels = [pair.new for pair in comparison.pairs] + [*comparison.only_old, *comparison.only_new]
        raise _nothing_matches(kernels, command_line)
    if metric := command_line.last("sort"):
        pairs.sort(key=lambda pair: metrics_of(pair.new).get(metric, 0), reverse=True)
    return Comparison(tuple(pairs), only_old, only_new)


def _is_wanted(figures: KernelFigures, command_line: CommandLine) -> bool:
    return any(fnmatch.fnmatchcase(figures.name, glob) for glob in command_line.values.get("kernel", ["*"]))


def _nothing_matches(kernels: Sequence[KernelFigures], command_line: CommandLine) -> PrepassError:
    names = ", ".join(figures.name for figures in kernels[:3]) + (", …" if len(kernels) > 3 else "")
    return PrepassError(f"no kernel matches {' or '.join(command_line.values['kernel'])}; there are {names}")


def _check_sort(metric: str) -> None:
    if metric and metric not in METRIC_NAMES:
        raise PrepassError(f"--sort: unknown metric '{metric}'{did_you_mean(metric, METRIC_NAMES)}")


def _split(command_line: CommandLine, flag: str) -> list[str]:
    """The flags in the value of `--flags-a` or `--flags-b`."""
    try:
        return shlex.split(command_line.last(flag))
    except ValueError as error:
        raise PrepassError(f"--{flag}: {error}") from None


def _with_flags(command_line: CommandLine, flags: Sequence[str]) -> CommandLine:
    """The command line with more flags; what is given for one side wins."""
    more = split_command_line(flags, _COMPILE, "iree-compile")
    if more.positional:
        raise PrepassError(f"'{more.positional[0]}' in --flags-a or --flags-b is no flag")
    values = command_line.values | more.values
    if any(flag in more.values for flag in PIPELINE_FLAGS):
        values = {n: v for n, v in values.items() if n not in PIPELINE_FLAGS or n in more.values}
    return CommandLine(values, command_line.positional, [*command_line.rest, *more.rest])


def _print_metrics() -> None:
    for name, metric in METRICS.items():
        both = f"{name}, {LOOP_PREFIX}{name}" if name in LOOP_METRICS else name
        print(f"{both}\t{metric.help}")


if __name__ == "__main__":
    sys.exit(main())

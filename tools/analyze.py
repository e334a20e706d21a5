# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""prepass-analyze: what is wrong with the graph of a model, and what a preset does about it."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Sequence

from rich.console import Console

from prepass.amdgpu.inputs import with_target
from prepass.analysis.analyze import Analysis, analyze
from prepass.analysis.document import analysis_document
from prepass.analysis.html_report import html_report
from prepass.analysis.text_report import analysis_report
from prepass.compiler.flags import CommandLine
from prepass.tools.common import (
    PIPELINE_FLAGS,
    PREPASS_FLAGS,
    PREPASS_FLAGS_HELP,
    check_input,
    check_output,
    input_source,
    load_files,
    one_input,
    pipeline_text,
    read_command_line,
    remark_printer,
    run_program,
    write_output,
)
from prepass.tools.tables import report_console

PROGRAM = "prepass-analyze"

_FLAGS = {
    "json": False,
    "measure": False,
    "html": True,
    "places": True,
    "prepass-preset": True,
    **PREPASS_FLAGS,
    **dict.fromkeys(PIPELINE_FLAGS, True),
}
_HELP = f"""\
OVERVIEW: find the issues in the graph of a model, and what passes do about them; nothing is run

USAGE: {PROGRAM} [options] <input .mlir or .mlirbc file>

OPTIONS:
  --prepass-preset=<name>        The named pipeline to analyse, with the flags that belong to it; without one it is
                                 prepass-default, which has none
  --pipeline=<text>              The pipeline in its place: 'builtin.module(...)';
                                 --iree-preprocessing-pass-pipeline and --pass-pipeline are the same
  --html=<file>                  Write a report with the dispatch graphs, one file that needs no network
  --json                         As JSON, with each dispatch and each place
  --measure                      Compile once more for each issue without the passes that fix it, to tell what they save
  --places=<number>              How many places of each issue to print (default: 3)
{PREPASS_FLAGS_HELP}
All other options go to iree-compile. Without a target, the model is compiled for gfx942.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program."""
    return run_program(PROGRAM, _main, arguments)


def _main(arguments: list[str]) -> int:
    command_line = read_command_line(arguments, _FLAGS, _HELP, "iree-compile")
    path = one_input(command_line)
    places = command_line.integer("places", 3, 0)
    html = command_line.last("html")
    check_input(path)
    if html:
        check_output(html)
    load_files(command_line)
    analysis = _analyze(path, command_line)
    if html:
        write_output(html, html_report(analysis).encode())
    if command_line.switch("json"):
        print(json.dumps(analysis_document(analysis), indent=2))
    elif html != "-":
        _print(analysis, places)
    return 0


def _analyze(path: str, command_line: CommandLine) -> Analysis:
    console = Console(stderr=True)
    with console.status("starting") if console.is_terminal else contextlib.nullcontext() as status:
        return analyze(
            input_source(path),
            preset=command_line.last("prepass-preset") or None,
            pipeline=pipeline_text(command_line) or None,
            flags=with_target(command_line.rest),
            measure=command_line.switch("measure"),
            on_remark=remark_printer(command_line),
            progress=status.update if status else lambda _: None,
        )


def _print(analysis: Analysis, places: int) -> None:
    console = report_console()
    for part in analysis_report(analysis, places=places):
        console.print(part)


if __name__ == "__main__":
    sys.exit(main())

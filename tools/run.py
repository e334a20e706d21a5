# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""prepass-run: iree-run-module that also takes MLIR and a pass pipeline."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from iree import _runtime_libs

from prepass.compiler.api import TABLE_FLAG, compile
from prepass.compiler.flags import CommandLine
from prepass.errors import PrepassError
from prepass.ir.parse import is_vmfb
from prepass.ir.targets.devices import compile_flags
from prepass.tools.common import (
    COMPILE_FLAGS,
    COMPILE_FLAGS_HELP,
    PIPELINE_FLAGS,
    PIPELINE_HELP,
    check_input,
    load_files,
    one_input,
    pipeline_text,
    read_command_line,
    read_input,
    remark_printer,
    run_program,
    working,
)

PROGRAM = "prepass-run"
STOCK = "iree-run-module"

_FLAGS = {**dict.fromkeys(PIPELINE_FLAGS, True), "compile-flag": True, "device": True, **COMPILE_FLAGS}
# What a program that is compiled already cannot be given.
_HOW_TO_COMPILE = ("prepass-preset", "prepass-kernels", TABLE_FLAG)
_HELP = f"""\
OVERVIEW: compile with a pass pipeline, if the input is MLIR, and run with {STOCK}

USAGE: {PROGRAM} [options] <input .mlir, .mlirbc or .vmfb file>

OPTIONS:
  --device=<uri>                 Where to run (default: local-task). It also picks the compilation target of MLIR:
                                 local-task, local-sync   llvm-cpu, for this machine's CPU
                                 hip                      ROCm; name the GPU with --compile-flag
{PIPELINE_HELP}
  --compile-flag=<flag>          A flag of iree-compile; may be given several times
{COMPILE_FLAGS_HELP}
All other options go to {STOCK}; among them:
  --function=<name>              The function to call
  --input=<value>                One for each argument: 2x3xf32=1 2 3 4 5 6, @file.npy, ...
  --output=<file>                Where to write each result
  --expected_output=<value>      Compare each result; exit code 1 when one differs

To run on an MI300, on a machine that has one:
  {PROGRAM} model.mlir --device=hip --compile-flag=--iree-rocm-target=gfx942 \\
      --pipeline='builtin.module(prepass-raise-attention)' --function=main --input=...
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit code is iree-run-module's."""
    return run_program(PROGRAM, _main, arguments)


def _main(arguments: list[str]) -> int:
    command_line = read_command_line(arguments, _FLAGS, _HELP)
    path = one_input(command_line)
    load_files(command_line)
    check_input(path)
    with tempfile.TemporaryDirectory(prefix="prepass-run-") as directory:
        return _run(path if path != "-" else _keep_input(directory), command_line, Path(directory, "module.vmfb"))


def _keep_input(directory: str) -> str:
    """A file with what standard input holds, for the programs that read it one after the other."""
    path = Path(directory, "stdin")
    path.write_bytes(read_input("-"))
    return str(path)


def _run(path: str, command_line: CommandLine, program: Path) -> int:
    if _is_compiled(path):
        if any(command_line.last(flag) for flag in (*PIPELINE_FLAGS, *_HOW_TO_COMPILE)):
            raise PrepassError(f"'{path}' is compiled already; a pass pipeline, kernels and a tuning table need MLIR")
        return _run_module(path, command_line)
    with working(f"compiling {path}"):
        program.write_bytes(_compile(Path(path), command_line))
    return _run_module(str(program), command_line)


def _is_compiled(path: str) -> bool:
    with open(path, "rb") as file:
        return is_vmfb(file.read(4))


def _compile(source: Path, command_line: CommandLine) -> bytes:
    return compile(
        source,
        pipeline=pipeline_text(command_line) or None,
        preset=command_line.last("prepass-preset") or None,
        kernels=command_line.last("prepass-kernels") or None,
        tuning_table=command_line.last(TABLE_FLAG) or None,
        flags=[*compile_flags(_devices(command_line)[0]), *command_line.values.get("compile-flag", [])],
        on_remark=remark_printer(command_line),
    )


def _devices(command_line: CommandLine) -> list[str]:
    return command_line.values.get("device", ["local-task"])


def _run_module(program: str, command_line: CommandLine) -> int:
    tool = Path(_runtime_libs.__file__).with_name(STOCK)
    devices = [f"--device={device}" for device in _devices(command_line)]
    return subprocess.call([str(tool), f"--module={program}", *devices, *command_line.rest])


if __name__ == "__main__":
    sys.exit(main())

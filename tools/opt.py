# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""prepass-opt: iree-opt whose pass pipelines know prepass passes."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.api import Session

from prepass.compiler.compilation import Compilation
from prepass.compiler.flags import CommandLine, split_command_line
from prepass.compiler.library import new_session, set_process_flags
from prepass.errors import CompileError, PrepassError
from prepass.ir.targets.devices import flag_name
from prepass.pipeline.base import RemarkHandler
from prepass.pipeline.manager import Instrumentation
from prepass.pipeline.registry import default_registry
from prepass.pipeline.resolve import Nest, mentions_prepass, resolve_pipeline
from prepass.tools.common import (
    PREPASS_FLAGS,
    PREPASS_FLAGS_HELP,
    become_stock,
    check_input,
    check_output,
    load_files,
    read_command_line,
    read_input,
    remark_printer,
    run_program,
    write_output,
)
from prepass.tools.split import split_source
from prepass.tools.verify_diagnostics import Checker

PROGRAM = "prepass-opt"
STOCK = "iree-opt"

_FLAGS = {
    "o": True,
    "pass-pipeline": True,
    "split-input-file": False,
    "verify-diagnostics": False,
    "verify-each": False,
    "emit-bytecode": False,
    "allow-unregistered-dialect": False,
    "mlir-print-ir-before-all": False,
    "mlir-print-ir-after-all": False,
    "mlir-print-ir-after-change": False,
    "mlir-timing": False,
    "mlir-pass-statistics": False,
    **PREPASS_FLAGS,
}
# They select passes by name inside the compiler's own pass manager, which is not the one that runs here.
_UNSUPPORTED = ("mlir-print-ir-before", "mlir-print-ir-after", "mlir-print-ir-after-failure", "pass-pipeline-file")
_HELP = f"""\
OVERVIEW: iree-opt, with prepass passes and pipelines in --pass-pipeline

USAGE: {PROGRAM} [options] [input file, or '-' for stdin, the default]

OPTIONS:
  -o <file>                      Write to a file instead of standard output
  --pass-pipeline=<text>         The passes to run: 'builtin.module(...)'
  --split-input-file             Process the parts between '// -----' lines one by one
  --verify-diagnostics           Check diagnostics and remarks against expected-error, -warning, -remark
                                 and -note comments instead of printing them
  --verify-each=<bool>           Verify the IR after each pass that reports a rewrite, and at the end (default: true)
  --emit-bytecode                Write MLIR bytecode; bytecode input is recognized by itself
  --allow-unregistered-dialect   Accept ops that no dialect has registered
  --mlir-print-ir-before-all     Print the IR before each pass
  --mlir-print-ir-after-all      Print the IR after each pass
  --mlir-print-ir-after-change   Print the IR after each pass that changed it
  --mlir-timing                  Report the time of each pass
  --mlir-pass-statistics         Report the statistics and counters of each pass
{PREPASS_FLAGS_HELP}
Other options, such as --mlir-print-debuginfo, go to the compiler's printer and parser.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit code is 0 when every part was processed."""
    return run_program(PROGRAM, _main, arguments)


def main_as_iree_opt(arguments: Sequence[str]) -> int:
    """Run what the user called iree-opt: the stock program, unless a pipeline names prepass passes."""
    return run_program(STOCK, _main_as_iree_opt, arguments)


def _main_as_iree_opt(arguments: list[str]) -> int:
    command_line = split_command_line(arguments, _FLAGS, STOCK)
    load_files(command_line)
    pipeline = command_line.last("pass-pipeline")
    if pipeline and mentions_prepass(pipeline, default_registry()):
        return _main(arguments)
    return become_stock(STOCK, arguments)


def _main(arguments: list[str]) -> int:
    command_line = read_command_line(arguments, _FLAGS, _HELP, STOCK)
    _check(command_line)
    load_files(command_line)
    set_process_flags(PROGRAM, command_line.rest)
    session = new_session()
    pipeline = resolve_pipeline(
        command_line.last("pass-pipeline", "builtin.module()"), default_registry(), session.context
    )
    source = read_input(command_line.positional[0] if command_line.positional else "-")
    job = _Job(command_line, session, pipeline)
    parts = split_source(source) if command_line.switch("split-input-file") else [source]
    outputs = [job.run(part) for part in parts]
    if all(output is not None for output in outputs):
        write_output(command_line.last("o", "-"), job.join([output for output in outputs if output is not None]))
        return 0
    return 1


def _check(command_line: CommandLine) -> None:
    if len(command_line.positional) > 1:
        raise PrepassError(f"expected one input file, got {len(command_line.positional)}")
    for flag in command_line.rest:
        name = flag_name(flag)
        if name in _UNSUPPORTED:
            raise PrepassError(f"--{name} is not supported; see --help for what is")
    if command_line.positional:
        check_input(command_line.positional[0])
    check_output(command_line.last("o", "-"))


@dataclass
class _Job:
    """What to do with each part of the input."""

    command_line: CommandLine
    session: Session
    pipeline: Nest

    def run(self, source: bytes) -> bytes | None:
        """The output for one part, or None when it failed and has been reported."""
        try:
            if self.command_line.switch("verify-diagnostics"):
                return self.verify(source)
            with Compilation(self.session, source, self.name, print_diagnostics=True) as compilation:
                self.transform(compilation, remark_printer(self.command_line))
                return self.print(compilation.module)
        except CompileError as error:
            print(f"{PROGRAM}: error: {error}", file=sys.stderr)
            return None

    def verify(self, source: bytes) -> bytes | None:
        """Compare diagnostics and remarks with the comments; the output is empty, as in mlir-opt."""
        checker = Checker(source.decode(errors="replace"), self.name)
        try:
            with Compilation(self.session, source, self.name) as compilation:
                self.transform(compilation, checker.on_remark)
                diagnostics = compilation.diagnostics
        except CompileError as error:
            diagnostics = list(error.diagnostics)
        mismatches = checker.mismatches(diagnostics)
        for mismatch in mismatches:
            print(mismatch, file=sys.stderr)
        return None if mismatches else b""

    def transform(self, compilation: Compilation, on_remark: RemarkHandler) -> None:
        switch = self.command_line.switch
        instrumentation = Instrumentation(
            print_before_all=switch("mlir-print-ir-before-all"),
            print_after_all=switch("mlir-print-ir-after-all"),
            print_after_change=switch("mlir-print-ir-after-change"),
            timing=switch("mlir-timing"),
            statistics=switch("mlir-pass-statistics"),
            verify=switch("verify-each", True),
        )
        compilation.run_pipeline(self.pipeline, instrumentation=instrumentation, on_remark=on_remark)

    def print(self, module: ir.Operation) -> bytes:
        if self.command_line.switch("emit-bytecode"):
            buffer = io.BytesIO()
            module.write_bytecode(buffer)
            return buffer.getvalue()
        return str(module).encode() + b"\n"

    def join(self, outputs: list[bytes]) -> bytes:
        return b"// -----\n".join(outputs)

    @property
    def name(self) -> str:
        path = self.command_line.positional[0] if self.command_line.positional else "-"
        return "<stdin>" if path == "-" else path


if __name__ == "__main__":
    sys.exit(main())

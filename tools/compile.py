# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""prepass-compile: iree-compile whose preprocessing pipeline knows prepass passes."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from iree.compiler.api import Output, Session
from iree.compiler.api.ctypes_dl import PipelineType

from prepass.compiler.api import TABLE_FLAG
from prepass.compiler.compilation import Compilation, Hook
from prepass.compiler.flags import CommandLine, split_command_line
from prepass.compiler.library import (
    PHASES,
    dump_phases_to,
    new_session,
    output_c_source,
    set_process_flags,
    set_verify,
    setup_remarks,
)
from prepass.errors import PrepassError
from prepass.ir.targets.devices import flag_name
from prepass.pipeline.base import PREPROCESSING
from prepass.pipeline.kernels import parse_kernels, resolve_with_kernels
from prepass.pipeline.manager import Instrumentation
from prepass.pipeline.registry import default_registry
from prepass.pipeline.resolve import ROOT, Nest, mentions_prepass, resolve_pipeline
from prepass.pipeline.tuned import read_table
from prepass.tools.common import (
    COMPILE_FLAGS,
    COMPILE_FLAGS_HELP,
    become_stock,
    check_input,
    check_output,
    load_files,
    read_input,
    remark_printer,
    run_program,
    whole_output,
    with_preset,
    working,
)
from prepass.tools.split import split_source

PROGRAM = "prepass-compile"
STOCK = "iree-compile"

_PIPELINE = "iree-preprocessing-pass-pipeline"
_KERNELS = "prepass-kernels"
_OTHER_PREPROCESSING = ("iree-preprocessing-transform-spec-filename", "iree-preprocessing-pdl-spec-filename")
# What iree-compile's own main takes, and whether each takes a value. The library does not know these.
_DRIVER_FLAGS = {
    "o": True,
    "output-format": True,
    "compile-mode": True,
    "compile-from": True,
    "compile-to": True,
    "dump-compilation-phases-to": True,
    "emit-mlir-bytecode-version": True,
    "remarks-filter": True,
    "remarks-output-file": True,
    "verify": False,
    "emit-mlir-bytecode": False,
    "split-input-file": False,
}
_OWN_FLAGS = {**_DRIVER_FLAGS, **COMPILE_FLAGS, _PIPELINE: True, **dict.fromkeys(_OTHER_PREPROCESSING, True)}
_MODES = {"std": PipelineType.IREE_COMPILER_PIPELINE_STD, "precompile": PipelineType.IREE_COMPILER_PIPELINE_PRECOMPILE}
_HELP = f"""\
OVERVIEW: iree-compile, with prepass passes and pipelines in --{_PIPELINE}

USAGE: {PROGRAM} [options] <input file or '-' for stdin>

PREPASS OPTIONS:
{COMPILE_FLAGS_HELP}
All options of {STOCK} follow.
"""
_REPORTS = {
    "print_before_all": "mlir-print-ir-before-all",
    "print_after_all": "mlir-print-ir-after-all",
    "print_after_change": "mlir-print-ir-after-change",
    "timing": "mlir-timing",
    "statistics": "mlir-pass-statistics",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit code is iree-compile's."""
    return run_program(PROGRAM, _main, arguments)


def main_as_iree_compile(arguments: Sequence[str]) -> int:
    """Run what the user called iree-compile."""
    return run_program(STOCK, _main, arguments)


def _main(arguments: list[str]) -> int:
    command_line = split_command_line(arguments, _OWN_FLAGS, STOCK)
    if not {"-h", "--help", "-help", "--help-hidden"}.isdisjoint(command_line.rest):
        print(_HELP, flush=True)
    load_files(command_line)
    # Its mistakes come before it is known whether any pass runs.
    remark_printer(command_line)
    pipeline, flags = with_preset(command_line, command_line.rest)
    command_line.rest[:0] = flags
    if command_line.last(TABLE_FLAG):
        # Its mistakes come before anything is compiled.
        read_table(command_line.last(TABLE_FLAG))
    kernels = command_line.last(_KERNELS) or None
    if not _runs_here(command_line, pipeline, kernels):
        return become_stock(STOCK, [*flags, *arguments])
    if len(command_line.positional) != 1:
        raise PrepassError(f"expected one input file, got {len(command_line.positional)}")
    check_input(command_line.positional[0])
    check_output(command_line.last("o", "-"))
    # The compiler parses these for the process, so that flags it keeps globally count too.
    set_process_flags(PROGRAM, command_line.rest)
    session = new_session()
    resolved = resolve_with_kernels(pipeline, kernels, session.context)
    return _Driver(command_line, session, resolved or Nest(ROOT, ())).run()


def _runs_here(command_line: CommandLine, pipeline: str, kernels: str | None) -> bool:
    """Whether prepass passes are to run; checks the pipeline in any case, which iree-compile does not."""
    tuned = bool(command_line.last(TABLE_FLAG))
    selects = kernels is not None and parse_kernels(kernels) != ("none",)
    if not tuned and not selects and not (pipeline and mentions_prepass(pipeline, default_registry())):
        if pipeline:
            resolve_pipeline(pipeline, default_registry(), Session().context)
        return False
    return command_line.last("compile-mode", "std") in _MODES


class _Driver:
    """What iree-compile's main does, with a stop at the preprocessing phase."""

    def __init__(self, command_line: CommandLine, session: Session, pipeline: Nest) -> None:
        self.command_line = command_line
        self.session = session
        self.pipeline = pipeline
        self.mode = _MODES[command_line.choice("compile-mode", tuple(_MODES), "std")]
        self.start = command_line.choice("compile-from", PHASES, "start")
        self.stop = command_line.choice("compile-to", PHASES, "end")
        self.format = command_line.choice("output-format", ("vm-bytecode", "vm-asm", "vm-c"), "vm-bytecode")
        self.output = command_line.last("o", "-")
        # Without the flag, the compiler's own.
        self.bytecode_version = command_line.integer("emit-mlir-bytecode-version", -1)

    def run(self) -> int:
        path = self.command_line.positional[0]
        source = read_input(path)
        name = "<stdin>" if path == "-" else path
        chunks = split_source(source) if self.command_line.switch("split-input-file") else [source]
        if self.output == "-":
            return self.compile_all(chunks, name, Output.open_file("-"))
        with whole_output(self.output) as temporary:
            return self.compile_all(chunks, name, Output.open_file(temporary))

    def compile_all(self, chunks: list[bytes], name: str, output: Output) -> int:
        for chunk in chunks:
            self.compile(chunk, name, output)
        output.keep()
        output.close()
        return 0

    def compile(self, source: bytes, name: str, output: Output) -> None:
        with Compilation(self.session, source, name, start=self.start, print_diagnostics=True) as compilation:
            self.configure(compilation)
            hooks = self.hooks(compilation)
            with working(f"compiling {name}"):
                compilation.advance_with_hooks(self.stop, hooks, self.mode)
            self.write(compilation, output)

    def configure(self, compilation: Compilation) -> None:
        invocation = compilation.invocation
        set_verify(invocation, self.command_line.switch("verify", True))
        dump_phases_to(invocation, self.command_line.last("dump-compilation-phases-to"))
        if pattern := self.command_line.last("remarks-filter"):
            setup_remarks(invocation, pattern, self.command_line.last("remarks-output-file", "mlir-remarks.yaml"))

    def hooks(self, compilation: Compilation) -> dict[str, list[Hook]]:
        """The pipeline where iree-compile would run it, its later passes, and other preprocessing that flags name."""
        hooks = compilation.pipeline_hooks(
            self.pipeline,
            instrumentation=_instrumentation(self.command_line),
            on_remark=remark_printer(self.command_line),
            tuning_table=self.command_line.last(TABLE_FLAG),
        )
        hooks.setdefault(PREPROCESSING, []).append(lambda _: self.apply_specs(compilation))
        return hooks

    def apply_specs(self, compilation: Compilation) -> None:
        for flag in _OTHER_PREPROCESSING:
            if path := self.command_line.last(flag):
                self.session.set_flags(f"--{flag}={path}")
                compilation.phase = "abi"
        if compilation.phase == "abi":
            compilation.advance("preprocessing", self.mode)

    def write(self, compilation: Compilation, output: Output) -> None:
        precompiled = self.mode == PipelineType.IREE_COMPILER_PIPELINE_PRECOMPILE
        if self.stop != "end" or precompiled or self.format == "vm-asm":
            if self.command_line.switch("emit-mlir-bytecode"):
                compilation.invocation.output_ir_bytecode(output, self.bytecode_version)
            else:
                compilation.invocation.output_ir(output)
        elif self.format == "vm-c":
            output_c_source(compilation.invocation, output)
        else:
            compilation.write(output)


def _instrumentation(command_line: CommandLine) -> Instrumentation:
    """The reports that the compiler's own pass managers make, for ours too."""
    given = {flag_name(flag) for flag in command_line.rest}
    wanted = {field: flag in given for field, flag in _REPORTS.items()}
    return Instrumentation(**wanted, verify=command_line.switch("verify", True))


if __name__ == "__main__":
    sys.exit(main())

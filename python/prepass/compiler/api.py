# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass.compile`: from a module to a program, with a prepass pipeline on the way."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from iree.compiler.api import Session

from prepass.compiler.compilation import Compilation, Hook
from prepass.compiler.library import PHASES, new_session
from prepass.errors import CompileError, PrepassError
from prepass.ir.parse import ModuleSource, read_module
from prepass.pipeline.base import RemarkHandler
from prepass.pipeline.builder import Pipeline
from prepass.pipeline.kernels import parse_kernels, resolve_with_kernels
from prepass.pipeline.registry import default_registry
from prepass.pipeline.resolve import ROOT, Nest
from prepass.pipeline.tuned import read_table

TABLE_FLAG = "prepass-tuning-table"


def compile(
    source: ModuleSource,
    *,
    pipeline: str | Pipeline | None = None,
    preset: str | None = None,
    kernels: str | Sequence[str] | None = None,
    flags: Sequence[str] = (),
    hooks: Mapping[str, Hook] | None = None,
    on_remark: RemarkHandler | None = None,
    start: str = "start",
    tuning_table: str | Path | None = None,
) -> bytes:
    """Compile a module for IREE.

    Args:
      source: A module (it is copied, not edited), MLIR text, bytecode, or a path.
        A string with a line break is text, any other string is a path.
      pipeline: Runs where IREE's preprocessing pipeline does, target devices assigned.
      preset: A named pipeline, run where `pipeline` would be, and compiled with
        the flags that belong to it. A `pipeline` or a flag that is given wins.
      kernels: The kernels to choose from, "none", "default", "all" or names, instead of those that the
        pipeline chooses from. See `prepass-select-kernels`.
      flags: Any flags of iree-compile that say how to compile. Flags that the
        compiler keeps per process, such as `--mlir-timing`, are honoured by
        compiling in a process of its own; hooks cannot follow it there.
      hooks: Called with the module after the phase they are listed under.
      on_remark: Called with each remark of a prepass pass and its location.
      start: The phase that the module has been through already, as `--compile-from`.
      tuning_table: A file of `prepass-tune`, for the passes that read one; they
        run whether or not the pipeline names them.

    Returns:
      The contents of a .vmfb file.

    Raises:
      PipelineError: The pipeline names what does not exist, or cannot be parsed.
      CompileError: The compiler's diagnostics, with their locations.
      PrepassError: Anything else that is wrong with the arguments.
    """
    request = _Request.make(source, pipeline, preset, kernels, flags, start, tuning_table)
    _check_phases([start, *(hooks or {})])
    session = new_session()
    if flag := _process_flag(session, request.flags):
        if hooks or on_remark:
            raise _unusable(flag, "compiling with hooks or remarks")
        return _compile_in_process(request)
    with request.advance(session, "end", hooks or {}, on_remark) as compilation:
        return compilation.bytecode()


def compile_to(
    source: ModuleSource,
    stop: str,
    *,
    pipeline: str | Pipeline | None = None,
    preset: str | None = None,
    kernels: str | Sequence[str] | None = None,
    flags: Sequence[str] = (),
    hooks: Mapping[str, Hook],
    on_remark: RemarkHandler | None = None,
    start: str = "start",
) -> None:
    """Compile a module up to and with phase `stop`, for what hooks see on the way.

    Arguments and errors are those of `compile`; flags that the compiler keeps per process are an error.
    """
    request = _Request.make(source, pipeline, preset, kernels, flags, start, None)
    _check_phases([start, stop, *hooks])
    session = new_session()
    if flag := _process_flag(session, request.flags):
        raise _unusable(flag, "compiling up to a phase")
    request.advance(session, stop, hooks, on_remark).close()


@dataclass(frozen=True)
class _Request:
    """What is to be compiled, and how; a preset is in the pipeline and the flags."""

    contents: bytes
    name: str
    pipeline: str
    kernels: str | Sequence[str] | None
    flags: tuple[str, ...]
    start: str
    table: str

    @classmethod
    def make(
        cls,
        source: ModuleSource,
        pipeline: str | Pipeline | None,
        preset: str | None,
        kernels: str | Sequence[str] | None,
        flags: Sequence[str],
        start: str,
        table: str | Path | None,
    ) -> _Request:
        if isinstance(flags, str):
            raise PrepassError(f"flags are a list of strings, not the string '{flags}'")
        contents, name = read_module(source)
        text = str(pipeline) if pipeline is not None else ""
        if preset is not None:
            named = default_registry().pipeline(preset)
            text = text or named.as_text
            flags = [*named.flags_beside(flags), *flags]
        if table is not None:
            # Read here as well, so that its mistakes come before anything is compiled.
            read_table(table)
        return cls(contents, name, text, kernels, tuple(flags), start, str(table or ""))

    def advance(
        self, session: Session, stop: str, hooks: Mapping[str, Hook], on_remark: RemarkHandler | None
    ) -> Compilation:
        """The module at phase `stop`; the caller closes it."""
        resolved = resolve_with_kernels(self.pipeline, self.kernels, session.context) or Nest(ROOT, ())
        compilation = Compilation(session, self.contents, self.name, start=self.start)
        try:
            by_phase = compilation.pipeline_hooks(resolved, on_remark=on_remark, tuning_table=self.table)
            for phase, hook in hooks.items():
                by_phase.setdefault(phase, []).append(hook)
            compilation.advance_with_hooks(stop, by_phase)
        except BaseException:
            compilation.close()
            raise
        return compilation


def _check_phases(phases: Sequence[str]) -> None:
    for phase in phases:
        if phase not in PHASES:
            raise PrepassError(f"no phase '{phase}'; phases are {', '.join(PHASES)}")


def _process_flag(session: Session, flags: Sequence[str]) -> str | None:
    """Give a session flags; the first that it does not know, as the compiler may keep that for the whole process."""
    for flag in flags:
        try:
            session.set_flags(flag)
        except ValueError as error:
            if "option not found" in str(error):
                return flag
            raise PrepassError(f"flag {flag}: {str(error).splitlines()[-1].strip()}") from None
    return None


def _unusable(flag: str, where: str) -> PrepassError:
    return PrepassError(f"flag {flag}: unknown, or one that the compiler keeps for the whole process, not for {where}")


def _compile_in_process(request: _Request) -> bytes:
    with tempfile.TemporaryDirectory(prefix="prepass-") as directory:
        source, output = Path(directory, "module.mlir"), Path(directory, "module.vmfb")
        source.write_bytes(request.contents)
        command = [sys.executable, "-m", "prepass.tools.compile", str(source), "-o", str(output)]
        command += [f"--compile-from={request.start}", *request.flags]
        command += [f"--prepass-load={path}" for path in default_registry().files]
        if request.kernels is not None:
            command.append(f"--prepass-kernels={','.join(parse_kernels(request.kernels))}")
        if request.table:
            command.append(f"--{TABLE_FLAG}={request.table}")
        if request.pipeline:
            command.append(f"--iree-preprocessing-pass-pipeline={request.pipeline}")
        finished = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        if finished.returncode:
            raise CompileError(finished.stderr.strip())
        # What the flags asked for, a timing report for one, goes where the user expects it.
        sys.stderr.write(finished.stderr)
        return output.read_bytes()

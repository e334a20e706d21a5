# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program without and with a pipeline, as dispatch graphs of which every op is known."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iree.compiler import ir

from prepass.analysis.graph import DispatchGraph, number_dispatches, read_graph
from prepass.analysis.provenance import SourceOp, number_ops
from prepass.analysis.trace import Trace, trace_pipeline
from prepass.compiler.compilation import Compilation
from prepass.compiler.library import new_session
from prepass.errors import PrepassError
from prepass.ir.parse import ModuleSource, read_module
from prepass.ir.targets import Target, find_target
from prepass.pipeline.base import PREPROCESSING, RemarkHandler
from prepass.pipeline.phases import split_by_phase
from prepass.pipeline.registry import default_registry
from prepass.pipeline.resolve import resolve_pipeline


@dataclass(frozen=True)
class Compiled:
    """A program up to the flow phase.

    Attributes:
      trace: What the pipeline did.
      rewritten: The module behind the pipeline, as bytecode.
    """

    graph: DispatchGraph
    trace: Trace
    rewritten: bytes


@dataclass(frozen=True)
class Program:
    """A module as it is when preprocessing passes run, its ops numbered.

    Attributes:
      bytecode: The module, with locations.
      sources: Its ops by their numbers.
      flags: What it is compiled with.
    """

    name: str
    bytecode: bytes
    sources: Mapping[int, SourceOp]
    target: Target | None
    flags: tuple[str, ...]

    def compile(
        self, pipeline: str = "", more_flags: Sequence[str] = (), on_remark: RemarkHandler | None = None
    ) -> Compiled:
        """The program with a pipeline and further flags, up to its dispatches; no code is generated.

        Raises PipelineError, CompileError and PassFailure.
        """
        with _compilation(self.bytecode, self.name, (*self.flags, *more_flags), PREPROCESSING) as compilation:
            trace = _trace(pipeline, compilation, on_remark) if pipeline else Trace()
            rewritten = _bytecode(compilation.module) if pipeline else self.bytecode
            contents: list[frozenset[int]] = []

            def number(module: ir.Operation) -> None:
                contents.extend(number_dispatches(module))

            compilation.advance_with_hooks("flow", {"dispatch-creation": [number]})
            return Compiled(read_graph(compilation.module, contents), trace, rewritten)

    def trace(self, rewritten: bytes, pipeline: str) -> Trace:
        """What another pipeline does behind one that has run."""
        with _compilation(rewritten, self.name, self.flags, PREPROCESSING) as compilation:
            return _trace(pipeline, compilation)


def read_program(source: ModuleSource, flags: Sequence[str]) -> Program:
    """A module up to where preprocessing passes run.

    `flags` are those of iree-compile, the target among them. Raises CompileError, and PrepassError for a flag that the
    compiler does not know or keeps per process.
    """
    contents, name = read_module(source)
    with _compilation(contents, name, flags, "start") as compilation:
        compilation.advance(PREPROCESSING)
        sources = number_ops(compilation.module)
        target = find_target(compilation.module)
        return Program(name, _bytecode(compilation.module), sources, target, tuple(flags))


def _trace(pipeline: str, compilation: Compilation, on_remark: RemarkHandler | None = None) -> Trace:
    nest = resolve_pipeline(pipeline, default_registry(), compilation.module.context)
    return trace_pipeline(split_by_phase(nest, default_registry())[PREPROCESSING], compilation, on_remark)


def _bytecode(module: ir.Operation) -> bytes:
    buffer = io.BytesIO()
    module.write_bytecode(buffer)
    return buffer.getvalue()


def _compilation(contents: bytes, name: str, flags: Sequence[str], start: str) -> Compilation:
    session = new_session()
    for flag in flags:
        try:
            session.set_flags(flag)
        except ValueError as error:
            reason = str(error).splitlines()[-1].strip()
            if "option not found" in reason:
                reason = "unknown, or one that the compiler keeps for the whole process, which an analysis cannot use"
            raise PrepassError(f"flag {flag}: {reason}") from None
    return Compilation(session, contents, name, start=start)

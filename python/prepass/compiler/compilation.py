# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One module on its way through IREE's phases, open to edits between any two."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from iree.compiler import ir
from iree.compiler.api import Invocation, Output, Session, Source
from iree.compiler.api.ctypes_dl import PipelineType

from prepass.compiler.library import PHASES, on_diagnostic, set_phases
from prepass.errors import CompileError
from prepass.ir.diagnostics import DiagnosticText, split_diagnostic
from prepass.ir.parse import check_is_mlir
from prepass.pipeline.base import RemarkHandler
from prepass.pipeline.control import Control
from prepass.pipeline.manager import Instrumentation, PipelineRun, run_pipeline
from prepass.pipeline.phases import split_by_phase
from prepass.pipeline.registry import default_registry
from prepass.pipeline.resolve import Nest

Hook = Callable[[ir.Operation], object]

_BYTECODE_MAGIC = b"ML\xefR"


class Compilation:
    """A module in a session, and the phase it has reached.

    The module is parsed once and stays in one invocation, so that diagnostics of
    every later phase still show the source line they speak of.

    Attributes:
      module: Edited in place by phases, pipelines and hooks.
      phase: The last phase that ran.
      diagnostics: What the compiler and the passes said, when it is not printed.
    """

    def __init__(
        self, session: Session, source: bytes, name: str, *, start: str = "start", print_diagnostics: bool = False
    ) -> None:
        """Parse a module.

        Args:
          session: Holds the flags; its context is the module's.
          source: MLIR text or bytecode.
          name: What diagnostics call the source.
          start: The phase that the module has been through already.
          print_diagnostics: Print diagnostics with their source lines to standard
            error, as iree-compile does, instead of collecting them.

        Raises CompileError when the source is no valid module, PrepassError when it is a compiled program.
        """
        check_is_mlir(source, name)
        self.phase = start
        self.diagnostics: list[DiagnosticText] = []
        self.invocation = Invocation(session)
        # Without it the bindings keep a failing pass's errors from every handler.
        session.context.emit_error_diagnostics = True
        if print_diagnostics:
            self.invocation.enable_console_diagnostics()
        else:
            self._callback = on_diagnostic(self.invocation, self._collect)
        if not self.invocation.parse_source(_wrap(session, source, name)):
            self.close()
            raise self._error(f"'{name}' is not a valid module")
        self.module: ir.Operation = self.invocation.export_module()

    def close(self) -> None:
        """Leave the session, so that another module can take its place."""
        self.invocation.close()

    def __enter__(self) -> Compilation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def advance(self, phase: str, mode: PipelineType = PipelineType.IREE_COMPILER_PIPELINE_STD) -> None:
        """Run the phases after the current one, up to and with `phase`. Raises CompileError."""
        set_phases(self.invocation, self.phase, phase)
        if not self.invocation.execute(mode):
            raise self._error(f"compilation failed between phases '{self.phase}' and '{phase}'")
        self.phase = phase

    def advance_with_hooks(
        self,
        stop: str,
        hooks: Mapping[str, Sequence[Hook]],
        mode: PipelineType = PipelineType.IREE_COMPILER_PIPELINE_STD,
    ) -> None:
        """Run up to phase `stop`; call each hook with the module after the phase it is listed under.

        Hooks of phases that are not run are not called.
        """
        start, end = PHASES.index(self.phase), PHASES.index(stop)
        for phase in PHASES[start + 1 : end + 1]:
            if phase in hooks or phase == stop:
                self.advance(phase, mode)
                for hook in hooks.get(phase, ()):
                    hook(self.module)

    def run_pipeline(
        self,
        pipeline: Nest,
        *,
        instrumentation: Instrumentation | None = None,
        on_remark: RemarkHandler | None = None,
        control: Control | None = None,
    ) -> PipelineRun:
        """Run a pass pipeline on the module. Raises CompileError and PassFailure."""
        try:
            return run_pipeline(
                pipeline, self.module, instrumentation=instrumentation, on_remark=on_remark, control=control
            )
        except ir.MLIRError:
            raise self._error("the pass pipeline failed") from None

    def pipeline_hooks(
        self,
        pipeline: Nest,
        *,
        instrumentation: Instrumentation | None = None,
        on_remark: RemarkHandler | None = None,
        tuning_table: str = "",
    ) -> dict[str, list[Hook]]:
        """Hooks that run a pass pipeline on the module, each pass after the phase that it belongs to.

        A tuning table is for every pass that reads one.
        """

        def hook(part: Nest) -> Hook:
            return lambda _: self.run_pipeline(part, instrumentation=instrumentation, on_remark=on_remark)

        by_phase = split_by_phase(pipeline, default_registry(), tuning_table)
        return {phase: [hook(part)] for phase, part in by_phase.items() if part.elements}

    def write(self, output: Output) -> None:
        """Write the program as VM bytecode. Raises CompileError."""
        try:
            self.invocation.output_vm_bytecode(output)
        except ValueError as error:
            raise self._error(str(error)) from None

    def bytecode(self) -> bytes:
        """The program as VM bytecode, the contents of a .vmfb file."""
        with Output.open_membuffer() as output:
            self.write(output)
            return bytes(output.map_memory())

    def _collect(self, severity: str, text: str) -> None:
        self.diagnostics += split_diagnostic(severity, text)

    def _error(self, summary: str) -> CompileError:
        return CompileError(summary, self.diagnostics)


def _wrap(session: Session, source: bytes, name: str) -> Source:
    # The parser wants text to end in a NUL, and bytecode to end where it ends.
    terminated = source if source.startswith(_BYTECODE_MAGIC) else source + b"\0"
    return Source.wrap_buffer(session, terminated, buffer_name=name)

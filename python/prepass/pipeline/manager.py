# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running a resolved pipeline with one PassManager, Python and native passes alike."""

from __future__ import annotations

import inspect
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from iree.compiler import ir
from iree.compiler.passmanager import PassManager

from prepass.errors import PassFailure, PrepassError, describe_exception
from prepass.ir.locations import describe_location
from prepass.ir.targets import find_target
from prepass.pipeline.base import Pass, PassContext, Remark, RemarkHandler, RemarkKind
from prepass.pipeline.control import Control, RewriteLimit
from prepass.pipeline.resolve import ROOT, Element, NativePass, Nest, PythonPass, print_pass, python_passes


@dataclass(frozen=True)
class Instrumentation:
    """What a PassManager prints to standard error as it runs; the flags of mlir-opt.

    Attributes:
      print_before_all, print_after_all, print_after_change: IR printing. It turns
        off multi-threading in the context, as it does in mlir-opt.
      timing: A wall-time report at the end.
      statistics: A pass statistics report at the end.
      verify: Verify the IR after each pass that reports a rewrite, and at the end.
    """

    print_before_all: bool = False
    print_after_all: bool = False
    print_after_change: bool = False
    timing: bool = False
    statistics: bool = False
    verify: bool = True

    @property
    def prints_ir(self) -> bool:
        """Whether any IR is printed."""
        return self.print_before_all or self.print_after_all or self.print_after_change


@dataclass
class PassRun:
    """What one prepass pass did in a run.

    Attributes:
      seconds: Wall time over all ops it ran on.
      stopped_at: What it would have rewritten next, where its limit of rewrites stopped it. The op is valid until
        another pass has run.
    """

    pass_text: str
    remarks: list[Remark] = field(default_factory=list)
    counters: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    stopped_at: ir.Operation | None = None


@dataclass
class PipelineRun:
    """What a pipeline did in one run: one entry for each prepass pass, in order."""

    passes: list[PassRun] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def remarks(self) -> list[Remark]:
        """All remarks, in the order they were made."""
        return [remark for run in self.passes for remark in run.remarks]


def run_pipeline(
    pipeline: Nest,
    module: ir.Operation,
    *,
    instrumentation: Instrumentation | None = None,
    on_remark: RemarkHandler | None = None,
    control: Control | None = None,
) -> PipelineRun:
    """Run a pipeline on a module in place.

    Raises PassFailure when a Python pass raises, and ir.MLIRError when a native
    pass or the verifier fails.
    """
    result = PipelineRun()
    started = time.perf_counter()
    with module.context, ir.Location.unknown():
        for instance in python_passes(pipeline):
            for dialect in instance.dependent_dialects:
                module.context.get_dialect_descriptor(dialect)
        manager = PassManager(ROOT)
        instrumentation = instrumentation or Instrumentation()
        settings = _Settings(on_remark, control or Control(), instrumentation.verify)
        for element in pipeline.elements:
            _add_element(manager, element, (), result, settings)
        _instrument(manager, instrumentation, module.context)
        manager.run(module)
        if instrumentation.verify:
            module.verify()
    result.seconds = time.perf_counter() - started
    if instrumentation.statistics:
        print(_counter_report(result), file=sys.stderr)
    return result


def _counter_report(result: PipelineRun) -> str:
    """The counters of the prepass passes, which the native statistics report cannot show."""
    lines = ["===-- prepass pass statistics --==="]
    for run in result.passes:
        lines.append(run.pass_text)
        lines += [f"  (S) {count} {name}" for name, count in sorted(run.counters.items())]
    return "\n".join(lines)


def _instrument(manager: PassManager, wanted: Instrumentation, context: ir.Context) -> None:
    # Its own verifier runs after every pass, which takes as long as most passes do that find nothing to rewrite.
    manager.enable_verifier(False)
    if wanted.prints_ir:
        context.enable_multithreading(False)
        manager.enable_ir_printing(
            print_before_all=wanted.print_before_all,
            print_after_all=wanted.print_after_all or wanted.print_after_change,
            print_after_change=wanted.print_after_change,
            print_module_scope=True,
        )
    if wanted.timing:
        manager.enable_timing()
    if wanted.statistics:
        manager.enable_statistics()


@dataclass(frozen=True)
class _Settings:
    """What all passes of a run are given."""

    on_remark: RemarkHandler | None
    control: Control
    verify: bool


def _add_element(
    manager: PassManager,
    element: Element,
    anchors: tuple[str, ...],
    result: PipelineRun,
    settings: _Settings,
) -> None:
    """Add one element, nested on `anchors` below the module.

    A Python pass cannot be added to a nested manager (the bindings abort), so
    it is added to the module's and walks to its anchors itself; the elements of
    a nest that mixes both kinds are added one by one, each in its own nest.
    """
    if isinstance(element, PythonPass):
        run = PassRun(print_pass(element.instance))
        result.passes.append(run)
        manager.add(
            _callable(element.instance, anchors, run, settings),
            name=type(element.instance).__name__,
            argument=run.pass_text,
            description=(type(element.instance).__doc__ or "").strip().partition("\n")[0],
        )
    elif isinstance(element, NativePass) or _is_native(element):
        manager.add("".join(f"{anchor}(" for anchor in anchors) + str(element) + ")" * len(anchors))
    else:
        for nested in element.elements:
            _add_element(manager, nested, (*anchors, element.anchor), result, settings)


def _is_native(nest: Nest) -> bool:
    return all(isinstance(e, NativePass) or (isinstance(e, Nest) and _is_native(e)) for e in nest.elements)


def _callable(
    instance: Pass, anchors: tuple[str, ...], run: PassRun, settings: _Settings
) -> Callable[[ir.Operation, object], None]:
    def execute(module: ir.Operation, _: object) -> None:
        target = settings.control.target or find_target(module)
        limit = settings.control.rewrite_limits.get(instance.name)
        context = PassContext(instance.name, target, settings.on_remark, run.remarks, run.counters, limit)
        started = time.perf_counter()
        for op in _anchored_ops(module.operation, anchors):
            try:
                _run_on(instance, op, context)
            except RewriteLimit as reached:
                run.stopped_at = reached.op
                break
        run.seconds += time.perf_counter() - started
        if settings.verify and (run.counters or any(remark.kind is RemarkKind.APPLIED for remark in run.remarks)):
            module.operation.verify()

    return execute


def _run_on(instance: Pass, op: ir.Operation, context: PassContext) -> None:
    try:
        with op.context, op.location:
            instance.run(op, context)
    except (PrepassError, RewriteLimit):
        raise
    except Exception as error:
        where = describe_location(op.location)
        what = describe_exception(error, inspect.getfile(type(instance)))
        raise PassFailure(f"{where}: error: pass '{instance.name}' failed: {what}") from error


def _anchored_ops(op: ir.Operation, anchors: tuple[str, ...]) -> Iterator[ir.Operation]:
    if not anchors:
        yield op
        return
    nested = [o.operation for region in op.regions for block in region.blocks for o in block.operations]
    for child in nested:
        if child.name == anchors[0]:
            yield from _anchored_ops(child, anchors[1:])

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`analyze`: what is wrong with the graph of a model, and what a preset does about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prepass.analysis.graph import DispatchGraph, cost_of
from prepass.analysis.graph_issues import graph_issues
from prepass.analysis.issue_kinds import ALL_PASSES
from prepass.analysis.issues import Issue
from prepass.analysis.pass_issues import Evidence, pass_issues
from prepass.analysis.program import Program, read_program
from prepass.analysis.savings import measure_savings
from prepass.analysis.trace import Trace
from prepass.ir.parse import ModuleSource
from prepass.pipeline.base import RemarkHandler
from prepass.pipeline.registry import default_registry
from prepass.pipeline.resolve import ROOT

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Analysis:
    """What was found out about a model. All figures are static.

    Attributes:
      name: What the model was read from.
      target: The name of the target, or "unknown".
      pipeline: The text of the pipeline, or the name of the preset.
      flags: What both programs are compiled with.
      more_flags: What the preset sets for the one behind it.
      before, after: The dispatches without and with the pipeline.
      issues: The costliest first.
    """

    name: str
    target: str
    pipeline: str
    flags: tuple[str, ...]
    more_flags: tuple[str, ...]
    before: DispatchGraph
    after: DispatchGraph
    issues: tuple[Issue, ...]

    @property
    def exact(self) -> bool:
        """Whether all sizes are static; a dynamic one counts as one."""
        return cost_of([*self.before.dispatches, *self.after.dispatches]).exact


def analyze(
    source: ModuleSource,
    *,
    preset: str | None = None,
    pipeline: str | None = None,
    flags: Sequence[str] = (),
    measure: bool = False,
    on_remark: RemarkHandler | None = None,
    progress: Progress = lambda _: None,
) -> Analysis:
    """Analyse a model without and with a pipeline; it is compiled up to its dispatches, and not run.

    Args:
      source: As for `prepass.compile`.
      preset: A named pipeline, with the flags that belong to it; prepass-default when neither is given.
      pipeline: The pipeline in place of that of the preset.
      flags: Those of iree-compile, the target among them.
      measure: Compile once more for each issue, to find out what the passes that fix it save.
      on_remark: Called with each remark of a pass of the pipeline and its location.
      progress: Called with what is being done.

    Raises PipelineError, CompileError, PassFailure, and PrepassError for what is wrong with the arguments.
    """
    named = default_registry().pipeline(preset or "prepass-default")
    text = pipeline or named.as_text
    more_flags = named.flags_beside(flags) if preset else []
    progress("reading the model")
    program = read_program(source, flags)
    progress("forming dispatches")
    before = program.compile()
    progress(f"running {pipeline or named.name}, forming dispatches")
    after = program.compile(text, more_flags, on_remark)
    flagged = before
    if more_flags:
        progress(f"forming dispatches with the flags of {named.name} alone")
        flagged = program.compile("", more_flags)
    progress("looking for what other passes would do")
    further = _further(program, after.rewritten, after.trace)
    evidence = Evidence(program.sources, before.graph, after.graph, flagged.graph, after.trace, further)
    found = list(pass_issues(evidence))
    if measure:
        found = list(measure_savings(found, program, text, more_flags, after.graph, progress))
    issues = sorted([*found, *graph_issues(evidence)], key=lambda issue: issue.before.cost.bytes, reverse=True)
    return Analysis(
        name=program.name,
        target=program.target.name if program.target else "unknown",
        pipeline=pipeline or named.name,
        flags=tuple(flags),
        more_flags=tuple(more_flags),
        before=before.graph,
        after=after.graph,
        issues=tuple(issues),
    )


def presets_with(pass_name: str) -> list[str]:
    """The named pipelines that have a pass, named pipelines in them expanded."""
    registry = default_registry()

    def has(name: str) -> bool:
        steps = [step.text.partition("{")[0] for step in registry.pipeline(name).steps]
        return pass_name in steps or any(step in registry.pipeline_names() and has(step) for step in steps)

    return [name for name in registry.pipeline_names() if has(name)]


def _further(program: Program, rewritten: bytes, trace: Trace) -> Trace:
    """What the passes do that a pipeline lacks."""
    lacking = [name for name in ALL_PASSES if name not in trace.passes]
    return program.trace(rewritten, f"{ROOT}({','.join(lacking)})") if lacking else Trace()

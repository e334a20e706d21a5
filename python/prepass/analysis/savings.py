# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the passes that fix an issue save, found out by leaving them out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from prepass.analysis.graph import DispatchGraph, cost_of
from prepass.analysis.issues import Issue, Saving, State
from prepass.analysis.program import Program
from prepass.compiler.library import new_session
from prepass.pipeline.registry import default_registry
from prepass.pipeline.resolve import Element, Nest, PythonPass, resolve_pipeline


def measure_savings(
    issues: Sequence[Issue],
    program: Program,
    pipeline: str,
    more_flags: Sequence[str],
    after: DispatchGraph,
    progress: Callable[[str], None],
) -> Iterator[Issue]:
    """Issues that passes find, those that are fixed with what the passes save.

    For each, the program is compiled up to its dispatches with the pipeline but for those passes. What passes save
    together is not the sum of what each does, as some prepare for others.
    """
    for issue in issues:
        passes = frozenset(instance.fix for instance in issue.instances if instance.state is State.FIXED)
        if passes:
            progress(f"forming dispatches without {', '.join(sorted(passes))}")
            without = program.compile(without_passes(pipeline, passes), more_flags).graph
            issue = replace(issue, saving=_saving(passes, without, after))
        yield issue


def without_passes(pipeline: str, names: frozenset[str]) -> str:
    """The text of a pipeline, named pipelines expanded, without the prepass passes of some names."""

    def drop(nest: Nest) -> Nest:
        kept: list[Element] = []
        for element in nest.elements:
            if isinstance(element, Nest):
                kept.append(drop(element))
            elif not isinstance(element, PythonPass) or element.instance.name not in names:
                kept.append(element)
        return Nest(nest.anchor, tuple(kept))

    return str(drop(resolve_pipeline(pipeline, default_registry(), new_session().context)))


def _saving(passes: frozenset[str], without: DispatchGraph, after: DispatchGraph) -> Saving:
    return Saving(
        tuple(sorted(passes)),
        len(without.main) - len(after.main),
        len(without.initializers) - len(after.initializers),
        cost_of(without.main).bytes - cost_of(after.main).bytes,
    )

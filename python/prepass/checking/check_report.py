# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a check found, in lines."""

from __future__ import annotations

from collections.abc import Iterator

from prepass.checking.bisect import Culprit
from prepass.checking.check import Report, Verdict
from prepass.checking.workspace import Outcome, is_within


def report_lines(report: Report) -> Iterator[str]:
    """The verdict, each result, notes, and where results differ, what makes them differ."""
    tolerance = report.outcome.tolerance
    if report.verdict is Verdict.DIFFERENT:
        yield f"the pipeline changes the results of '{report.signature.function}'"
    elif report.verdict is Verdict.VOID:
        yield f"the results of '{report.signature.function}' say nothing of the pipeline"
    else:
        yield f"the pipeline keeps the results of '{report.signature.function}' within {tolerance:g}"
    yield from (f"  {line}" for line in outcome_lines(report.outcome))
    yield from (f"note: {note}" for note in report.notes)
    if report.culprit is not None:
        yield from _culprit_lines(report.culprit)
    if report.reproducer is not None:
        size = "the whole program" if report.reproducer.ops is None else f"{report.reproducer.ops} ops"
        yield f"reproducer, {size}: {report.reproducer.module}"
        yield f"  {report.reproducer.command}"


def outcome_lines(outcome: Outcome) -> Iterator[str]:
    """Each result with its difference, or why there are none."""
    if outcome.failure:
        yield outcome.failure.partition("\n")[0]
    for number, difference in enumerate(outcome.differences):
        same = is_within(difference, outcome.tolerance)
        text = f"result {number} {'matches' if same else 'differs'}: {difference.relative:.1e} of its largest magnitude"
        if difference.nan_mismatches:
            text += f", {difference.nan_mismatches} elements NaN or infinite in one only"
        elif difference.finite < 1:
            text += f"; {1 - difference.finite:.1%} of it are NaN or infinite in both"
        yield text


def _culprit_lines(culprit: Culprit) -> Iterator[str]:
    if culprit.step is None:
        yield "first difference: the flags alone, before any pass of the pipeline"
    elif culprit.remark is not None:
        yield f"first difference: {culprit.pass_name}, rewrite {culprit.number} of {culprit.count}"
        yield f"  {culprit.remark.location}: {culprit.remark.message} [{culprit.remark.op_name}]"
    else:
        yield f"first difference: {culprit.pass_name or culprit.step.text}"
    if culprit.pass_name and culprit.step is not None and culprit.step.pass_name != culprit.pass_name:
        yield f"  it runs in a later phase along with {culprit.step.text}"
    yield from (f"  {line}" for line in outcome_lines(culprit.outcome))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Proving a pipeline on a model: the same results without and with it, or what makes them differ."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prepass.checking.bisect import Bisection, Culprit
from prepass.checking.child import call_in_child
from prepass.checking.programs import Applied, Recipe, StoredArray, signature_of
from prepass.checking.reproduce import Reproducer, write_reproducer
from prepass.checking.signature import Signature
from prepass.checking.workspace import (
    Inputs,
    OnStep,
    Outcome,
    Tolerance,
    Workspace,
    discard,
    proves_nothing,
)
from prepass.errors import PrepassError

# Attention kernels are what IREE is known to compute wrongly, so a reference has none.
_REFERENCE_PIPELINE = "builtin.module(prepass-decompose-attention{when=always})"
_LEVEL = "--iree-opt-level"
_REFERENCE = "attention decomposed, at O0"


class Verdict(enum.Enum):
    """What a check found."""

    SAME = "same"
    ONLY_BEFORE_IS_WRONG = "only the program without the pipeline is wrong"
    DIFFERENT = "different"
    VOID = "void"

    @property
    def passes(self) -> bool:
        """Whether the pipeline did no harm."""
        return self in (Verdict.SAME, Verdict.ONLY_BEFORE_IS_WRONG)


@dataclass(frozen=True)
class Request:
    """What is to be checked.

    Attributes:
      before, after: The program without and with the pipeline.
      function: The function to call, or None when there is one.
      bisect: Whether to look for the pass and the rewrite that make a difference.
      output: Where a reproducer is written.
    """

    before: Recipe
    after: Recipe
    function: str | None = None
    inputs: Inputs = field(default_factory=Inputs)
    tolerance: Tolerance = field(default_factory=Tolerance)
    bisect: bool = True
    output: Path = Path("prepass-check")


@dataclass(frozen=True)
class Report:
    """What was found.

    Attributes:
      outcome: How the results with the pipeline compare with those that are right.
      notes: What else there is to say, a sentence each.
      culprit, reproducer: Where they differ.
    """

    verdict: Verdict
    signature: Signature
    outcome: Outcome
    notes: tuple[str, ...] = ()
    culprit: Culprit | None = None
    reproducer: Reproducer | None = None


def check(request: Request, directory: Path, on_step: OnStep = lambda *_: None) -> Report:
    """Build, run and compare a program without and with its pipeline; on a difference, find what makes it.

    Args:
      directory: For programs and results while it runs.

    Raises PrepassError when the program does not compile or run without the pipeline nor as a reference, or when
    arguments cannot be made.
    """
    signature = call_in_child(signature_of, request.before, request.function, what="reading the signature")
    workspace = Workspace(directory, signature, request.inputs, request.tolerance, on_step)
    workspace.plan(2)
    return _Check(request, workspace).run()


class _Check:
    def __init__(self, request: Request, workspace: Workspace) -> None:
        self._request = request
        self._workspace = workspace
        self._notes: list[str] = []
        self._before_is_wrong = False

    def run(self) -> Report:
        expected = self._results_before()
        try:
            results, applied = self._workspace.results(self._request.after, "the program with the pipeline")
        except PrepassError as error:
            return self._find(expected, Outcome(self._workspace.tolerance, failure=str(error)))
        outcome = self._workspace.compare(results, expected, applied)
        if outcome.same:
            reason = proves_nothing(expected)
            self._notes += [f"{reason}, so that nothing is proved"] if reason else []
            return self._report(Verdict.VOID if reason else Verdict.SAME, outcome)
        reference = self._reference_results()
        if reference is not None:
            known = self._workspace.compare(results, reference, applied)
            if self._judge(self._workspace.compare(expected, reference, Applied()), known):
                return self._report(Verdict.ONLY_BEFORE_IS_WRONG, known)
            if self._before_is_wrong:
                self._check_repeatable(expected)
                expected, outcome = reference, known
        discard(results)
        return self._find(expected, outcome)

    def _find(self, right: Sequence[StoredArray], outcome: Outcome) -> Report:
        """What makes the results with the pipeline differ from those that are right."""
        report = self._report(Verdict.DIFFERENT, outcome)
        if not self._request.bisect:
            return report
        # Where the flags are the same too, the program without the pipeline has been seen to be right.
        flags_differ = self._request.before.flags != self._request.after.flags or self._before_is_wrong
        culprit = Bisection(self._workspace, self._request.after, right, outcome).run(flags_differ=flags_differ)
        reproducer = write_reproducer(culprit, self._workspace, self._request.tolerance, self._request.output)
        return dataclasses.replace(report, culprit=culprit, reproducer=reproducer)

    def _results_before(self) -> list[StoredArray]:
        """The results without the pipeline; those of the reference where that program does not work."""
        try:
            return self._workspace.results(self._request.before, "the program without the pipeline")[0]
        except PrepassError as error:
            failure = error
        try:
            results, _ = self._workspace.results(self._reference(), "a reference")
        except PrepassError:
            raise failure from None
        self._before_is_wrong = True
        self._notes.append(f"a reference ({_REFERENCE}) stands for the program without it: {_first_line(failure)}")
        return results

    def _reference_results(self) -> list[StoredArray] | None:
        if self._before_is_wrong:
            return None
        try:
            return self._workspace.results(self._reference(), "a reference")[0]
        except PrepassError as error:
            self._notes.append(f"which of the two programs is wrong is not known: {_first_line(error)}")
            return None

    def _check_repeatable(self, before: Sequence[StoredArray]) -> None:
        """Raise PrepassError for a program that gives other results each time, of which nothing can be said."""
        again = self._workspace.outcome(self._request.before, before, "the program without the pipeline, again")
        if not again.same:
            raise PrepassError(
                "the program without the pipeline gives other results when it is run again; shapes that do not fit "
                "each other may let it read beyond its arguments: give --input-shape or --input"
            )

    def _judge(self, before: Outcome, after: Outcome) -> bool:
        """Say which of two programs that differ is wrong by a reference; whether it is only the one before."""
        self._before_is_wrong = not before.same
        if before.same:
            what = "both are close to it" if after.same else "the one with the pipeline is not"
        else:
            what = "the one without it is not" if after.same else "neither is, and the reference is used from here on"
        self._notes.append(f"which program is close to a reference ({_REFERENCE}): {what}")
        return after.same and not before.same

    def _reference(self) -> Recipe:
        before = self._request.before
        flags = [flag for flag in before.flags if not flag.lstrip("-").startswith(_LEVEL.lstrip("-"))]
        return dataclasses.replace(before, flags=(*flags, f"{_LEVEL}=O0"), pipeline=_REFERENCE_PIPELINE)

    def _report(self, verdict: Verdict, outcome: Outcome) -> Report:
        return Report(verdict, self._workspace.signature, outcome, tuple(self._notes))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]

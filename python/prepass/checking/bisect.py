# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finding the first pass, and its first rewrite, with which a program computes something else."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prepass.checking.child import call_in_child
from prepass.checking.programs import Recipe, StoredArray, prepare, rewrite
from prepass.checking.steps import Step, read_steps
from prepass.checking.workspace import Outcome, Workspace
from prepass.errors import PrepassError
from prepass.pipeline.base import PREPROCESSING, Remark


@dataclass(frozen=True)
class Culprit:
    """What makes the difference.

    Attributes:
      step: The pass; None where the compiler's flags alone make it.
      pass_name: The prepass pass; it may be one of a later phase that runs along with `step`. "" for the compiler's.
      remark: The rewrite, with the op and its location; None where it is not one rewrite of a prepass pass.
      number, count: Which of the pass's rewrites it is, from one, and how many it makes.
      outcome: How the results differ with it.
      recipe: The program right before: it makes all rewrites but this one.
      pipeline: What is to run on the recipe's module to see the difference.
    """

    step: Step | None
    pass_name: str
    remark: Remark | None
    number: int
    count: int
    outcome: Outcome
    recipe: Recipe
    pipeline: str


class Bisection:
    """A search for what makes the results of a recipe differ from those that are expected."""

    def __init__(self, workspace: Workspace, recipe: Recipe, expected: Sequence[StoredArray], outcome: Outcome) -> None:
        """`recipe` gives other results than expected, or none; `outcome` is how they differ."""
        self._whole = outcome
        self._workspace = workspace
        self._expected = expected
        steps = call_in_child(read_steps, recipe.pipeline, recipe.kernels, recipe.table, what="reading the pipeline")
        # The program is the same for all, up to where the pipeline runs.
        module = workspace.path(".mlirbc")
        self._base = dataclasses.replace(
            recipe, source=str(module), start=PREPROCESSING, pipeline="", kernels=None, limits=()
        )
        call_in_child(prepare, recipe, str(module), what="compiling up to the preprocessing phase")
        self._steps: list[Step] = steps

    def run(self, *, flags_differ: bool) -> Culprit:
        """Find it; `flags_differ` is whether the flags alone may be what makes the difference.

        Raises PrepassError when the difference does not show again.
        """
        self._workspace.plan(len(self._steps).bit_length() + 1)
        if flags_differ:
            outcome = self._outcome(self._base, "without the pipeline, with its flags")
            if not outcome.same:
                return Culprit(None, "", None, 0, 0, outcome, self._base, "")
        number, outcome = _first_wrong(len(self._steps), self._through)
        if outcome is None:
            raise PrepassError("the results do not differ when the pipeline runs again on the same module")
        step = self._steps[number - 1]
        for later in step.later:
            if self._without(step, later).same:
                return self._in_later_pass(step, later)
        return self._in_pass(number, outcome)

    def _through(self, number: int) -> Outcome:
        if number == len(self._steps):
            return self._whole
        step = self._steps[number - 1]
        recipe = dataclasses.replace(self._base, pipeline=step.through)
        return self._outcome(recipe, f"after pass {number} of {len(self._steps)}, {step.text}")

    def _without(self, step: Step, later: str) -> Outcome:
        recipe = dataclasses.replace(self._base, pipeline=step.through, limits=((later, 0),))
        return self._outcome(recipe, f"without {later}")

    def _in_later_pass(self, step: Step, later: str) -> Culprit:
        """Find the rewrite of a pass that runs along in a later phase."""
        recipe = dataclasses.replace(self._base, pipeline=step.through)
        return self._in_rewrites(step, later, recipe, recipe, f"builtin.module({later})")

    def _in_pass(self, number: int, outcome: Outcome) -> Culprit:
        """Find the rewrite of a pass in what the passes before it leave."""
        step = self._steps[number - 1]
        module = self._workspace.path(".mlirbc")
        before = self._steps[number - 2].through if number > 1 else ""
        call_in_child(rewrite, dataclasses.replace(self._base, pipeline=before), str(module), what="running passes")
        start = dataclasses.replace(self._base, source=str(module))
        alone = dataclasses.replace(start, pipeline=step.alone)
        if not step.pass_name:
            return Culprit(step, "", None, 0, 0, outcome, start, step.alone)
        return self._in_rewrites(step, step.pass_name, start, alone, step.alone)

    def _in_rewrites(self, step: Step, name: str, start: Recipe, recipe: Recipe, pipeline: str) -> Culprit:
        def limited(limit: int) -> Recipe:
            return dataclasses.replace(recipe, limits=((name, limit),))

        whole = self._outcome(recipe, f"with all rewrites of {name}")
        count = len(whole.applied.remarks.get(name, ()))
        unknown = Culprit(step, name, None, 0, count, whole, start, pipeline)
        if whole.same or not count or not self._outcome(limited(0), f"without rewrites of {name}").same:
            return unknown
        self._workspace.plan(count.bit_length())
        number, outcome = _first_wrong(
            count, lambda limit: self._outcome(limited(limit), f"with {limit} of {count} rewrites of {name}")
        )
        if outcome is None:
            return unknown
        remarks = whole.applied.remarks[name]
        return Culprit(step, name, remarks[number - 1], number, count, outcome, limited(number - 1), pipeline)

    def _outcome(self, recipe: Recipe, what: str) -> Outcome:
        return self._workspace.outcome(recipe, self._expected, f"the program {what}")


def _first_wrong(count: int, outcome: Callable[[int], Outcome]) -> tuple[int, Outcome | None]:
    """The first number up to `count` with a wrong outcome, 0 being right; without one where the last is right."""
    right, wrong = 0, count
    found = None
    while wrong - right > 1:
        middle = (right + wrong) // 2
        tried = outcome(middle)
        if tried.same:
            right = middle
        else:
            wrong, found = middle, tried
    if found is None:
        found = outcome(wrong)
    return wrong, None if found.same else found

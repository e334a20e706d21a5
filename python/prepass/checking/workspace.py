# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of one model, built and run on the same arguments, each in a process of its own and one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from prepass.checking.child import call_in_child
from prepass.checking.generate import make_argument, write_parameters
from prepass.checking.numerics import Difference, compare
from prepass.checking.programs import Applied, Recipe, StoredArray, build_and_execute
from prepass.checking.signature import Signature
from prepass.errors import PrepassError

HALF = ("f16", "bf16")

# Called with what is done next, how many steps are done, and how many there are as far as is known.
OnStep = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Tolerance:
    """The largest difference that is accepted, as a share of the largest magnitude in a result.

    Attributes:
      single: For programs that compute in f32 or f64.
      half: For those with f16 or bf16 anywhere.
    """

    single: float = 1e-3
    half: float = 2e-2

    def of(self, signature: Signature) -> float:
        """The one that is meant for a program."""
        return self.half if signature.elements & set(HALF) else self.single


@dataclass(frozen=True)
class Inputs:
    """How arguments are made.

    Attributes:
      seed: All that is random follows from it.
      dynamic_size: Of each dynamic dim.
      shapes: Shapes of single arguments, by number.
      files: `.npy` files for the first arguments, instead of generated ones.
    """

    seed: int = 0
    dynamic_size: int = 16
    shapes: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """How a program's results compare.

    Attributes:
      differences: One for each result, in order; empty where there are none.
      failure: Why there are no results, or "".
      tolerance: What each relative difference may be.
      applied: What the passes rewrote.
    """

    tolerance: float
    differences: tuple[Difference, ...] = ()
    failure: str = ""
    applied: Applied = field(default_factory=Applied, compare=False)

    @property
    def same(self) -> bool:
        """Whether the results are those that are expected."""
        return not self.failure and self.worst is None

    @property
    def worst(self) -> int | None:
        """The number of the result that differs most, of those beyond the tolerance."""
        wrong = [n for n, difference in enumerate(self.differences) if not is_within(difference, self.tolerance)]
        return max(wrong, key=lambda n: self.differences[n].relative, default=None)


def is_within(difference: Difference, tolerance: float) -> bool:
    """Whether a difference is small for the magnitude of the result that it is in."""
    return difference.nan_mismatches == 0 and difference.relative <= tolerance


class Workspace:
    """The arguments and parameters of one function, and the directory that programs and results lie in."""

    def __init__(
        self,
        directory: Path,
        signature: Signature,
        inputs: Inputs,
        tolerance: Tolerance,
        on_step: OnStep = lambda *_: None,
    ) -> None:
        """Make arguments and parameters.

        Raises PrepassError where an argument cannot be made, or a
        file does not fit it.
        """
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.signature = signature
        self.inputs = inputs
        self.tolerance = tolerance.of(signature)
        self.on_step = on_step
        self._number = self._done = self._planned = 0
        self.plan(1)
        self._step("making arguments and parameters")
        self.arguments = self._make_arguments(inputs)
        self.parameters = write_parameters(signature.parameters, inputs.seed, directory)

    def plan(self, steps: int) -> None:
        """Let progress know of so many more steps."""
        self._planned += steps

    def _step(self, text: str) -> None:
        self.on_step(text, self._done, max(self._planned, self._done + 1))
        self._done += 1

    def path(self, suffix: str) -> Path:
        """A file of its own."""
        self._number += 1
        return self.directory / f"{self._number}{suffix}"

    def results(self, recipe: Recipe, what: str) -> tuple[list[StoredArray], Applied]:
        """Build a program and call it; `what` names it in messages. Raises PrepassError when that fails."""
        program = self.path(".vmfb")
        self._step(what)
        outputs = str(self.path("-result"))
        arguments = [self.signature.function, self.arguments, self.parameters, outputs]
        try:
            return call_in_child(
                build_and_execute,
                recipe,
                str(program),
                *arguments,
                what=lambda: f"{'running' if program.exists() else 'compiling'} {what}",
            )
        finally:
            program.unlink(missing_ok=True)

    def compare(self, results: Sequence[StoredArray], expected: Sequence[StoredArray], applied: Applied) -> Outcome:
        """How results differ from those that are expected."""
        try:
            return Outcome(self.tolerance, compare_results(results, expected), applied=applied)
        except ValueError as error:
            return Outcome(self.tolerance, failure=str(error), applied=applied)

    def outcome(self, recipe: Recipe, expected: Sequence[StoredArray], what: str) -> Outcome:
        """How a program's results differ from those that are expected; failing is an outcome too."""
        try:
            results, applied = self.results(recipe, what)
        except PrepassError as error:
            return Outcome(self.tolerance, failure=str(error))
        outcome = self.compare(results, expected, applied)
        discard(results)
        return outcome

    def _make_arguments(self, inputs: Inputs) -> list[StoredArray]:
        arguments = self.signature.arguments
        if len(inputs.files) > len(arguments):
            raise PrepassError(f"{len(inputs.files)} inputs for {len(arguments)} arguments")
        for number in inputs.shapes:
            if number >= len(arguments):
                raise PrepassError(f"there is no argument {number} to give a shape; they are counted from 0")
        made: list[StoredArray] = []
        for number, argument in enumerate(arguments):
            if number < len(inputs.files):
                made.append(self._given(number, inputs.files[number]))
                continue
            shape = inputs.shapes.get(number)
            array = make_argument(argument, number, inputs.seed, inputs.dynamic_size, shape)
            made.append(StoredArray.save(str(self.directory / f"input{number}.npy"), array))
        return made

    def _given(self, number: int, path: str) -> StoredArray:
        type_ = self.signature.arguments[number].type
        stored = StoredArray(path, type_.element == "bf16")
        array = stored.load()
        fits = len(array.shape) == len(type_.shape) and all(
            size in (None, given) for size, given in zip(type_.shape, array.shape, strict=True)
        )
        if not fits or array.dtype != type_.dtype:
            given = "x".join(map(str, (*array.shape, array.dtype)))
            raise PrepassError(f"argument {number} is {type_}; '{path}' holds {given}")
        return stored


def compare_results(results: Sequence[StoredArray], expected: Sequence[StoredArray]) -> tuple[Difference, ...]:
    """Compare results one by one. Raises ValueError when their number, shapes or types differ."""
    if len(results) != len(expected):
        raise ValueError(f"{len(results)} results instead of {len(expected)}")
    found: list[Difference] = []
    for number, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        got, reference = result.load(), wanted.load()
        if (got.shape, got.dtype) != (reference.shape, reference.dtype):
            raise ValueError(f"result {number} is {got.dtype}{got.shape} instead of {reference.dtype}{reference.shape}")
        difference = compare([got], [reference])
        # Of integers each is right or wrong.
        exact = reference.dtype.kind in "iub"
        found.append(Difference(difference.largest, 0, 0.0) if exact and difference.largest else difference)
    return tuple(found)


def discard(arrays: Sequence[StoredArray]) -> None:
    """Remove the files of arrays that are no longer needed."""
    for array in arrays:
        Path(array.path).unlink(missing_ok=True)


def proves_nothing(expected: Sequence[StoredArray]) -> str:
    """Why results that are equal to these would prove nothing, or ""."""
    floats = [array for array in (stored.load() for stored in expected) if array.dtype.kind not in "iub" and array.size]
    if floats and not any(np.isfinite(array.astype(np.float32)).any() for array in floats):
        return "all results are NaN or infinite"
    several = [array for array in floats if array.size > 1]
    if several and all((array == array.reshape(-1)[0]).all() for array in several):
        return "all results are the same number"
    return ""

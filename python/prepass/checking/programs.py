# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs in parts: up to the preprocessing phase, through a pipeline, to code, and run.

Each function is meant for `child.call_in_child`: it takes and returns what can be pickled, and leaves modules,
programs and results in files.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from iree.compiler import ir
from iree.compiler.api import Session

from prepass.checking.signature import DTYPES, Signature, read_signature
from prepass.compiler.compilation import Compilation
from prepass.compiler.library import PHASES, new_session, set_process_flags
from prepass.compiler.runtime import load
from prepass.errors import PrepassError
from prepass.ir.targets import Target
from prepass.pipeline.base import PREPROCESSING, Remark, RemarkKind
from prepass.pipeline.control import Control
from prepass.pipeline.kernels import resolve_with_kernels
from prepass.pipeline.manager import PassRun, PipelineRun
from prepass.pipeline.phases import split_by_phase
from prepass.pipeline.registry import default_registry
from prepass.pipeline.resolve import Nest

_PROGRAM = "prepass-check"
# Kept, so that they say which rows a lookup may read.
_KEEP_ASSERTIONS = "--iree-opt-strip-assertions=false"


@dataclass(frozen=True)
class Recipe:
    """How a program is made.

    Attributes:
      source: The path of a module.
      start: The phase that it has been through already, or `start`.
      flags: Those of iree-compile.
      limits: How many rewrites a pass makes, by its name; see `Control`.
      table: The path of a tuning table, or "".
      rewrite_for: The architecture that preprocessing passes rewrite for, or "" for what the flags say.
    """

    source: str
    start: str = "start"
    flags: tuple[str, ...] = ()
    pipeline: str = ""
    kernels: str | None = None
    table: str = ""
    limits: tuple[tuple[str, int], ...] = ()
    rewrite_for: str = ""

    @property
    def control(self) -> Control:
        """How its preprocessing passes run."""
        return dataclasses.replace(self._limits, target=Target("rocm", self.rewrite_for) if self.rewrite_for else None)

    @property
    def later_control(self) -> Control:
        """How its passes of later phases run: for what the code is for, whatever was rewritten for."""
        return self._limits

    @property
    def _limits(self) -> Control:
        return Control(dict(self.limits))


@dataclass
class Applied:
    """The rewrites that each prepass pass made, by its name, in order."""

    remarks: dict[str, list[Remark]] = field(default_factory=dict)

    def add(self, run: PipelineRun) -> None:
        for made in run.passes:
            for remark in made.remarks:
                if remark.kind is RemarkKind.APPLIED:
                    self.remarks.setdefault(remark.pass_name, []).append(remark)


def signature_of(recipe: Recipe, function: str | None) -> Signature:
    """The signature of a program's function."""
    session = _session((*recipe.flags, _KEEP_ASSERTIONS))
    with _open(session, recipe) as compilation:
        if _is_before(recipe.start, "abi"):
            compilation.advance("abi")
        return read_signature(compilation.module, function)


def prepare(recipe: Recipe, output: str) -> None:
    """Write the module of a recipe as it is when preprocessing passes run, as bytecode."""
    with _open(_session(recipe.flags), recipe) as compilation:
        if _is_before(recipe.start, PREPROCESSING):
            compilation.advance(PREPROCESSING)
        write_bytecode(compilation.module, output)


def rewrite(recipe: Recipe, output: str) -> None:
    """Write the module of a recipe as its preprocessing passes leave it, as bytecode."""
    with rewritten(recipe) as (compilation, _):
        write_bytecode(compilation.module, output)


@contextlib.contextmanager
def rewritten(recipe: Recipe) -> Iterator[tuple[Compilation, list[PassRun]]]:
    """The compilation of a recipe behind its preprocessing passes, and what each of these did."""
    session = _session(recipe.flags)
    parts = _parts(recipe, session)
    with _open(session, recipe) as compilation:
        yield compilation, _run_preprocessing(recipe, compilation, parts).passes


def build_and_execute(
    recipe: Recipe,
    program: str,
    function: str,
    inputs: Sequence[StoredArray],
    parameters: Mapping[str, str],
    outputs: str,
) -> tuple[list[StoredArray], Applied]:
    """Compile a program and call a function of it once.

    Args:
      program: Where to write the program; it is there once it is compiled.
      parameters: The archives of external parameters by scope.
      outputs: Results are written as `<outputs><n>.npy`.

    Returns its results, and what its passes rewrote.
    """
    applied = _build(recipe, program)
    call = load(Path(program).read_bytes(), function=function, parameters=parameters)
    results = call(*(array.load() for array in inputs))
    return [StoredArray.save(f"{outputs}{number}.npy", result) for number, result in enumerate(results)], applied


def _build(recipe: Recipe, output: str) -> Applied:
    session = _session(recipe.flags)
    parts = _parts(recipe, session)
    applied = Applied()
    with _open(session, recipe) as compilation:
        applied.add(_run_preprocessing(recipe, compilation, parts))

        def hook(part: Nest) -> None:
            applied.add(compilation.run_pipeline(part, on_remark=_ignore, control=recipe.later_control))

        later = {phase: [lambda _, part=part: hook(part)] for phase, part in parts.items() if phase != PREPROCESSING}
        compilation.advance_with_hooks("end", later)
        Path(output).write_bytes(compilation.bytecode())
    return applied


@dataclass(frozen=True)
class StoredArray:
    """An array in a file; bf16, which such files do not know, as its bits."""

    path: str
    is_bf16: bool

    @classmethod
    def save(cls, path: str, array: np.ndarray) -> StoredArray:
        """Write an array."""
        is_bf16 = array.dtype == DTYPES["bf16"]
        np.save(path, array.view(np.uint16) if is_bf16 else array)
        return cls(path, is_bf16)

    def load(self) -> np.ndarray:
        """The array, mapped. Raises PrepassError when the file is none."""
        try:
            array = np.load(self.path, mmap_mode="r")
        except (OSError, ValueError, EOFError) as error:
            raise PrepassError(f"'{self.path}' is no .npy file that can be read: {error}") from None
        return array.view(DTYPES["bf16"]) if self.is_bf16 and array.dtype == np.uint16 else array


def write_text(recipe: Recipe, output: str) -> None:
    """Write the module of a recipe, as it is, as text."""
    with _open(_session(recipe.flags), recipe) as compilation, open(output, "w") as file:
        file.write(str(compilation.module))


def write_bytecode(module: ir.Operation, path: str) -> None:
    with open(path, "wb") as file:
        module.write_bytecode(file)


def _session(flags: Sequence[str]) -> Session:
    # For the process, so that flags which the compiler keeps globally count too.
    set_process_flags(_PROGRAM, flags)
    return new_session()


def _open(session: Session, recipe: Recipe) -> Compilation:
    return Compilation(session, Path(recipe.source).read_bytes(), recipe.source, start=recipe.start)


def _parts(recipe: Recipe, session: Session) -> dict[str, Nest]:
    pipeline = resolve_with_kernels(recipe.pipeline, recipe.kernels, session.context)
    return split_by_phase(pipeline, default_registry(), recipe.table) if pipeline else {}


def _run_preprocessing(recipe: Recipe, compilation: Compilation, parts: Mapping[str, Nest]) -> PipelineRun:
    if _is_before(recipe.start, PREPROCESSING):
        compilation.advance(PREPROCESSING)
    if PREPROCESSING not in parts:
        return PipelineRun()
    return compilation.run_pipeline(parts[PREPROCESSING], on_remark=_ignore, control=recipe.control)


def _ignore(*_: object) -> None:
    """Remarks are read from the run."""


def _is_before(phase: str, other: str) -> bool:
    return PHASES.index(phase) < PHASES.index(other)

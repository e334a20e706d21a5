# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small module, its inputs and a command that show what a pass did wrong."""

from __future__ import annotations

import dataclasses
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from iree.compiler import ir

from prepass.checking.bisect import Culprit
from prepass.checking.child import call_in_child
from prepass.checking.programs import Recipe, prepare, rewritten, signature_of, write_text
from prepass.checking.slices import slice_around
from prepass.checking.workspace import Inputs, Outcome, Tolerance, Workspace, discard
from prepass.compiler.api import TABLE_FLAG
from prepass.compiler.compilation import Compilation
from prepass.errors import PrepassError
from prepass.ir.locations import describe_location
from prepass.ir.match import find_ops
from prepass.pipeline.base import PREPROCESSING, RemarkKind
from prepass.pipeline.manager import PassRun
from prepass.pipeline.registry import default_registry

# Steps from the op; the last takes all that is connected.
_RADII = (2, 5, 10, 16, 30, 1000)
_INPUT = "input"


@dataclass(frozen=True)
class Reproducer:
    """What was written.

    Attributes:
      module: The path of the module.
      command: What shows the difference, for a shell.
      ops: How many ops the module's function has, or None when it is the whole program.
    """

    module: str
    command: str
    ops: int | None


def write_reproducer(culprit: Culprit, workspace: Workspace, tolerance: Tolerance, output: Path) -> Reproducer:
    """Write the smallest slice around a culprit's op that shows the difference, or else the whole program.

    `output` is the directory for it. Raises PrepassError where files cannot be written.
    """
    output.mkdir(parents=True, exist_ok=True)
    if culprit.remark is not None:
        for radius in _RADII:
            found = _try_slice(culprit, radius, workspace, tolerance, output)
            if found is not None:
                return found
    return _write_whole(culprit, workspace, output)


def _try_slice(
    culprit: Culprit, radius: int, workspace: Workspace, tolerance: Tolerance, output: Path
) -> Reproducer | None:
    """Write a slice if it shows the difference."""
    module = workspace.path(".mlir")
    try:
        ops = call_in_child(write_slice, culprit, radius, str(module), what="cutting out a slice")
        if ops is None:
            return None
        recipe = dataclasses.replace(culprit.recipe, source=str(module), start=_INPUT, pipeline="", limits=())
        if not call_in_child(_is_rewritten, recipe, culprit, what="rewriting the slice"):
            return None
        signature = call_in_child(signature_of, recipe, None, what="reading the slice")
        inputs = Inputs(workspace.inputs.seed, workspace.inputs.dynamic_size)
        small = Workspace(module.with_suffix(""), signature, inputs, tolerance)
        if _differs(small, recipe, culprit.pipeline).same:
            return None
    except PrepassError:
        # A slice that cannot be built on its own is none; the next one is larger.
        return None
    files = [shutil.copy(array.path, output / Path(array.path).name) for array in small.arguments]
    return _write(module.read_text(), recipe, culprit.pipeline, files, workspace, output, ops)


def _is_rewritten(recipe: Recipe, culprit: Culprit) -> bool:
    """Whether the pass does anything to a slice, as far as that can be known before it is compiled."""
    pass_class = default_registry().find_pass(culprit.pass_name)
    if pass_class is None or pass_class.phase != PREPROCESSING:
        return True
    with rewritten(dataclasses.replace(recipe, pipeline=culprit.pipeline)) as (_, runs):
        return any(remark.kind is RemarkKind.APPLIED for run in runs for remark in run.remarks)


def _differs(workspace: Workspace, recipe: Recipe, pipeline: str) -> Outcome:
    expected, _ = workspace.results(recipe, "the slice")
    try:
        return workspace.outcome(dataclasses.replace(recipe, pipeline=pipeline), expected, "the rewritten slice")
    finally:
        discard(expected)


def write_slice(culprit: Culprit, radius: int, output: str) -> int | None:
    """Write a slice around the op that the culprit rewrites, in a process of its own; returns how many ops it has."""
    with rewritten(culprit.recipe) as (compilation, runs):
        op = _op_of(culprit, compilation, runs)
        text = slice_around(op, radius) if op is not None else None
    if text is None:
        return None
    Path(output).write_text(text)
    return text.count("\n    %")


def _op_of(culprit: Culprit, compilation: Compilation, runs: Sequence[PassRun]) -> ir.Operation | None:
    stopped = [run.stopped_at for run in runs if run.stopped_at is not None]
    if stopped:
        return stopped[0]
    # A pass of a later phase: the op that its own was made from.
    remark = culprit.remark
    if remark is None:
        return None
    ops = find_ops(compilation.module, lambda op: op.name == remark.op_name)
    return next((op for op in ops if describe_location(op.location) == remark.location), None)


def _write_whole(culprit: Culprit, workspace: Workspace, output: Path) -> Reproducer:
    module = workspace.path(".mlir")
    source = workspace.path(".mlirbc")
    call_in_child(prepare, culprit.recipe, str(source), what="writing the program")
    recipe = dataclasses.replace(culprit.recipe, source=str(source), limits=())
    call_in_child(write_text, recipe, str(module), what="writing the program")
    files = [shutil.copy(array.path, output / Path(array.path).name) for array in workspace.arguments]
    return _write(module.read_text(), recipe, culprit.pipeline, files, workspace, output, None)


def _write(
    text: str,
    recipe: Recipe,
    pipeline: str,
    inputs: Sequence[str | Path],
    workspace: Workspace,
    output: Path,
    ops: int | None,
) -> Reproducer:
    module = output / "reproducer.mlir"
    words = ["prepass-check", str(module), f"--compile-from={recipe.start}"]
    words += [f"--prepass-load={path}" for path in default_registry().files]
    words += [f"--pipeline={pipeline}"] if pipeline else []
    words += [f"--{TABLE_FLAG}={recipe.table}"] if recipe.table else []
    words += [f"--rewrite-for={recipe.rewrite_for}"] if recipe.rewrite_for else []
    words += [*recipe.flags, f"--seed={workspace.inputs.seed}", "--no-bisect"]
    words += [f"--input=@{path}" for path in inputs]
    command = shlex.join(words)
    module.write_text(f"// {command}\n\n{text}")
    return Reproducer(str(module), command, ops)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The steps of a pipeline, for running only the first of them."""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler.api import Session

from prepass.pipeline.base import PREPROCESSING
from prepass.pipeline.kernels import resolve_with_kernels
from prepass.pipeline.phases import split_by_phase
from prepass.pipeline.registry import default_registry
from prepass.pipeline.resolve import ROOT, Element, Nest, PythonPass, python_passes


@dataclass(frozen=True)
class Step:
    """One pass of a pipeline.

    Attributes:
      text: Of the pass, with its options.
      pass_name: Its name, for a prepass pass; "" for one of the compiler.
      alone: A pipeline of this pass, nested as it is, and the passes of later phases that run with it.
      through: The pipeline up to and with this pass.
      later: The passes of later phases that run with `through`, by name.
    """

    text: str
    pass_name: str
    alone: str
    through: str
    later: tuple[str, ...]


def read_steps(pipeline: str, kernels: str | None, table: str = "") -> list[Step]:
    """The passes of a pipeline, named pipelines expanded, in order. Raises PipelineError."""
    nest = resolve_with_kernels(pipeline, kernels, Session().context)
    if nest is None:
        return []
    return [_step(nest, number, table) for number in range(_count(nest))]


def _step(nest: Nest, number: int, table: str) -> Step:
    (alone,) = _part(nest, number, number + 1)
    (through,) = _part(nest, 0, number + 1)
    later = [
        instance
        for phase, part in split_by_phase(through, default_registry(), table).items()
        if phase != PREPROCESSING
        for instance in part.elements
    ]
    leaf: Element = alone
    while isinstance(leaf, Nest):
        (leaf,) = leaf.elements
    own = [] if leaf in later else alone.elements
    names = [instance.name for element in later for instance in python_passes(element)]
    return Step(
        text=str(leaf),
        pass_name=leaf.instance.name if isinstance(leaf, PythonPass) else "",
        alone=str(Nest(ROOT, (*own, *later))),
        through=str(through),
        later=tuple(names),
    )


def _count(element: Element) -> int:
    return sum(map(_count, element.elements)) if isinstance(element, Nest) else 1


def _part(element: Element, first: int, end: int) -> tuple[Element, ...]:
    """An element with only those of its passes whose numbers are from `first` up to `end`; nothing without any."""
    if not isinstance(element, Nest):
        return (element,) if first <= 0 < end else ()
    kept: list[Element] = []
    for nested in element.elements:
        kept += _part(nested, first, end)
        first, end = first - _count(nested), end - _count(nested)
    return (Nest(element.anchor, tuple(kept)),) if kept else ()

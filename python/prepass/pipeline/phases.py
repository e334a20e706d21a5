# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which passes of a pipeline run after which phase of the compiler."""

from __future__ import annotations

from prepass.pipeline.base import PREPROCESSING, Pass
from prepass.pipeline.registry import Registry
from prepass.pipeline.resolve import ROOT, Element, Nest, PythonPass, python_passes


def split_by_phase(pipeline: Nest, registry: Registry) -> dict[str, Nest]:
    """A pipeline for each phase: what stays in preprocessing, and the passes that belong to a later phase.

    Passes that others are followed by are added with their default options,
    unless the pipeline has them already.
    """
    later: dict[str, dict[str, Pass]] = {}
    for instance in python_passes(pipeline):
        if instance.phase != PREPROCESSING:
            later.setdefault(instance.phase, {})[instance.name] = instance
    for instance in python_passes(pipeline):
        for name in instance.followed_by:
            follower = registry.find_pass(name)
            if follower is not None:
                later.setdefault(follower.phase, {}).setdefault(name, follower())
    pipelines = {PREPROCESSING: Nest(ROOT, _without_later(pipeline.elements))}
    for phase, passes in later.items():
        pipelines[phase] = Nest(ROOT, tuple(map(PythonPass, _in_order(passes))))
    return pipelines


def _in_order(passes: dict[str, Pass]) -> list[Pass]:
    """As in the pipeline, but each before those that it precedes."""
    waiting = list(passes.values())
    ordered: list[Pass] = []
    while waiting:
        preceded = {name for other in waiting for name in other.precedes}
        following = next((instance for instance in waiting if instance.name not in preceded), waiting[0])
        waiting.remove(following)
        ordered.append(following)
    return ordered


def _without_later(elements: tuple[Element, ...]) -> tuple[Element, ...]:
    kept: list[Element] = []
    for element in elements:
        if isinstance(element, Nest):
            kept.append(Nest(element.anchor, _without_later(element.elements)))
        elif not isinstance(element, PythonPass) or element.instance.phase == PREPROCESSING:
            kept.append(element)
    return tuple(kept)

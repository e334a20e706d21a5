# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which passes of a pipeline run after which phase of the compiler."""

from __future__ import annotations

import dataclasses

from prepass.pipeline.base import PREPROCESSING, Pass
from prepass.pipeline.registry import Registry
from prepass.pipeline.resolve import ROOT, Element, Nest, PythonPass, python_passes
from prepass.pipeline.tuned import TunedPass

_TUNED = ("prepass-select-kernels", "prepass-configure-attention", "prepass-configure-contractions")


def split_by_phase(pipeline: Nest, registry: Registry, tuning_table: str = "") -> dict[str, Nest]:
    """A pipeline for each phase: what stays in preprocessing, and the passes that belong to a later phase.

    Passes that others are followed by are added with their default options,
    unless the pipeline has them already. A tuning table is given to every pass
    that reads one and has none of its own; those that the pipeline lacks are added.
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
    for name in _TUNED if tuning_table else ():
        tuned = registry.find_pass(name)
        if tuned is not None and issubclass(tuned, TunedPass):
            later.setdefault(tuned.phase, {}).setdefault(name, tuned.for_table(tuning_table))
    pipelines = {PREPROCESSING: Nest(ROOT, _without_later(pipeline.elements))}
    for phase, passes in later.items():
        pipelines[phase] = Nest(
            ROOT, tuple(PythonPass(_with_table(instance, tuning_table)) for instance in _in_order(passes))
        )
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


def _with_table(instance: Pass, tuning_table: str) -> Pass:
    if not tuning_table or not isinstance(instance, TunedPass) or instance.table:
        return instance
    return dataclasses.replace(instance, table=tuning_table)


def _without_later(elements: tuple[Element, ...]) -> tuple[Element, ...]:
    kept: list[Element] = []
    for element in elements:
        if isinstance(element, Nest):
            kept.append(Nest(element.anchor, _without_later(element.elements)))
        elif not isinstance(element, PythonPass) or element.instance.phase == PREPROCESSING:
            kept.append(element)
    return tuple(kept)

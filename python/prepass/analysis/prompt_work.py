# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Work that a sampler does in each step although it depends on arguments that stay the same."""

from __future__ import annotations

from prepass.analysis.graph import DispatchGraph, Node
from prepass.analysis.issues import Instance, Issue, State, share_of
from prepass.analysis.pass_issues import Evidence

_WORDS = (
    "prompt-only-work",
    "Work of each step that depends on the prompt alone",
    "A sampler calls the program once a step, with arguments that stay the same. What depends on those alone, as the "
    "keys and values of cross-attention, could be computed once.",
)


def prompt_only_work(evidence: Evidence) -> Issue | None:
    """The dispatches that depend on arguments, but on none that changes from step to step."""
    found, left = (_unchanging(graph) for graph in (evidence.before, evidence.after))
    if not found:
        return None
    instances = [_instance(dispatch, evidence.before) for dispatch in found]
    return Issue(*_WORDS, tuple(instances), share_of(found), share_of(left))


def _unchanging(graph: DispatchGraph) -> list[Node]:
    changing = {name: _changing(graph, name) for name in graph.signatures}
    return [
        dispatch
        for dispatch in graph.main
        if dispatch.function is not None and dispatch.arguments and not dispatch.arguments & changing[dispatch.function]
    ]


def _changing(graph: DispatchGraph, function: str) -> frozenset[str]:
    """The arguments that change from call to call in a sampler's loop, and variables.

    Those are what has the type of a result, which is what the loop hands on, and scalars and vectors, such as the time
    step. All of them, when nothing has the type of a result: then there is no loop to speak of.
    """
    signature = graph.signatures[function]
    handed_on = {name for name, type_ in signature.arguments.items() if type_ in signature.results}
    everything = {name for dispatch in graph.main for name in dispatch.arguments}
    if not handed_on:
        return frozenset(everything)
    return frozenset(handed_on | signature.small | (everything - set(signature.arguments)))


def _instance(dispatch: Node, graph: DispatchGraph) -> Instance:
    types = graph.signatures[dispatch.function or ""].arguments
    names = ", ".join(f"{name} ({types[name]})" for name in sorted(dispatch.arguments))
    note = f"depends on {names} alone; no pass keeps results from one call to the next: export it as a function"
    return Instance(dispatch.location, dispatch.name, State.LEFT, note, "", dispatch.ops)

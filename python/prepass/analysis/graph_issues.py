# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The issues that are seen in the dispatches of a program, not in what passes do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from prepass.analysis.graph import DispatchGraph, Node
from prepass.analysis.issues import Instance, Issue, State, make_issue, share_of
from prepass.analysis.pass_issues import Evidence, passes_at
from prepass.analysis.provenance import ASSERTION

_ELEMENTWISE = (
    "unfused-elementwise",
    "Elementwise dispatches",
    "Elementwise work that is no part of what it reads or of what reads it goes through memory once more.",
)
_WEIGHTS = (
    "transposed-weights",
    "Weights that are transposed or copied",
    "They take memory twice and time at loading, or in each call where they are no initializers.",
)
_PADDING = (
    "copied-padding",
    "Padding that is a dispatch of its own",
    "A copy of the whole tensor for a few rows around it. IREE can read a tensor.pad in place, where its flag asks so.",
)
_COPIES = (
    "copied-tensors",
    "Tensors that are copied or transposed between dispatches",
    "Nothing is computed, and all of it goes through memory twice.",
)
_PADS = ("tensor.pad", "tensor.insert_slice")
_PADDING_FLAG = "--iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops"
_PROMPT = (
    "prompt-only-work",
    "Work of each step that depends on the prompt alone",
    "A sampler calls the program once a step, with arguments that stay the same. What depends on those alone, as the "
    "keys and values of cross-attention, could be computed once.",
)
_ASSERTIONS = (
    "assertions",
    "Assertions",
    "In a kernel they report nothing, but keep loads from being vectorized and equal work apart.",
)


def graph_issues(evidence: Evidence) -> Iterator[Issue]:
    """The issues of the graphs, of each kind that there is."""
    for make in (_assertions, _elementwise, _weights, _padding, _copies, _prompt):
        issue = make(evidence)
        if issue is not None:
            yield issue


def _assertions(evidence: Evidence) -> Issue | None:
    numbers = [number for number, op in evidence.sources.items() if op.name == ASSERTION]
    remarks = [f.remark for f in evidence.trace.findings if f.remark.pass_name == "prepass-strip-assertions"]
    reasons = {r.message.rpartition(": ")[2] for r in remarks if not r.message.endswith("removed")}
    instances = []
    for number in numbers:
        is_left = number in evidence.trace.left or not evidence.trace.passes
        note = "removed"
        if is_left:
            note = "; ".join(sorted(reasons)) or "the pipeline does not have prepass-strip-assertions"
        location = evidence.sources[number].location
        state, fix = (State.LEFT, "") if is_left else (State.FIXED, "prepass-strip-assertions")
        instances.append(Instance(location, ASSERTION, state, note, fix, frozenset({number})))
    return make_issue(*_ASSERTIONS, instances, evidence.before, evidence.after) if instances else None


def _elementwise(evidence: Evidence) -> Issue | None:
    """Elementwise dispatches that there is something to fuse with."""

    def is_unfused(dispatch: Node, graph: DispatchGraph) -> bool:
        is_alone = not dispatch.producers and not graph.readers[dispatch.number]
        return dispatch.kind == "elementwise" and dispatch.function is not None and not is_alone

    return _dispatch_issue(_ELEMENTWISE, evidence, is_unfused, _why_unfused)


def _weights(evidence: Evidence) -> Issue | None:
    def is_moved_weight(dispatch: Node, _: DispatchGraph) -> bool:
        return dispatch.kind in ("transpose", "copy") and not dispatch.arguments and not dispatch.producers

    def why(dispatch: Node, _: DispatchGraph) -> str:
        when = "in each call" if dispatch.function is not None else "once, at loading"
        return f"what reads it asks for another layout than it is stored in; done {when}"

    return _dispatch_issue(_WEIGHTS, evidence, is_moved_weight, why)


def _padding(evidence: Evidence) -> Issue | None:
    def why(_: Node, __: DispatchGraph) -> str:
        return f"IREE fuses a tensor.pad with {_PADDING_FLAG}, which prepass-sdxl sets"

    return _dispatch_issue(_PADDING, evidence, lambda d, _: _is_copied_padding(d, evidence), why)


def _copies(evidence: Evidence) -> Issue | None:
    def is_copy(dispatch: Node, _: DispatchGraph) -> bool:
        return _is_copy(dispatch) and not _is_copied_padding(dispatch, evidence)

    def why(dispatch: Node, graph: DispatchGraph) -> str:
        kinds = sorted({graph.dispatches[reader].kind for reader in graph.readers[dispatch.number]})
        return f"{_the(kinds)} that reads it asks for it" if kinds else "its result leaves the program"

    return _dispatch_issue(_COPIES, evidence, is_copy, why)


def _is_copy(dispatch: Node) -> bool:
    return dispatch.kind in ("transpose", "copy") and bool(dispatch.arguments)


def _is_copied_padding(dispatch: Node, evidence: Evidence) -> bool:
    return _is_copy(dispatch) and any(evidence.sources[number].name in _PADS for number in dispatch.ops)


def _prompt(evidence: Evidence) -> Issue | None:
    def is_wanted(graph: DispatchGraph) -> Callable[[Node], bool]:
        return lambda d: d.function is not None and bool(d.arguments) and not d.arguments & _changing(graph, d.function)

    found = [dispatch for dispatch in evidence.before.main if is_wanted(evidence.before)(dispatch)]
    if not found:
        return None
    after = [dispatch for dispatch in evidence.after.main if is_wanted(evidence.after)(dispatch)]
    instances = [
        Instance(
            dispatch.location,
            dispatch.name,
            State.LEFT,
            f"depends on {', '.join(sorted(dispatch.arguments))} alone; no pass keeps results from one call to the "
            "next: export it as a function of its own",
            "",
            dispatch.ops,
        )
        for dispatch in found
    ]
    return Issue(*_PROMPT, tuple(instances), share_of(found), share_of(after))


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


def _dispatch_issue(
    words: tuple[str, str, str],
    evidence: Evidence,
    is_wanted: Callable[[Node, DispatchGraph], bool],
    why: Callable[[Node, DispatchGraph], str],
) -> Issue | None:
    """An issue that is a kind of dispatches: one is fixed when none of its ops are in such a dispatch afterwards."""
    found, left = (
        [dispatch for dispatch in graph.dispatches if is_wanted(dispatch, graph)]
        for graph in (evidence.before, evidence.after)
    )
    if not found:
        return None
    instances = [_dispatch_instance(dispatch, left, evidence, why) for dispatch in found]
    return Issue(*words, tuple(instances), share_of(found), share_of(left))


def _dispatch_instance(
    dispatch: Node,
    left: Sequence[Node],
    evidence: Evidence,
    why: Callable[[Node, DispatchGraph], str],
) -> Instance:
    same = [other for other in left if other.ops & dispatch.ops]
    passes = passes_at(evidence.trace.findings, dispatch.ops)
    if same:
        state, fix, note = State.LEFT, "", why(same[0], evidence.after)
    elif passes:
        state, fix, note = State.FIXED, ", ".join(passes), "no longer a dispatch of its own"
    else:
        state, fix, note = State.FIXED, "the flags of the pipeline, or passes around it", "no longer a dispatch"
    return Instance(dispatch.location, dispatch.name, state, note, fix, dispatch.ops)


def _why_unfused(dispatch: Node, graph: DispatchGraph) -> str:
    if not dispatch.producers:
        return "it reads arguments and weights alone, so that there is nothing to fuse it with before it"
    if all(len(graph.readers[producer]) > 1 for producer in dispatch.producers):
        return "what it reads is read by other dispatches too, and goes through memory anyway"
    if not graph.readers[dispatch.number]:
        return "its result leaves the program"
    return f"IREE keeps it apart from {_the(sorted({graph.dispatches[n].kind for n in dispatch.producers}))} it reads"


def _the(kinds: Sequence[str]) -> str:
    return " and ".join(f"the {kind}" for kind in kinds)

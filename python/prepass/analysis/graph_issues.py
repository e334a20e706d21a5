# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The issues that are seen in the dispatches of a program, not in what passes do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from prepass.analysis.graph import DispatchGraph, Node
from prepass.analysis.issues import Instance, Issue, State, make_issue, share_of
from prepass.analysis.pass_issues import Evidence, passes_at
from prepass.analysis.prompt_work import prompt_only_work
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
_NEW = "no dispatch of its own without the pipeline; with it, "
_PADDING_FLAG = "--iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops"
_ASSERTIONS = (
    "assertions",
    "Assertions",
    "In a kernel they report nothing, but keep loads from being vectorized and equal work apart.",
)


def graph_issues(evidence: Evidence) -> Iterator[Issue]:
    """The issues of the graphs, of each kind that there is."""
    for make in (_assertions, _elementwise, _weights, _padding, _copies, prompt_only_work):
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

    pads = _padding_ops(evidence)
    return _dispatch_issue(_PADDING, evidence, lambda d, _: _is_copy(d) and bool(d.ops & pads), why)


def _copies(evidence: Evidence) -> Issue | None:
    pads = _padding_ops(evidence)

    def is_copy(dispatch: Node, _: DispatchGraph) -> bool:
        return _is_copy(dispatch) and not dispatch.ops & pads

    def why(dispatch: Node, graph: DispatchGraph) -> str:
        if any(evidence.sources[number].name == "tensor.concat" for number in dispatch.ops):
            return "a part of a concatenation, which is copied into its place"
        kinds = sorted({graph.dispatches[reader].kind for reader in graph.readers[dispatch.number]})
        return f"{_the(kinds)} that reads it asks for it" if kinds else "its result leaves the program"

    return _dispatch_issue(_COPIES, evidence, is_copy, why)


def _is_copy(dispatch: Node) -> bool:
    return dispatch.kind in ("transpose", "copy") and bool(dispatch.arguments)


def _padding_ops(evidence: Evidence) -> frozenset[int]:
    """The source ops that are padding, as tensor.pad or as a pass knows it."""
    findings = (*evidence.trace.findings, *evidence.further.findings)
    known = (f.roots for f in findings if f.applied and f.remark.pass_name == "prepass-fold-padding")
    pads = {number for number, op in evidence.sources.items() if op.name == "tensor.pad"}
    return frozenset(pads).union(*known)


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
    if not (found or left):
        return None
    known = frozenset[int]().union(*(dispatch.ops for dispatch in found))
    instances = [_dispatch_instance(dispatch, is_wanted, evidence, why) for dispatch in found]
    instances += [
        Instance(dispatch.location, dispatch.name, State.LEFT, _NEW + why(dispatch, evidence.after), "", dispatch.ops)
        for dispatch in left
        if not dispatch.ops & known
    ]
    return Issue(*words, tuple(instances), share_of(found), share_of(left))


def _dispatch_instance(
    dispatch: Node,
    is_wanted: Callable[[Node, DispatchGraph], bool],
    evidence: Evidence,
    why: Callable[[Node, DispatchGraph], str],
) -> Instance:
    def same(graph: DispatchGraph) -> list[Node]:
        return [other for other in graph.holding(dispatch.ops) if is_wanted(other, graph)]

    state, note, fix = State.FIXED, "no longer a dispatch of its own", _fix(dispatch, evidence, same)
    if left := same(evidence.after):
        state, note, fix = State.LEFT, why(left[0], evidence.after), ""
    return Instance(dispatch.location, dispatch.name, state, note, fix, dispatch.ops)


def _fix(dispatch: Node, evidence: Evidence, same: Callable[[DispatchGraph], list[Node]]) -> str:
    """What did away with a dispatch: the flags, where they alone do, or passes that rewrote it or what is beside it."""
    if not same(evidence.flagged):
        return "the flags of the preset"
    passes = passes_at(evidence.trace.findings, dispatch.ops)
    if not passes:
        beside = (*dispatch.producers, *evidence.before.readers[dispatch.number])
        ops = frozenset[int]().union(*(evidence.before.dispatches[number].ops for number in beside))
        passes = passes_at(evidence.trace.findings, ops)
    return ", ".join(passes) or "native passes of the pipeline"


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

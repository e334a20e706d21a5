# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An analysis as data for `--json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from prepass.analysis.analyze import Analysis
from prepass.analysis.costs import Cost
from prepass.analysis.dispatches import KINDS
from prepass.analysis.graph import DispatchGraph, Node, cost_of
from prepass.analysis.issues import Instance, Issue, Share, State, share_of

LABEL = "static figures: the model was compiled up to its dispatches, and nothing was run"
DYNAMIC = "some sizes are dynamic and count as one, so that bytes and operations are too low"


def analysis_document(analysis: Analysis) -> dict[str, Any]:
    """What a report says, and each dispatch."""
    return {
        "label": LABEL,
        "model": analysis.name,
        "target": analysis.target,
        "pipeline": analysis.pipeline,
        "flags": list(analysis.flags),
        "pipeline_flags": list(analysis.more_flags),
        "before": _graph(analysis.before),
        "after": _graph(analysis.after),
        "issues": [issue_document(issue, analysis.before) for issue in analysis.issues],
    }


def issue_document(issue: Issue, before: DispatchGraph) -> dict[str, Any]:
    """An issue with all its places; `before` are the dispatches without the pipeline."""
    return {
        "name": issue.name,
        "title": issue.title,
        "why": issue.why,
        "count": len(issue.instances),
        **{state.value: issue.count(state) for state in State},
        "before": _share(issue.before),
        "after": _share(issue.after),
        "saving": asdict(issue.saving) if issue.saving else None,
        "places": [_place(instance, before) for instance in issue.instances],
    }


def _place(instance: Instance, before: DispatchGraph) -> dict[str, Any]:
    return {
        "location": instance.location,
        "op": instance.what,
        "state": instance.state.value,
        "note": instance.note,
        "fix": instance.fix,
        "before": _share(share_of(before.holding(instance.ops))),
    }


def _share(share: Share) -> dict[str, Any]:
    return {
        "dispatches": share.dispatches,
        "initializer_dispatches": share.initializers,
        **_cost(share.cost),
    }


def _graph(graph: DispatchGraph) -> dict[str, Any]:
    by_kind = {kind: [d for d in graph.main if d.kind == kind] for kind in KINDS}
    return {
        "dispatches": len(graph.main),
        "initializer_dispatches": len(graph.initializers),
        **_cost(cost_of(graph.main)),
        "kinds": {
            kind: {"dispatches": len(found), **_cost(cost_of(found))} for kind, found in by_kind.items() if found
        },
        "graph": [_dispatch(dispatch) for dispatch in graph.dispatches],
    }


def _dispatch(dispatch: Node) -> dict[str, Any]:
    return {
        "number": dispatch.number,
        "name": dispatch.name,
        "kind": dispatch.kind,
        "location": dispatch.location,
        "function": dispatch.function,
        "arguments": sorted(dispatch.arguments),
        "reads": list(dispatch.producers),
        **_cost(dispatch.cost),
    }


def _cost(cost: Cost) -> dict[str, Any]:
    return {
        "read_bytes": cost.read_bytes,
        "written_bytes": cost.written_bytes,
        "matrix_flops": cost.matrix_flops,
        "vector_flops": cost.vector_flops,
        "exact": cost.exact,
    }

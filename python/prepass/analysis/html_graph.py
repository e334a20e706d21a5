# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The dispatch graph in the HTML report: a map of all dispatches, and their rows with the edges between them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from prepass.analysis.graph import DispatchGraph, Node, cost_of, count_kinds
from prepass.analysis.issues import Issue, State
from prepass.analysis.lanes import Lanes, assign_lanes, regions
from prepass.analysis.text_report import amount

_ROW, _LANE, _LANES = 20, 12, 14
_CELL, _COLUMNS = 12, 100
# So few rows, and so few parts, are shown at once.
_OPEN, _REGIONS = 60, 12
_HEAD = (
    '<table><colgroup><col style="width:48px"><col style="width:112px"><col><col style="width:78px">'
    '<col style="width:74px"><col style="width:190px"><col style="width:170px"></colgroup>'
    "<tr><th>#</th><th>kind</th><th>dispatch</th><th class=n>bytes</th><th class=n>FLOPs</th><th>source</th>"
    "<th>issues</th></tr>"
)


def graph_section(name: str, graph: DispatchGraph, held: Mapping[int, Sequence[str]]) -> Iterator[str]:
    """The map and the regions of a graph.

    `name` is part of the ids in the page; `held` are the names of the issues that each dispatch has a part in.
    """
    main = graph.main
    lanes = assign_lanes(main)
    parts = regions(lanes.live)
    yield _map(name, main, parts)
    outer = " open" if len(parts) <= _REGIONS else ""
    yield f'<details class="graph"{outer}><summary>{len(main)} rows in {len(parts)} parts, and what runs at loading'
    yield "</summary><div>"
    for number, part in enumerate(parts):
        yield _region(f"{name}-{number}", [main[row] for row in part], lanes, graph, held, is_open=len(main) <= _OPEN)
    if graph.initializers:
        yield _region(f"{name}-load", graph.initializers, None, graph, held, is_open=False)
    yield "</div></details>"


def source_name(location: str) -> str:
    """A location without the folder."""
    return posixpath.basename(location)


def short_name(name: str) -> str:
    """The name of a dispatch without the function it is in and its number there, which a row has already."""
    return re.sub(r"^.*?_dispatch_\d+_(?=.)", "", name)


def _map(name: str, dispatches: Sequence[Node], parts: Sequence[range]) -> str:
    """A cell for each dispatch, in the order of the program; each leads to its region."""
    cells = []
    for number, part in enumerate(parts):
        inside = []
        for row in part:
            dispatch = dispatches[row]
            x, y = row % _COLUMNS * _CELL, row // _COLUMNS * _CELL
            title = f"{dispatch.number}: {dispatch.name}, {amount(dispatch.cost.bytes, 'B')}"
            inside.append(
                f'<rect x="{x}" y="{y}" width="{_CELL - 2}" height="{_CELL - 2}" rx="2" '
                f'fill="var(--{dispatch.kind})"><title>{escape(title)}</title></rect>'
            )
        cells.append(f'<a href="#{name}-{number}">{"".join(inside)}</a>')
    width = min(len(dispatches), _COLUMNS) * _CELL
    height = -(-len(dispatches) // _COLUMNS) * _CELL
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return f'<svg class="map" {size} role="img" aria-label="all dispatches">{"".join(cells)}</svg>'


def _region(
    name: str,
    dispatches: Sequence[Node],
    lanes: Lanes | None,
    graph: DispatchGraph,
    held: Mapping[int, Sequence[str]],
    *,
    is_open: bool,
) -> str:
    cost = cost_of(dispatches)
    kinds = ", ".join(f"{count} {kind}" for kind, count in count_kinds(dispatches).most_common())
    where = f"{dispatches[0].number} to {dispatches[-1].number}" if lanes else "once, at loading"
    head = f"<b>{where}</b> {kinds} · {amount(cost.bytes, 'B')} · {amount(cost.flops, 'FLOP')}"
    rows = "".join(_row(dispatch, graph, held.get(dispatch.number, ())) for dispatch in dispatches)
    drawing = _drawing(dispatches, lanes, graph) if lanes else ""
    opened = " open" if is_open else ""
    return (
        f'<details id="{name}"{opened}><summary>{head}</summary><div class="rows">{drawing}{_HEAD}{rows}</table></div>'
        "</details>"
    )


def _row(dispatch: Node, graph: DispatchGraph, issues: Sequence[str]) -> str:
    name, short = escape(dispatch.name), escape(short_name(dispatch.name))
    producers = " ".join(map(str, dispatch.producers))
    readers = " ".join(map(str, graph.readers[dispatch.number]))
    listed = escape(", ".join(issues))
    return (
        f'<tr data-n="{dispatch.number}" data-producer="{producers}" data-reader="{readers}"><td>{dispatch.number}</td>'
        f'<td><span class="dot" style="background:var(--{dispatch.kind})"></span>{dispatch.kind}</td>'
        f'<td class="mono" title="{name}">{short}</td>'
        f'<td class="n">{amount(dispatch.cost.bytes, "B")}</td><td class="n">{amount(dispatch.cost.flops, "")}</td>'
        f'<td class="mono" title="{escape(dispatch.location)}">{escape(source_name(dispatch.location))}</td>'
        f'<td title="{listed}">{listed}</td></tr>'
    )


def _drawing(dispatches: Sequence[Node], lanes: Lanes, graph: DispatchGraph) -> str:
    """The lanes beside the rows of a region; those beyond the last that is drawn are left out."""
    first = lanes.rows[dispatches[0].number]
    height = len(dispatches) * _ROW
    lines = [_through(number, lanes, first, len(dispatches), graph) for number in lanes.lanes]
    for dispatch in dispatches:
        lines += [_edge(producer, dispatch, lanes, first, graph) for producer in dispatch.producers]
    dots = [
        f'<circle cx="{_x(lanes.lanes[d.number])}" cy="{_y(lanes.rows[d.number], first)}" r="4" '
        f'fill="var(--{d.kind})"/>'
        for d in dispatches
        if lanes.lanes[d.number] < _LANES
    ]
    used = [lanes.lanes[d.number] for d in dispatches] + [max(lanes.live[first : first + len(dispatches)], default=0)]
    width = (min(max(used), _LANES) + 1) * _LANE
    drawn = "".join([*lines, *dots])
    return f'<svg width="{width}" height="{height}" aria-hidden="true" fill="none" stroke-width="1.5">{drawn}</svg>'


def _through(number: int, lanes: Lanes, first: int, count: int, graph: DispatchGraph) -> str:
    """The part in a region of the line from a dispatch to above the last that reads it."""
    start, end = lanes.rows[number], lanes.last[number] - 1
    if end <= start or end < first or start >= first + count or lanes.lanes[number] >= _LANES:
        return ""
    x, top, bottom = _x(lanes.lanes[number]), max(_y(start, first), 0), min(_y(end, first), count * _ROW)
    return f'<path d="M{x} {top}V{bottom}" stroke="var(--{graph.dispatches[number].kind})" opacity=".6"/>'


def _edge(producer: int, dispatch: Node, lanes: Lanes, first: int, graph: DispatchGraph) -> str:
    """The last part of an edge, from the lane of what is read to the dispatch that reads it."""
    if producer not in lanes.lanes or max(lanes.lanes[producer], lanes.lanes[dispatch.number]) >= _LANES:
        return ""
    x, to = _x(lanes.lanes[producer]), _x(lanes.lanes[dispatch.number])
    bottom = _y(lanes.rows[dispatch.number], first)
    top = bottom - _ROW
    middle = bottom - _ROW // 2
    curve = f"M{x} {top}C{x} {middle} {to} {middle} {to} {bottom}"
    return f'<path d="{curve}" stroke="var(--{graph.dispatches[producer].kind})" opacity=".55"/>'


def _x(lane: int) -> int:
    return lane * _LANE + _LANE // 2


def _y(row: int, first: int) -> int:
    return (row - first) * _ROW + _ROW // 2


def issues_before(issues: Sequence[Issue]) -> dict[int, list[str]]:
    """The issues that each dispatch has a part in without the pipeline."""
    return _by_dispatch((issue.name, issue.before.numbers) for issue in issues)


def issues_after(issues: Sequence[Issue], graph: DispatchGraph) -> dict[int, list[str]]:
    """Those that are not fixed with it."""

    def left(issue: Issue) -> frozenset[int]:
        ops = {op for instance in issue.instances if instance.state is not State.FIXED for op in instance.ops}
        return issue.after.numbers & {dispatch.number for dispatch in graph.holding(ops)}

    return _by_dispatch((issue.name, left(issue)) for issue in issues)


def _by_dispatch(named: Iterable[tuple[str, frozenset[int]]]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for name, numbers in named:
        for number in numbers:
            found.setdefault(number, []).append(name)
    return found

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An analysis as one HTML file that needs no network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from prepass.analysis.analyze import Analysis
from prepass.analysis.dispatches import KINDS
from prepass.analysis.document import DYNAMIC, LABEL
from prepass.analysis.graph import DispatchGraph, cost_of, count_kinds
from prepass.analysis.html_graph import graph_section, issues_after, issues_before, source_name
from prepass.analysis.html_style import SCRIPT, STYLE
from prepass.analysis.issues import Instance, Issue, State, share_of
from prepass.analysis.text_report import amount, fix_text, saving_text

# More places of one issue are counted, not listed.
_PLACES = 200
_ARROW = '<span class="dim"> → </span>'


def html_report(analysis: Analysis) -> str:
    """The page."""
    return "".join(_page(analysis))


def _page(analysis: Analysis) -> Iterator[str]:
    title = escape(source_name(analysis.name))
    yield '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{title}: analysis</title><style>{STYLE}</style></head><body>"
    yield f"<h1>{title}</h1><p>For {escape(analysis.target)}, without and with "
    yield f"<code>{escape(analysis.pipeline)}</code>; {escape(LABEL)}.</p>"
    flags = f"<code>{escape(' '.join(analysis.flags))}</code>"
    more = f", and behind the pipeline <code>{escape(' '.join(analysis.more_flags))}</code>"
    yield f'<p class="dim">Flags: {flags}{more if analysis.more_flags else ""}</p>'
    if not analysis.exact:
        yield f"<p>{DYNAMIC}.</p>"
    yield _cards(analysis)
    yield "<h2>By kind of dispatch</h2>" + _kinds(analysis)
    yield f"<h2>Issues</h2>{_issues_introduction(analysis)}"
    yield from (_issue(issue, analysis.before) for issue in analysis.issues)
    yield "<h2>Dispatch graph</h2>"
    yield "<p>A cell is a dispatch, in the order of the program; it leads to its rows. There, a line goes from each "
    yield "dispatch to those that read its result; pointing at a row marks both.</p>" + _legend(analysis)
    sides = (
        ("before", "Without", analysis.before, issues_before(analysis.issues)),
        ("after", "With", analysis.after, issues_after(analysis.issues, analysis.after)),
    )
    for name, word, graph, held in sides:
        yield f"<h3>{word} {escape(analysis.pipeline)}: {len(graph.main)} dispatches</h3>"
        yield from graph_section(name, graph, held)
    yield f"<script>{SCRIPT}</script></body></html>"


def _cards(analysis: Analysis) -> str:
    graphs = (analysis.before, analysis.after)
    costs = [cost_of(graph.main) for graph in graphs]
    cards = (
        ("dispatches a call", [str(len(graph.main)) for graph in graphs]),
        ("dispatches at loading", [str(len(graph.initializers)) for graph in graphs]),
        ("bytes moved by a call", [amount(cost.bytes, "B") for cost in costs]),
        ("operations of a call", [amount(cost.flops, "FLOP") for cost in costs]),
    )
    filled = [f'<div class="card"><b>{_ARROW.join(values)}</b>{label}</div>' for label, values in cards]
    return f'<div class="cards">{"".join(filled)}</div>'


def _kinds(analysis: Analysis) -> str:
    graphs = (analysis.before, analysis.after)
    columns = [[_kind_figures(graph, kind) for graph in graphs] for kind in KINDS]
    rows = [(kind, column) for kind, column in zip(KINDS, columns, strict=True) if any(c[0] for c in column)]
    most = [max((figures[n] for _, column in rows for figures in column), default=0) or 1 for n in range(3)]
    body = "".join(f"<tr><td>{_dot(kind)}{kind}</td>{_kind_cells(column, most)}</tr>" for kind, column in rows)
    head = "".join(f"<th>{name}</th><th class=n></th>" for name in ("dispatches", "bytes", "FLOPs"))
    bars = '<p class="dim">The upper bar of two is without the pipeline, the lower one with it.</p>'
    return f'{bars}<table class="kinds"><tr><th>kind</th>{head}</tr>{body}</table>'


def _kind_figures(graph: DispatchGraph, kind: str) -> tuple[int, int, int]:
    found = [dispatch for dispatch in graph.main if dispatch.kind == kind]
    cost = cost_of(found)
    return len(found), cost.bytes, cost.flops


def _kind_cells(figures: Sequence[tuple[int, int, int]], most: Sequence[int]) -> str:
    cells = []
    for number, unit in enumerate((None, "B", "")):
        pair = [figure[number] for figure in figures]
        bars = "".join(
            f'<div class="bar {name}" style="width:{100 * value / most[number]:.1f}%"></div>' if value else ""
            for name, value in zip(("before", "after"), pair, strict=True)
        )
        texts = [str(value) if unit is None else amount(value, unit) for value in pair]
        cells.append(f'<td style="width:20%">{bars}</td><td class="n">{_ARROW.join(texts)}</td>')
    return "".join(cells)


def _legend(analysis: Analysis) -> str:
    used = count_kinds([*analysis.before.dispatches, *analysis.after.dispatches])
    parts = [f"<span>{_dot(kind)}{kind}</span>" for kind in KINDS if used[kind]]
    return f'<div class="legend">{"".join(parts)}</div>'


def _dot(kind: str) -> str:
    return f'<span class="dot" style="background:var(--{kind})"></span>'


def _issues_introduction(analysis: Analysis) -> str:
    if not analysis.issues:
        return "<p>None was found.</p>"
    return (
        '<p>Figures are those of the dispatches that an issue is in, without and with the pipeline; "+" counts those '
        "that run once, at loading. A dispatch can be in several issues, so they do not add up. "
        '<b class="fixed">Fixed</b> by the pipeline, <b class="fixable">fixable</b> by a pass that it lacks, '
        '<b class="left">left</b> for a reason.</p>'
        '<div class="issue-head"><span>issue</span><span>places</span><span>fixed, fixable, left</span>'
        "<span>dispatches</span><span>bytes</span><span>FLOPs</span></div>"
    )


def _issue(issue: Issue, before: DispatchGraph) -> str:
    shares = (issue.before, issue.after)
    counts = [f"{s.dispatches}+{s.initializers}" if s.initializers else str(s.dispatches) for s in shares]
    states = "".join(
        f'<span class="{state.value}" style="flex:{issue.count(state)}" title="{state.value}: {issue.count(state)}">'
        "</span>"
        for state in State
    )
    saving = f"<p>{escape(saving_text(issue.saving))}</p>" if issue.saving else ""
    return (
        f'<details class="issue" id="issue-{issue.name}"><summary><span>{escape(issue.title)}</span>'
        f"<span>{len(issue.instances)}</span>"
        f'<span class="states">{states}</span><span>{_ARROW.join(counts)}</span>'
        f"<span>{_ARROW.join(amount(share.cost.bytes, 'B') for share in shares)}</span>"
        f"<span>{amount(issue.before.cost.flops, '')}</span></summary>"
        f'<div><p>{escape(issue.why)} <span class="dim mono">{issue.name}</span></p>'
        f"{_notes(issue)}{saving}{_places(issue, before)}</div></details>"
    )


def _notes(issue: Issue) -> str:
    lines = []
    for state in State:
        for fix, note, count in issue.notes(state):
            by = fix_text(fix) if state is State.FIXABLE else fix
            code = f"<code>{escape(by)}</code>: " if by else ""
            lines.append(f'<li><b class="{state.value}">{state.value} {count}</b> {code}{escape(note)}</li>')
    return f'<ul class="notes">{"".join(lines)}</ul>'


def _places(issue: Issue, before: DispatchGraph) -> str:
    groups: dict[tuple[str, str, State], list[Instance]] = {}
    for instance in issue.instances:
        groups.setdefault((instance.location, instance.what, instance.state), []).append(instance)
    rows = []
    for (location, what, state), instances in list(groups.items())[:_PLACES]:
        share = share_of(before.holding(op for instance in instances for op in instance.ops))
        times = f" ×{len(instances)}" if len(instances) > 1 else ""
        rows.append(
            f'<tr><td class="mono" title="{escape(location)}">{escape(source_name(location))}</td>'
            f'<td class="mono">{escape(what)}{times}</td><td class="{state.value}">{state.value}</td>'
            f'<td class="n">{share.dispatches + share.initializers}</td>'
            f'<td class="n">{amount(share.cost.bytes, "B")}</td><td class="n">{amount(share.cost.flops, "")}</td></tr>'
        )
    more = len(groups) - _PLACES
    rest = f'<p class="dim">and {more} more, which --json lists</p>' if more > 0 else ""
    head = "<th class=n>dispatches</th><th class=n>bytes</th><th class=n>FLOPs</th>"
    return f'<table class="places"><tr><th>source</th><th>op</th><th></th>{head}</tr>{"".join(rows)}</table>{rest}'

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An analysis as tables and lines for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from prepass.analysis.analyze import Analysis, presets_with
from prepass.analysis.costs import Cost
from prepass.analysis.dispatches import KINDS
from prepass.analysis.document import DYNAMIC, LABEL
from prepass.analysis.graph import cost_of, count_kinds
from prepass.analysis.issues import Issue, Saving, Share, State

_COLOURS = {State.FIXED: "green", State.FIXABLE: "yellow", State.LEFT: "red"}
_UNITS = ("", "k", "M", "G", "T", "P")


def analysis_report(analysis: Analysis, *, places: int = 3) -> Iterator[RenderableType]:
    """The parts of a report: totals, the table of issues, and each issue with its first places."""
    yield Text(LABEL, style="dim")
    yield Text(f"{analysis.name} for {analysis.target}, without and with {analysis.pipeline}")
    if not analysis.exact:
        yield Text(DYNAMIC)
    yield _kinds_table(analysis)
    if not analysis.issues:
        yield Text("No issue was found.")
        return
    yield _issues_table(analysis)
    for issue in analysis.issues:
        yield from _issue(issue, places)


def amount(number: int, unit: str) -> str:
    """A number with three digits and a prefix: `1.23 GB`."""
    value, prefix = float(number), 0
    while value >= 999.5 and prefix < len(_UNITS) - 1:
        value, prefix = value / 1000, prefix + 1
    digits = 0 if prefix == 0 or value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:.{digits}f} {_UNITS[prefix]}{unit}"


def fix_text(fix: str) -> str:
    """The pass that fixes an issue, and the presets that have it."""
    presets = presets_with(fix)
    return f"{fix} (in {', '.join(presets)})" if presets else f"{fix} (in no preset)"


def saving_text(saving: Saving) -> str:
    """What passes save, in a sentence."""
    passes = " and ".join(saving.passes)
    if not (saving.dispatches or saving.initializers or saving.bytes):
        return f"Leaving out {passes} alone changes neither dispatches nor bytes."
    dispatches = f"{saving.dispatches:+}{f' and {saving.initializers:+} at loading' if saving.initializers else ''}"
    sign = "-" if saving.bytes < 0 else "+"
    return (
        f"Without {passes}, a call would take {dispatches} dispatches and move {sign}{amount(abs(saving.bytes), 'B')}."
    )


def _kinds_table(analysis: Analysis) -> Table:
    table = Table("kind", box=None, pad_edge=False)
    for column in ("dispatches", "bytes", "FLOPs"):
        table.add_column(column, justify="right")
        table.add_column("after", justify="right")
    graphs = (analysis.before, analysis.after)
    counts = [count_kinds(graph.main) for graph in graphs]
    for kind in KINDS:
        if any(count[kind] for count in counts):
            costs = [cost_of(d for d in graph.main if d.kind == kind) for graph in graphs]
            table.add_row(kind, *_pairs([count[kind] for count in counts], costs))
    table.add_section()
    table.add_row("all", *_pairs([len(graph.main) for graph in graphs], [cost_of(graph.main) for graph in graphs]))
    loading = [cost_of(graph.initializers) for graph in graphs]
    table.add_row("once, at loading", *_pairs([len(graph.initializers) for graph in graphs], loading))
    return table


def _pairs(counts: list[int], costs: list[Cost]) -> list[str]:
    cells = [str(count) for count in counts]
    cells += [amount(cost.bytes, "B") for cost in costs]
    return cells + [amount(cost.flops, "") for cost in costs]


def _issues_table(analysis: Analysis) -> Table:
    table = Table("issue", box=None, pad_edge=False)
    for column in ("places", *(state.value for state in State), "dispatches", "after", "bytes", "after", "FLOPs"):
        table.add_column(column, justify="right")
    for issue in analysis.issues:
        counts = [str(issue.count(state) or "") for state in State]
        shares = (issue.before, issue.after)
        bytes_ = [amount(share.cost.bytes, "B") for share in shares]
        row = (issue.name, str(len(issue.instances)), *counts, *map(_dispatches, shares), *bytes_)
        table.add_row(*row, amount(issue.before.cost.flops, ""))
    return table


def _dispatches(share: Share) -> str:
    return f"{share.dispatches}+{share.initializers}" if share.initializers else str(share.dispatches)


def _issue(issue: Issue, places: int) -> Iterator[RenderableType]:
    yield Text(f"\n{issue.name}: {issue.title}", style="bold")
    yield Padding(Text(issue.why), (0, 0, 0, 2), expand=False)
    for state in State:
        for fix, note, count in issue.notes(state):
            line = Text(f"{state.value} {count}", style=_COLOURS[state])
            by = fix_text(fix) if state is State.FIXABLE else fix
            line.append(f" {by}: {note}" if by else f" {note}", style="default")
            yield Padding(line, (0, 0, 0, 2), expand=False)
    if issue.saving:
        yield Padding(Text(saving_text(issue.saving)), (0, 0, 0, 2), expand=False)
    shown = Counter((instance.location, instance.what) for instance in issue.instances)
    for (location, what), count in list(shown.items())[:places]:
        times = f" ×{count}" if count > 1 else ""
        yield Padding(Text(f"{location} {what}{times}", style="dim"), (0, 0, 0, 2), expand=False)
    if len(shown) > places:
        yield Padding(Text(f"and at {len(shown) - places} more", style="dim"), (0, 0, 0, 2), expand=False)

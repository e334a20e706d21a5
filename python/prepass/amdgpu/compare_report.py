# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Two sets of kernels for people: the differences that matter first, in one screen."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from prepass.amdgpu.compare import Comparison, Difference, Pair
from prepass.amdgpu.figures import KernelFigures
from prepass.amdgpu.metrics import METRICS
from prepass.amdgpu.report import number

# Lines of a screen, less those around the tables.
SCREEN = 40

_BAR = 24
_LEAST_ROWS = 5
_AROUND_A_PAIR = 4
_LOWER = ("spills", "scratch", "cycles", "lds_bytes", "vgprs", "waits")
_HIGHER = ("waves", "load_width", "mfma_utilization", "loads_16b", "packed")
_NARROW = ("loads_1b", "loads_2b", "lds_reads_1b", "lds_reads_2b", "lds_writes_1b", "lds_writes_2b")


def comparison_report(comparison: Comparison, *, bars: bool, lines: int | None) -> Iterator[RenderableType]:
    """Tables of the pairs that differ, then lines for the rest.

    `lines` is how many lines of tables there may be; None for all.
    """
    differing = [pair for pair in comparison.pairs if pair.differences]
    lonely = [("only in A", f) for f in comparison.only_old] + [("only in B", f) for f in comparison.only_new]
    left = None if lines is None else lines - min(len(lonely), 3) - 2
    shown = 0
    for pair in differing:
        most = None if left is None else left - _AROUND_A_PAIR - (5 if bars else 0)
        if most is not None and most < _LEAST_ROWS:
            break
        rows = len(pair.rows) if most is None else min(len(pair.rows), most)
        yield from _pair_report(pair, rows, bars)
        shown += 1
        if left is not None:
            left -= rows + _AROUND_A_PAIR + (5 if bars else 0)
    yield from _rest(differing[shown:], lonely, None if lines is None else max(3, left or 0))
    same = len(comparison.pairs) - len(differing)
    if same:
        yield Text(f"{_count(same, 'kernel')} with equal figures")


def _pair_report(pair: Pair, rows: int, bars: bool) -> Iterator[RenderableType]:
    yield Text(f"A {pair.old.name}", style="bold", overflow="ellipsis", no_wrap=True)
    yield Text(f"B {pair.new.name}", style="bold", overflow="ellipsis", no_wrap=True)
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for part in ("kernel", "loop"):
        for column in (f"{part}: A", "B", "change"):
            table.add_column(column, justify="right")
    for difference in pair.rows[:rows]:
        table.add_row(
            METRICS[difference.metric].label,
            *_cells(difference, difference.kernel),
            *_cells(difference, difference.loop),
        )
    yield table
    if hidden := len(pair.rows) - rows:
        yield Text(f"… and {_count(hidden, 'smaller difference')}; --all shows them", style="dim")
    if bars:
        yield from _bars(pair)
    yield Text()


def _cells(difference: Difference, values: tuple[float, float] | None) -> list[RenderableType]:
    if values is None or values == (0, 0):
        return ["", "", ""]
    old, new = values
    if old == new:
        return [number(old), number(new), "="]
    return [
        number(old),
        number(new),
        Text(f"{'+' if new > old else '-'}{number(abs(new - old))}", style=_style(difference, new > old)),
    ]


def _style(difference: Difference, more: bool) -> str:
    name = difference.metric
    if name.startswith(_HIGHER):
        return "green" if more else "red"
    if name in _NARROW or name.startswith(_LOWER) or name.endswith("_cycles"):
        return "red" if more else "green"
    return ""


def _bars(pair: Pair) -> Iterator[RenderableType]:
    costs = [f.hottest.cost if f.hottest else f.cost for f in (pair.old, pair.new)]
    if costs[0] is None or costs[1] is None:
        return
    longest = max(cost.cycles for cost in costs if cost) or 1
    yield Text(f"clocks per iteration, static cost model{'':15}A{'':{_BAR + 8}}B")
    for unit in costs[0].cu.units:
        cells = [cost.cu.units[unit] for cost in costs if cost]
        drawn = [f"{number(clocks):>7} {'█' * round(_BAR * clocks / longest):{_BAR}}" for clocks in cells]
        yield Text(f"{unit:8}{drawn[0]} {drawn[1]}")


def _rest(pairs: list[Pair], lonely: list[tuple[str, KernelFigures]], lines: int | None) -> Iterator[RenderableType]:
    """One line each: pairs by what differs first, and kernels of one side."""
    texts = [f"also differs: {pair.new.name}: {_summary(pair)}" for pair in pairs]
    texts += [f"{side}: {figures.name}" for side, figures in lonely]
    shown = texts if lines is None or len(texts) <= lines else texts[: lines - 1]
    yield from (Text(text, overflow="ellipsis", no_wrap=True) for text in shown)
    if hidden := len(texts) - len(shown):
        yield Text(f"… and {_count(hidden, 'more kernel')}; --all shows them, --kernel=<glob> some", style="dim")


def _summary(pair: Pair) -> str:
    first = pair.differences[:3]
    changes = [d.kernel if d.kernel and d.kernel[0] != d.kernel[1] else d.loop for d in first]
    return ", ".join(
        f"{METRICS[d.metric].label} {number(c[0])} -> {number(c[1])}" for d, c in zip(first, changes, strict=True) if c
    )


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The counts of a program as tables for people, and as a document for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from prepass.amdgpu.machine import Machine, machine_for
from prepass.analysis.costs import Cost, total
from prepass.analysis.dispatches import KINDS, Dispatch
from prepass.analysis.roofline import roofline_seconds
from prepass.checking.baseline import Change
from prepass.checking.statistics import ProgramStatistics

STATIC = "static counts and estimates; nothing was run"


@dataclass(frozen=True)
class Group:
    """Dispatches of a kind, added up.

    Attributes:
      seconds: The sum of their rooflines, or None when the machine is not known.
    """

    name: str
    dispatches: int
    cost: Cost
    seconds: float | None


def machine_of(statistics: ProgramStatistics) -> Machine | None:
    """The GPU that a program is compiled for, when its rates are known."""
    return machine_for(statistics.target.architecture) if statistics.target else None


def groups_of(sites: Sequence[Dispatch], machine: Machine | None) -> list[Group]:
    """Dispatches by kind, in the order of KINDS, and all of them."""
    kinds = [(kind, [site for site in sites if site.kind == kind]) for kind in KINDS]
    named = [(kind, found) for kind, found in kinds if found]
    return [_group(name, found, machine) for name, found in [*named, ("all", list(sites))]]


def _group(name: str, sites: Sequence[Dispatch], machine: Machine | None) -> Group:
    seconds = sum(max(roofline_seconds(site, machine).values()) for site in sites) if machine else None
    return Group(name, len(sites), total(site.cost for site in sites), seconds)


def statistics_report(statistics: ProgramStatistics, *, in_full: bool) -> Iterator[RenderableType]:
    """Tables of a program's dispatches by kind and of its memory; in full, one of each dispatch too."""
    machine = machine_of(statistics)
    yield Text(STATIC, style="dim")
    yield _kinds_table(groups_of(statistics.main, machine), machine)
    yield _memory_table(statistics)
    if not all(site.cost.exact for site in statistics.sites):
        yield Text("some sizes are dynamic; they count as one in traffic and operations", style="dim")
    if in_full:
        yield _sites_table(statistics.sites, machine)


def statistics_document(statistics: ProgramStatistics) -> dict[str, object]:
    """The same as a JSON document; bytes, operations and seconds, null where a size is dynamic."""
    machine = machine_of(statistics)
    return {
        "static": True,
        "target": statistics.target.name if statistics.target else None,
        "roofline_machine": machine.name if machine else None,
        "dispatches": statistics.dispatches,
        "initializer_dispatches": statistics.initializer_dispatches,
        "transient_bytes": statistics.transient_bytes,
        "weight_bytes": statistics.weight_bytes,
        "initializer_read_bytes": statistics.initializer_read_bytes,
        "kinds": {group.name: _group_record(group) for group in groups_of(statistics.main, machine)},
        "sites": [_site_record(site, machine) for site in statistics.sites],
    }


def change_lines(changes: Iterable[Change]) -> Iterator[str]:
    """Lines that say what changed since a baseline; nothing for what did not."""
    for change in changes:
        what = change.count.replace("_", " ")
        yield f"{what}: {change.before} before, {change.after} now"
        yield from (f"  new: {site.location}: {site.name}" for site in change.new)
        yield from (f"  gone: {signature}" for signature in change.gone)


def _kinds_table(groups: Sequence[Group], machine: Machine | None) -> Table:
    columns = ["kind", "dispatches", "MB", "GFLOP"] + ([f"{machine.name} roofline, us"] if machine else [])
    table = _table("dispatches", columns)
    for group in groups:
        cells = [group.name, str(group.dispatches), f"{group.cost.bytes / 1e6:.1f}", f"{group.cost.flops / 1e9:.2f}"]
        table.add_row(*cells, *([f"{group.seconds * 1e6:.1f}"] if group.seconds is not None else []))
    return table


def _memory_table(statistics: ProgramStatistics) -> Table:
    table = _table("memory and loading", ["what", "amount"])
    table.add_row("transient MB", _megabytes(statistics.transient_bytes))
    table.add_row("weights and constants, MB", _megabytes(statistics.weight_bytes))
    table.add_row("initializer dispatches", str(statistics.initializer_dispatches))
    table.add_row("weights read by initializers, MB", _megabytes(statistics.initializer_read_bytes))
    return table


def _sites_table(sites: Sequence[Dispatch], machine: Machine | None) -> Table:
    columns = ["dispatch", "kind", "MB", "GFLOP", *(["us", "bound by"] if machine else []), "from"]
    table = _table("each dispatch", columns)
    for site in sites:
        cells = [site.name, site.kind, f"{site.cost.bytes / 1e6:.2f}", f"{site.cost.flops / 1e9:.3f}"]
        if machine:
            units = roofline_seconds(site, machine)
            bound = max(units, key=lambda unit: units[unit])
            cells += [f"{units[bound] * 1e6:.2f}", bound]
        table.add_row(*cells, site.location)
    return table


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for number, name in enumerate(columns):
        words = number == 0 or name in ("kind", "bound by", "from")
        table.add_column(name, justify="left" if words else "right", overflow="fold")
    return table


def _megabytes(count: int | None) -> str:
    return "dynamic" if count is None else f"{count / 1e6:.1f}"


def _group_record(group: Group) -> dict[str, object]:
    return {
        "dispatches": group.dispatches,
        "read_bytes": group.cost.read_bytes,
        "written_bytes": group.cost.written_bytes,
        "flops": group.cost.flops,
        "roofline_seconds": group.seconds,
    }


def _site_record(site: Dispatch, machine: Machine | None) -> dict[str, object]:
    return {
        "name": site.name,
        "kind": site.kind,
        "element": site.element,
        "initializer": site.initializer,
        "location": site.location,
        "read_bytes": site.cost.read_bytes,
        "written_bytes": site.cost.written_bytes,
        "matrix_flops": site.cost.matrix_flops,
        "vector_flops": site.cost.vector_flops,
        "exact": site.cost.exact,
        "roofline_seconds": roofline_seconds(site, machine) if machine else None,
    }

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Figures for people: tables, with bars on a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prepass.amdgpu.cost import LoopCost, roofline
from prepass.amdgpu.figures import Counts, KernelFigures
from prepass.amdgpu.mca import McaReport
from prepass.amdgpu.opcodes import Access, Kind

STATIC = "static figures of the code; nothing was run"

_BAR = 30
_LDS_WORDS = {"load": "read", "store": "write", "atomic": "atomic"}
_DIRECTIONS = ("load", "store", "atomic")
_SPACES = ("global", "buffer", "flat", "scratch", "scalar")


def kernel_report(figures: KernelFigures, mca: McaReport | None = None, *, bars: bool = False) -> RenderableType:
    """All about a kernel; bars show what its loop costs."""
    parts: list[RenderableType] = [
        Text(figures.name, style="bold", overflow="fold"),
        *(Text(f"  {line}") for line in _resources(figures)),
        _counts_table(figures),
    ]
    hottest = figures.hottest
    part = hottest or figures
    if part.cost and part.least_cost:
        what = "iteration" if hottest else "wave"
        parts += [Text(f"  {line}") for line in cost_lines(part.cost, part.least_cost, what, bars=bars)]
    if mca:
        parts.append(Text(f"  {_mca_line(mca)}"))
    return Group(*parts, Text())


def kernels_table(kernels: Sequence[KernelFigures]) -> RenderableType:
    """A line for each kernel."""
    columns = (
        "kernel",
        "MFMA",
        "VALU",
        "loads",
        "B/load",
        "LDS B",
        "VGPRs",
        "waves",
        "spills",
        "loop: MFMA",
        "bound by",
    )
    table = Table(box=None, pad_edge=False)
    for name in columns:
        table.add_column(name, justify="left" if name in ("kernel", "bound by") else "right", overflow="fold")
    for figures in kernels:
        counts, hottest, metadata = figures.counts, figures.hottest, figures.metadata
        cost = hottest.cost if hottest else figures.cost
        row: list[float | str] = [figures.name, counts.mfmas, counts.kinds[Kind.VALU], counts.accesses_of("load")]
        row += [counts.load_width(), metadata.lds_bytes, metadata.vgprs]
        row += [figures.occupancy.waves_per_simd if figures.occupancy else "", figures.spills]
        row += [hottest.counts.mfmas if hottest else "no loop", cost.bound if cost else ""]
        table.add_row(*(cell if isinstance(cell, str) else number(cell) for cell in row))
    return table


def cost_lines(cost: LoopCost, least: LoopCost, what: str, *, bars: bool) -> Iterator[str]:
    """What the cost model says of an iteration, or of a wave, with all that branches may skip and without."""
    yield f"static cost model, clocks of {cost.machine.name} per {what}: one wave; a CU with a wave on each SIMD"
    for unit, clocks in cost.cu.units.items():
        bar = "█" * round(_BAR * clocks / cost.cycles) if bars and cost.cycles else ""
        note = "  <- bound" if unit == cost.bound else ""
        yield f"  {unit:7}{number(cost.wave.units[unit]):>7}{number(clocks):>7}  {bar}{note}"
    if least.cu != cost.cu:
        clocks = ", ".join(f"{unit} {number(spent)}" for unit, spent in least.cu.units.items())
        yield f"  without what branches may skip: {clocks}"
    if cost.wave.transcendental:
        yield f"  of the VALU's, {number(cost.wave.transcendental)} transcendental"
    if cost.wave.mfma:
        least, most = cost.serial_mfma_utilization, cost.mfma_utilization
        yield f"  matrix cores busy: {most:.0%} when all else overlaps, {least:.0%} when nothing does"
    yield from _roofline_lines(cost)


def number(value: float) -> str:
    """A figure with thousands separated, and decimals only where it has some."""
    if not math.isfinite(value):
        return str(value)
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def _roofline_lines(cost: LoopCost) -> Iterator[str]:
    found = roofline(cost)
    if not cost.flops and not cost.vector_flops:
        return
    unit = f"{found.element} matrix" if found.element else "f32 vector"
    tera = 1e12
    yield (
        f"  roofline: peak {found.peak_flops / tera:,.0f} TFLOP/s ({unit}), this code "
        f"{found.issue_flops / tera:,.0f} at most"
    )
    if math.isfinite(found.intensity):
        memories = ", ".join(f"{name} {flops / tera:,.0f}" for name, flops in found.memory_flops.items())
        yield f"  at {found.intensity:,.1f} operations per byte, if all bytes came from: {memories}"


def _resources(figures: KernelFigures) -> Iterator[str]:
    metadata, occupancy = figures.metadata, figures.occupancy
    shape = "×".join(map(str, metadata.workgroup_size)) or f"at most {metadata.max_workgroup_size}"
    yield (
        f"{figures.architecture}, workgroup {shape}, {number(figures.code_bytes)} bytes of code, "
        f"loops {len(figures.loops)}"
    )
    yield (
        f"VGPRs {metadata.vgprs} (AGPRs {metadata.agprs}), SGPRs {metadata.sgprs}, LDS {number(metadata.lds_bytes)} B, "
        f"scratch {number(metadata.private_bytes)} B, spills {figures.spills}"
    )
    if occupancy:
        yield f"waves per SIMD {number(occupancy.waves_per_simd)}, limited by {occupancy.limit}"


def _counts_table(figures: KernelFigures) -> Table:
    hottest = figures.hottest
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("")
    table.add_column("all", justify="right")
    if hottest:
        table.add_column(f"loop {hottest.loop.label}, depth {hottest.loop.depth}", justify="right")
    parts = [dict(_rows(figures.counts)), *([dict(_rows(hottest.counts))] if hottest else [])]
    for label in parts[0]:
        table.add_row(f"  {label}", *(number(part.get(label, 0)) for part in parts))
    return table


def _rows(counts: Counts) -> Iterator[tuple[str, float]]:
    yield "instructions", counts.total
    for kind, count in counts.mfma_kinds.items():
        yield f"MFMA {kind}", count
    yield "VALU", counts.kinds[Kind.VALU]
    yield "  transcendental", counts.transcendental
    yield "  packed", counts.packed
    yield "SALU", counts.kinds[Kind.SALU]
    yield from _access_rows(counts, _SPACES)
    yield from _access_rows(counts, ("lds",))
    if counts.lane_swaps:
        yield "lane swaps", counts.lane_swaps
    yield "barriers", counts.kinds[Kind.BARRIER]
    yield "waits", counts.kinds[Kind.WAIT]


def _access_rows(counts: Counts, spaces: Sequence[str]) -> Iterator[tuple[str, float]]:
    """By direction, then by space, the widest first."""

    def order(access: Access) -> tuple[int, int, int]:
        return _DIRECTIONS.index(access.direction), spaces.index(access.space), -access.width

    for access in sorted((a for a in counts.accesses if a.space in spaces), key=order):
        what = f"LDS {_LDS_WORDS[access.direction]}" if access.space == "lds" else f"{access.space} {access.direction}"
        yield f"{what} {access.width} B", counts.accesses[access]


def _mca_line(mca: McaReport) -> str:
    units = ", ".join(f"{name} {number(clocks)}" for name, clocks in mca.units.items())
    return (
        f"llvm-mca, one wave alone: {number(round(mca.clocks))} clocks per iteration, "
        f"{number(mca.issue_clocks)} to issue; {units}"
    )

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Figures as data for `--json`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from prepass.amdgpu.compare import Comparison
from prepass.amdgpu.cost import LoopCost, roofline
from prepass.amdgpu.figures import Counts, KernelFigures, LoopFigures
from prepass.amdgpu.mca import McaReport
from prepass.amdgpu.metrics import metrics_of

_LABEL = "static figures of the code; nothing was run"


def kernels_document(kernels: Sequence[KernelFigures], mca: dict[str, McaReport]) -> dict[str, Any]:
    """What a report says; `mca` has what llvm-mca said of hottest loops, by the kernel's name."""
    return {"label": _LABEL, "kernels": [kernel_document(figures, mca.get(figures.name)) for figures in kernels]}


def comparison_document(comparison: Comparison, names: tuple[str, str]) -> dict[str, Any]:
    """What a comparison says."""
    return {
        "label": _LABEL,
        "old": names[0],
        "new": names[1],
        "pairs": [
            {
                "old": kernel_document(pair.old),
                "new": kernel_document(pair.new),
                "differences": [{"metric": d.metric, "kernel": d.kernel, "loop": d.loop} for d in pair.differences],
            }
            for pair in comparison.pairs
        ],
        "only_old": [kernel_document(figures) for figures in comparison.only_old],
        "only_new": [kernel_document(figures) for figures in comparison.only_new],
    }


def kernel_document(figures: KernelFigures, mca: McaReport | None = None) -> dict[str, Any]:
    """A kernel."""
    document = {
        "name": figures.name,
        "architecture": figures.architecture,
        "workgroup": list(figures.metadata.workgroup_size),
        "occupancy_limit": figures.occupancy.limit if figures.occupancy else None,
        "metrics": metrics_of(figures),
        "code": _code(figures.counts),
        "loops": [_loop(loop) for loop in figures.loops],
        "hottest_loop": None,
    }
    if figures.hottest:
        document["hottest_loop"] = figures.hottest.loop.label
    elif figures.cost and figures.least_cost:
        # Without a loop each instruction runs once, or is skipped.
        document |= {"cost": _cost(figures.cost), "least_cost": _cost(figures.least_cost)}
    if mca:
        document["llvm_mca"] = {"clocks": mca.clocks, "issue_clocks": mca.issue_clocks, "units": dict(mca.units)}
    return document


def _loop(figures: LoopFigures) -> dict[str, Any]:
    return {
        "label": figures.loop.label,
        "depth": figures.loop.depth,
        "innermost": figures.loop.innermost,
        "code": _code(figures.counts),
        "cost": _cost(figures.cost) if figures.cost else None,
        "least_cost": _cost(figures.least_cost) if figures.least_cost else None,
    }


def _code(counts: Counts) -> dict[str, Any]:
    return {
        "mfma_kinds": counts.mfma_kinds,
        "accesses": [
            {"space": a.space, "direction": a.direction, "width": a.width, "count": n}
            for a, n in sorted(counts.accesses.items())
        ],
        "instructions": dict(counts.names.most_common()),
    }


def _cost(cost: LoopCost) -> dict[str, Any]:
    found = roofline(cost)
    return {
        "machine": cost.machine.name,
        "wave_clocks": cost.wave.units,
        "cu_clocks": cost.cu.units,
        "transcendental_clocks": cost.wave.transcendental,
        "bound": cost.bound,
        "clocks_overlapped": cost.cycles,
        "clocks_serial": cost.serial_cycles,
        "mfma_utilization_overlapped": cost.mfma_utilization,
        "mfma_utilization_serial": cost.serial_mfma_utilization,
        "load_bytes": cost.load_bytes,
        "store_bytes": cost.store_bytes,
        "roofline": {
            "element": found.element or "f32 vector",
            # JSON has no infinity.
            "intensity": found.intensity if math.isfinite(found.intensity) else None,
            "peak_flops": found.peak_flops,
            "issue_flops": found.issue_flops,
            "memory_flops": {
                name: flops if math.isfinite(flops) else None for name, flops in found.memory_flops.items()
            },
        },
    }

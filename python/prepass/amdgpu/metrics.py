# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The figures by name: what reports print, what `--json` holds, what conditions speak of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from prepass.amdgpu.cost import LoopCost
from prepass.amdgpu.figures import Counts, KernelFigures, LoopFigures
from prepass.amdgpu.opcodes import Kind

LOOP_PREFIX = "loop."

_WIDTHS = (16, 12, 8, 4, 2, 1)
_Reader = Callable[[KernelFigures, Counts, LoopCost, LoopCost], float]


@dataclass(frozen=True)
class Metric:
    """A figure.

    Attributes:
      label: What a table calls it.
      help: What it is.
      scope: `kernel`; `code` for what a loop has as well; `cost` for what the cost model says of code.
    """

    name: str
    label: str
    help: str
    scope: str
    read: _Reader = field(repr=False, compare=False)


def _kernel(name: str, label: str, text: str, read: Callable[[KernelFigures], float]) -> Metric:
    return Metric(name, label, text, "kernel", lambda figures, *_: read(figures))


def _code(name: str, label: str, text: str, read: Callable[[Counts], float]) -> Metric:
    return Metric(name, label, text, "code", lambda _, counts, *__: read(counts))


def _cost(name: str, label: str, text: str, read: Callable[[LoopCost], float]) -> Metric:
    return Metric(name, label, f"Cost model: {text}", "cost", lambda _, __, cost, ___: read(cost))


def _least_cost(name: str, label: str, text: str, read: Callable[[LoopCost], float]) -> Metric:
    return Metric(name, label, f"Cost model: {text}", "cost", lambda _, __, ___, least: read(least))


def _accesses(name: str, label: str, text: str, direction: str, *spaces: str) -> Iterator[Metric]:
    yield _code(name, label, text, lambda counts: counts.accesses_of(direction, *spaces))
    for width in _WIDTHS:
        yield _code(
            f"{name}_{width}b",
            f"{label} {width} B",
            f"Those of {width} bytes a lane",
            lambda counts, width=width: counts.accesses_of(direction, *spaces, width=width),
        )


# A difference in the first matters most.
_METRICS = (
    _kernel("spills", "spills", "Registers spilled, vector and scalar", lambda f: f.spills),
    _kernel("vgpr_spills", "VGPR spills", "Vector registers spilled", lambda f: f.metadata.vgpr_spills),
    _kernel("sgpr_spills", "SGPR spills", "Scalar registers spilled", lambda f: f.metadata.sgpr_spills),
    _kernel("scratch_bytes", "scratch bytes", "Scratch memory of a work item", lambda f: f.metadata.private_bytes),
    _code("scratch_loads", "scratch loads", "Loads from scratch memory", lambda c: c.accesses_of("load", "scratch")),
    _code("scratch_stores", "scratch stores", "Stores to scratch memory", lambda c: c.accesses_of("store", "scratch")),
    *_accesses("loads", "loads", "Vector memory loads: global, buffer and flat", "load"),
    _code("load_width", "bytes/load", "Bytes that a lane gets from a vector memory load, on average",
          Counts.load_width),
    _code("mfma", "MFMA", "Matrix instructions", lambda c: c.mfmas),
    _cost("cycles", "cycles", "clocks of the busiest unit", lambda cost: cost.cycles),
    _least_cost("least_cycles", "least cycles", "the same without what a branch may skip", lambda cost: cost.cycles),
    _cost("mfma_utilization", "MFMA use", "share of these that the matrix cores work, from 0 to 1",
          lambda cost: cost.mfma_utilization),
    _cost("mfma_cycles", "MFMA cycles", "clocks of the matrix core of a SIMD, for a wave", lambda cost: cost.cu.mfma),
    _kernel("lds_bytes", "LDS bytes", "Local memory of a workgroup", lambda f: f.metadata.lds_bytes),
    _kernel("waves", "waves/SIMD", "Waves that a SIMD holds, by registers, LDS and workgroup size",
            lambda f: f.occupancy.waves_per_simd if f.occupancy else 0),
    _kernel("vgprs", "VGPRs", "Vector registers of a wave, accumulation registers included",
            lambda f: f.metadata.vgprs),
    *_accesses("lds_reads", "LDS reads", "Reads of LDS", "load", "lds"),
    *_accesses("lds_writes", "LDS writes", "Writes to LDS", "store", "lds"),
    _cost("lds_cycles", "LDS cycles", "clocks of the LDS of a CU, for a wave on each SIMD", lambda cost: cost.cu.lds),
    _code("lane_swaps", "lane swaps", "Moves between lanes through the LDS unit", lambda c: c.lane_swaps),
    _code("valu", "VALU", "Vector ALU instructions, without the MFMAs", lambda c: c.kinds[Kind.VALU]),
    _cost("valu_cycles", "VALU cycles", "clocks of the vector ALU of a SIMD, for a wave", lambda cost: cost.cu.valu),
    _code("trans", "transcendental", "Of the VALU: exponentials, logarithms, reciprocals, roots, sines, cosines",
          lambda c: c.transcendental),
    _cost("trans_cycles", "transc. cycles", "of the VALU's clocks, those of transcendental instructions",
          lambda cost: cost.cu.transcendental),
    _code("packed", "packed", "Of the VALU: instructions that do two operations a lane", lambda c: c.packed),
    _cost("memory_cycles", "memory cycles", "clocks of the L1 of a CU, for a wave on each SIMD",
          lambda cost: cost.cu.memory),
    *_accesses("stores", "stores", "Vector memory stores: global, buffer and flat", "store"),
    _code("atomics", "atomics", "Atomic operations, on memory and LDS", Counts.atomics),
    _code("barriers", "barriers", "Workgroup barriers", lambda c: c.kinds[Kind.BARRIER]),
    _kernel("workgroup", "workgroup", "Work items of a workgroup", lambda f: f.metadata.work_items),
    _kernel("loops", "loops", "Loops in the code", lambda f: len(f.loops)),
    _kernel("agprs", "AGPRs", "Of the vector registers, accumulation registers", lambda f: f.metadata.agprs),
    _kernel("sgprs", "SGPRs", "Scalar registers of a wave", lambda f: f.metadata.sgprs),
    _code("salu", "SALU", "Scalar ALU instructions", lambda c: c.kinds[Kind.SALU]),
    _code("scalar_loads", "scalar loads", "Loads to scalar registers", lambda c: c.accesses_of("load", "scalar")),
    _code("waits", "waits", "Waits: s_waitcnt, s_nop, s_sleep", lambda c: c.kinds[Kind.WAIT]),
    _code("branches", "branches", "Branches and ends of the program", lambda c: c.kinds[Kind.BRANCH]),
    _code("instructions", "instructions", "All instructions", lambda c: c.total),
    _kernel("code_bytes", "code bytes", "Size of the code, without padding", lambda f: f.code_bytes),
)  # fmt: skip

METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _METRICS}
LOOP_METRICS: Mapping[str, Metric] = {name: metric for name, metric in METRICS.items() if metric.scope != "kernel"}
# Every name that a condition may use.
METRIC_NAMES = (*METRICS, *(LOOP_PREFIX + name for name in LOOP_METRICS))


def metrics_of(figures: KernelFigures) -> dict[str, float]:
    """Each metric of a kernel by name; those of the loop with the prefix `loop.`.

    The loop's are 0 when there is none. Occupancy and costs are left out for a GPU that is not known.
    """
    values = _read(METRICS, figures, figures)
    if figures.occupancy is None:
        del values["waves"]
    loop = _read(LOOP_METRICS, figures, figures.hottest) if figures.hottest else dict.fromkeys(LOOP_METRICS, 0)
    return values | {LOOP_PREFIX + name: value for name, value in loop.items()}


def _read(metrics: Mapping[str, Metric], figures: KernelFigures, part: KernelFigures | LoopFigures) -> dict[str, float]:
    # A metric of the cost model is the only one that reads the costs.
    return {
        name: metric.read(figures, part.counts, part.cost, part.least_cost)  # type: ignore[arg-type]
        for name, metric in metrics.items()
        if metric.scope != "cost" or part.cost is not None
    }

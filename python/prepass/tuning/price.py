# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a dispatch costs in the cost model: the clocks of the compute unit that has the most to do.

All figures are static; nothing is run. The cost model says how long each unit is busy with the hottest loop and with
the code around it. That many workgroups of that many waves are dealt to the compute units; of the fullest one, each
SIMD works through its share of the waves, and LDS and L1 serve all of them. Units overlap within the loop, and within
the code around it, and not across.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from prepass.amdgpu.cost import Cycles, LoopCost
from prepass.amdgpu.figures import KernelFigures
from prepass.amdgpu.machine import Machine
from prepass.errors import PrepassError
from prepass.ir.targets.tuning_table import ATTENTION

# Raise it when what is priced changes, so that what was stored before is priced anew.
PRICING = 3
# The cost model lets units overlap. In attention each step of a wave waits for the one before, so that takes another
# wave; the loops of contractions load ahead and their steps are independent, so that one wave keeps units busy.
_FEWEST_WAVES = {ATTENTION: 2}


@dataclass(frozen=True)
class Price:
    """What a dispatch costs.

    Attributes:
      cycles: Clocks of the fullest compute unit, when all units overlap.
      serial_cycles: The same when none do.
      loop_cycles: Of a CU with a wave on each SIMD, an iteration of the hottest loop; 0 without a loop.
      mfma, valu, lds, memory: Of these, what each unit is busy.
      iterations: Of the hottest loop, of a wave.
      workgroups: Of the dispatch.
      waves: Of a workgroup.
      waves_per_simd: That fit by registers and LDS.
      vgprs, lds_bytes: What that depends on.
      spills: Registers spilled.
      scratch_bytes: Scratch memory of a work item.
    """

    cycles: float
    serial_cycles: float
    loop_cycles: float
    mfma: float
    valu: float
    lds: float
    memory: float
    iterations: float
    workgroups: int
    waves: int
    waves_per_simd: float
    vgprs: int
    lds_bytes: int
    spills: int
    scratch_bytes: int

    @property
    def spilling(self) -> bool:
        """Whether registers, or arrays, are in memory."""
        return self.spills > 0 or self.scratch_bytes > 0

    def rank(self, kind: str) -> tuple[float, ...]:
        """Lower is better: no spills, then enough waves for units to overlap, then cycles."""
        few = self.waves_per_simd < _FEWEST_WAVES.get(kind, 1)
        return (self.spilling, few, self.cycles, self.serial_cycles, -self.waves_per_simd)


def price_kernel(figures: KernelFigures, workgroups: int, steps: float) -> Price:
    """The price of a dispatch of one kernel.

    Args:
      workgroups: Of the dispatch.
      steps: How many iterations of the hottest loop do all of a wave's work, those included that the compiler
        has taken out of the loop to load ahead.

    Raises PrepassError for a GPU that the cost model does not know.
    """
    machine, whole, occupancy = figures.machine, figures.cost, figures.occupancy
    if machine is None or whole is None or occupancy is None:
        raise PrepassError(f"the cost model does not know {figures.architecture}")
    loop = figures.hottest.cost if figures.hottest else None
    waves = max(1, -(-figures.metadata.work_items // machine.wave_size))
    inside = loop.wave if loop else Cycles()
    outside = _minus(whole.wave, inside)
    iterations = _iterations(inside, outside, steps) if loop else 0.0
    busiest, serial = (
        _on_fullest(outside, machine, workgroups, waves, combine)
        + iterations * _on_fullest(inside, machine, workgroups, waves, combine)
        for combine in (max, sum)
    )
    return Price(
        cycles=round(busiest, 1),
        serial_cycles=round(serial, 1),
        **_iteration(loop),
        iterations=iterations,
        workgroups=workgroups,
        waves=waves,
        waves_per_simd=occupancy.waves_per_simd,
        vgprs=figures.metadata.vgprs,
        lds_bytes=figures.metadata.lds_bytes,
        spills=figures.spills,
        scratch_bytes=figures.metadata.private_bytes,
    )


def _iterations(inside: Cycles, outside: Cycles, steps: float) -> float:
    """How often the loop runs: a pipelined loop does the last of its steps behind it, which its MFMAs tell."""
    ahead = outside.mfma / inside.mfma if inside.mfma else 0.0
    return max(0.0, steps - ahead)


def _iteration(loop: LoopCost | None) -> dict[str, float]:
    if loop is None:
        return {"loop_cycles": 0.0, "mfma": 0.0, "valu": 0.0, "lds": 0.0, "memory": 0.0}
    units = loop.cu
    return {
        "loop_cycles": loop.cycles, "mfma": units.mfma, "valu": units.valu, "lds": units.lds, "memory": units.memory
    }  # fmt: skip


def _on_fullest(wave: Cycles, machine: Machine, workgroups: int, waves: int, combine: object) -> float:
    """Clocks of the fullest compute unit for code that each wave runs once."""
    resident = math.ceil(workgroups / machine.compute_units) * waves
    on_simd = math.ceil(resident / machine.simds)
    units = (wave.mfma * on_simd, wave.valu * on_simd, wave.lds * resident, wave.memory * resident)
    return combine(units)  # type: ignore[operator]


def _minus(whole: Cycles, part: Cycles) -> Cycles:
    return Cycles(*(getattr(whole, unit.name) - getattr(part, unit.name) for unit in fields(Cycles)))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many waves of a kernel a SIMD can hold, and what limits them.

Source: "AMDGPU Usage", section "Kernel Descriptor" (granules); LLVM, `AMDGPUBaseInfo.cpp`
(`getNumWavesPerEUWithNumVGPRs`, `getMaxWorkGroupsPerCU`).
"""

from __future__ import annotations

from dataclasses import dataclass

from prepass.amdgpu.machine import Machine
from prepass.amdgpu.metadata import Metadata


@dataclass(frozen=True)
class Occupancy:
    """Waves that are resident.

    Attributes:
      waves_per_simd: On average over the SIMDs of a CU: a workgroup of one wave fills one of four.
      workgroups: On a CU.
      limit: What allows no more: `VGPRs`, `SGPRs`, `LDS`, `wave slots` or `workgroups`.
    """

    waves_per_simd: float
    workgroups: int
    limit: str


def occupancy(machine: Machine, metadata: Metadata) -> Occupancy:
    """The occupancy of a kernel; where its workgroups may have any size, with the largest."""
    waves = max(1, -(-metadata.work_items // machine.wave_size))
    allocated = max(1, -(-metadata.vgprs // machine.vgpr_granule)) * machine.vgpr_granule
    by_sgprs = next((limit for most, limit in machine.sgpr_waves if metadata.sgprs <= most), machine.sgpr_waves[-1][1])
    limits = {
        "wave slots": _workgroups(machine, machine.wave_slots, waves),
        "VGPRs": _workgroups(machine, min(machine.wave_slots, machine.vgprs // allocated), waves),
        "SGPRs": _workgroups(machine, by_sgprs, waves),
        "LDS": machine.lds_bytes // _allocated_lds(machine, metadata.lds_bytes) if metadata.lds_bytes else None,
        "workgroups": machine.barrier_workgroups if waves > 1 else None,
    }
    known = {name: count for name, count in limits.items() if count is not None}
    limit = min(known, key=lambda name: known[name])
    workgroups = known[limit]
    return Occupancy(workgroups * waves / machine.simds, workgroups, limit)


def _workgroups(machine: Machine, waves_per_simd: int, waves: int) -> int:
    """How many workgroups fit into a CU; the waves of one go to its SIMDs in turn."""
    return waves_per_simd * machine.simds // waves


def _allocated_lds(machine: Machine, used: int) -> int:
    return -(-used // machine.lds_granule) * machine.lds_granule

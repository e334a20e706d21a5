# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A static cost model: how long each unit of a GPU is busy with one iteration of a loop.

    cost = loop_cost(kernel)
    cost.bound, cost.cycles, cost.mfma_utilization

It is made of documented rates, see `machine.py`, and was not calibrated on hardware. It knows
nothing of latency, bank conflicts, cache misses or uncoalesced addresses. Each instruction
counts once and with all lanes, those too that a branch skips most of the time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields

from prepass.amdgpu.assembly import Instruction, Kernel
from prepass.amdgpu.control_flow import ControlFlow
from prepass.amdgpu.machine import GFX942, Machine
from prepass.amdgpu.opcodes import Access, Kind, Opcode, opcode


@dataclass(frozen=True)
class Cycles:
    """Clocks that each unit is busy.

    Attributes:
      mfma: The matrix core of a SIMD.
      valu: The vector ALU of a SIMD, transcendental instructions included.
      transcendental: The share of these.
      lds: The LDS of a CU.
      memory: The vector memory path of a CU: addresses, L1.
    """

    mfma: float = 0
    valu: float = 0
    transcendental: float = 0
    lds: float = 0
    memory: float = 0

    @property
    def units(self) -> dict[str, float]:
        """The units that work side by side."""
        return {"MFMA": self.mfma, "VALU": self.valu, "LDS": self.lds, "memory": self.memory}

    def __add__(self, other: Cycles) -> Cycles:
        """Both, one after the other."""
        return Cycles(*(getattr(self, part.name) + getattr(other, part.name) for part in fields(self)))

    def __mul__(self, factor: float) -> Cycles:
        """All units, so many times."""
        return Cycles(*(getattr(self, part.name) * factor for part in fields(self)))


@dataclass(frozen=True)
class LoopCost:
    """What one iteration costs.

    Attributes:
      machine: The GPU whose rates these are.
      wave: The cycles of one wave.
      flops: Operations of the wave's MFMAs, by type.
      vector_flops: Floating-point operations of its VALU instructions.
      load_bytes: What the wave loads from memory, at most: all lanes, no scalar loads.
      store_bytes: What it stores there, atomics included.
    """

    machine: Machine
    wave: Cycles
    flops: Mapping[str, int] = field(hash=False)
    vector_flops: int
    load_bytes: int
    store_bytes: int

    @property
    def cu(self) -> Cycles:
        """The cycles of a CU with one wave on each SIMD, which have one LDS and one L1 together."""
        simds, wave = self.machine.simds, self.wave
        return Cycles(wave.mfma, wave.valu, wave.transcendental, wave.lds * simds, wave.memory * simds)

    @property
    def bound(self) -> str:
        """The unit that is busiest: `MFMA`, `VALU`, `LDS`, `memory`; `nothing` for an empty loop."""
        units = self.cu.units
        busiest = max(units, key=lambda name: units[name])
        return busiest if units[busiest] else "nothing"

    @property
    def cycles(self) -> float:
        """What an iteration takes when all units overlap: the busiest unit's clocks."""
        return max(self.cu.units.values())

    @property
    def serial_cycles(self) -> float:
        """What it takes when no unit overlaps with another."""
        return sum(self.cu.units.values())

    @property
    def mfma_utilization(self) -> float:
        """How busy the matrix cores are when all units overlap, from 0 to 1."""
        return self.wave.mfma / self.cycles if self.cycles else 0.0

    @property
    def serial_mfma_utilization(self) -> float:
        """How busy the matrix cores are when no unit overlaps with another."""
        return self.wave.mfma / self.serial_cycles if self.serial_cycles else 0.0

    @property
    def element(self) -> str | None:
        """The type that most MFMA operations are in, None without any."""
        return max(self.flops, key=lambda element: self.flops[element], default=None)


@dataclass(frozen=True)
class Roofline:
    """Where a loop stands under the peaks of a GPU.

    Attributes:
      element: The type of the matrix peak; None for the vector peak in f32.
      intensity: Operations per byte that is loaded or stored; infinite without any.
      peak_flops: Of the GPU, per second.
      issue_flops: What the cost model allows, per second, when all CUs are full.
      memory_flops: What each memory allows, per second, if it served every byte.
    """

    element: str | None
    intensity: float
    peak_flops: float
    issue_flops: float
    memory_flops: Mapping[str, float] = field(hash=False)


def loop_cost(kernel: Kernel, machine: Machine = GFX942) -> LoopCost | None:
    """The cost of an iteration of the kernel's hottest loop, None when it has no loop."""
    flow = ControlFlow(kernel)
    return cost_of(flow.instructions(flow.hottest), machine) if flow.hottest else None


def cost_of(instructions: Iterable[Instruction], machine: Machine = GFX942) -> LoopCost:
    """The cost of instructions that run once each."""
    cycles: Counter[str] = Counter()
    flops: Counter[str] = Counter()
    vector_flops = load_bytes = store_bytes = 0
    for instruction in instructions:
        what = opcode(instruction)
        if what.kind is Kind.MFMA:
            mfma = machine.mfma(instruction.name)
            cycles["mfma"] += mfma.cycles
            flops[mfma.element] += mfma.flops
        elif what.kind is Kind.VALU:
            spent = machine.transcendental_cycles if what.transcendental else machine.valu_cycles
            cycles["valu"] += spent
            cycles["transcendental"] += spent if what.transcendental else 0
            vector_flops += what.flops * machine.wave_size
        elif what.kind is Kind.LDS:
            cycles["lds"] += _lds_cycles(what, machine)
        elif what.access and what.access.space != "scalar":
            cycles["memory"] += _memory_cycles(what.access, machine)
            moved = what.access.width * machine.wave_size
            load_bytes += moved if what.access.direction == "load" else 0
            store_bytes += moved if what.access.direction != "load" else 0
    return LoopCost(machine, Cycles(**cycles), dict(flops), vector_flops, load_bytes, store_bytes)


def roofline(cost: LoopCost) -> Roofline:
    """Where a loop stands, by its matrix operations, or by its vector operations when it has none."""
    machine = cost.machine
    operations = sum(cost.flops.values()) or cost.vector_flops
    moved = cost.load_bytes + cost.store_bytes
    intensity = operations / moved if moved else float("inf")
    # In `cycles`, each SIMD of each CU runs one iteration.
    waves = machine.simds * machine.compute_units
    return Roofline(
        element=cost.element,
        intensity=intensity,
        peak_flops=machine.peak_flops(cost.element),
        issue_flops=operations * waves * machine.clock_hz / cost.cycles if cost.cycles else 0.0,
        memory_flops={name: bandwidth * intensity for name, bandwidth in machine.bandwidths.items()},
    )


def _lds_cycles(what: Opcode, machine: Machine) -> float:
    # A bank is four bytes wide: narrower accesses take as long.
    width = max(what.access.width, 4) if what.access else 4
    return machine.wave_size * width / machine.lds_clock_bytes


def _memory_cycles(access: Access, machine: Machine) -> float:
    addresses = machine.wave_size / machine.address_lanes
    return max(addresses, machine.wave_size * access.width / machine.l1_clock_bytes)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Static figures of kernels: what stands in the code, what it needs, what it would cost.

They are counts, not measurements: nothing is run.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from prepass.amdgpu.assembly import Instruction, Kernel
from prepass.amdgpu.code_size import code_bytes
from prepass.amdgpu.control_flow import ControlFlow, Loop
from prepass.amdgpu.cost import LoopCost, cost_of
from prepass.amdgpu.machine import Machine, machine_for
from prepass.amdgpu.metadata import Metadata
from prepass.amdgpu.occupancy import Occupancy, occupancy
from prepass.amdgpu.opcodes import Access, Kind, opcode
from prepass.errors import PrepassError

_VECTOR_SPACES = ("global", "buffer", "flat")


@dataclass(frozen=True)
class Counts:
    """How often what stands in a piece of code.

    Attributes:
      names: Each instruction, without the suffix of its encoding.
      kinds: Each kind of work.
      accesses: Each kind of memory instruction, LDS and scratch included.
      transcendental: Of the VALU instructions.
      packed: Of the VALU instructions, those that do two operations a lane.
      lane_swaps: Of the LDS instructions, those that touch no memory.
    """

    names: Counter[str] = field(hash=False)
    kinds: Counter[Kind] = field(hash=False)
    accesses: Counter[Access] = field(hash=False)
    transcendental: int
    packed: int
    lane_swaps: int

    @property
    def total(self) -> int:
        """All instructions."""
        return self.names.total()

    @property
    def mfmas(self) -> int:
        """Matrix instructions."""
        return self.kinds[Kind.MFMA]

    @property
    def mfma_kinds(self) -> dict[str, int]:
        """Matrix instructions by kind, `f32_32x32x8_f16`, the most first."""
        kinds = Counter(
            {name.partition("_")[2].partition("_")[2]: n for name, n in self.names.items() if "mfma" in name}
        )
        return dict(kinds.most_common())

    def accesses_of(self, direction: str, *spaces: str, width: int | None = None) -> int:
        """Memory instructions of a direction, in some spaces (all vector memory by default), of a width or any."""
        wanted = spaces or _VECTOR_SPACES
        return sum(
            count
            for access, count in self.accesses.items()
            if access.direction == direction and access.space in wanted and width in (None, access.width)
        )

    def load_width(self) -> float:
        """Bytes that a lane gets from a vector memory load, on average; 0 without loads."""
        loads = {a: n for a, n in self.accesses.items() if a.direction == "load" and a.space in _VECTOR_SPACES}
        total = sum(loads.values())
        return round(sum(access.width * count for access, count in loads.items()) / total, 2) if total else 0.0

    def atomics(self) -> int:
        """Atomic operations, on memory and LDS."""
        return sum(count for access, count in self.accesses.items() if access.direction == "atomic")


@dataclass(frozen=True)
class LoopFigures:
    """A loop.

    Attributes:
      cost: What an iteration costs when no branch skips anything; None where the GPU is not known.
      least_cost: What it costs when branches skip what they can.
    """

    loop: Loop
    instructions: tuple[Instruction, ...]
    counts: Counts
    cost: LoopCost | None
    least_cost: LoopCost | None


@dataclass(frozen=True)
class KernelFigures:
    """A kernel.

    Attributes:
      counts: Of the whole code.
      hottest: Of the loops, that of `ControlFlow.hottest`; None without a loop.
      occupancy: None where the GPU is not known.
    """

    kernel: Kernel
    architecture: str
    metadata: Metadata
    counts: Counts
    loops: tuple[LoopFigures, ...]
    hottest: LoopFigures | None
    occupancy: Occupancy | None

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.kernel.name

    @property
    def spills(self) -> int:
        """Registers spilled, vector and scalar."""
        return self.metadata.vgpr_spills + self.metadata.sgpr_spills

    @property
    def code_bytes(self) -> int:
        """Size of the code, without padding."""
        return code_bytes(self.kernel.instructions)

    @property
    def machine(self) -> Machine | None:
        """The GPU that occupancy and costs are for."""
        return machine_for(self.architecture)

    @functools.cached_property
    def cost(self) -> LoopCost | None:
        """What the whole code costs when each instruction runs once."""
        return cost_of(self.kernel.instructions, self.machine) if self.machine else None

    @functools.cached_property
    def least_cost(self) -> LoopCost | None:
        """What it costs when branches skip what they can."""
        return cost_of(ControlFlow(self.kernel).always, self.machine) if self.machine else None


def count(instructions: Iterable[Instruction]) -> Counts:
    """Count instructions."""
    names, kinds, accesses = Counter[str](), Counter[Kind](), Counter[Access]()
    transcendental = packed = lane_swaps = 0
    for instruction in instructions:
        what = opcode(instruction)
        names[instruction.name] += 1
        kinds[what.kind] += 1
        if what.access:
            accesses[what.access] += 1
        transcendental += what.transcendental
        packed += what.packed
        lane_swaps += what.lane_swap
    return Counts(names, kinds, accesses, transcendental, packed, lane_swaps)


def kernel_figures(kernel: Kernel, architecture: str = "gfx942") -> KernelFigures:
    """The figures of a kernel. Raises PrepassError when it has no metadata."""
    metadata = kernel.metadata
    if metadata is None:
        raise PrepassError(f"kernel '{kernel.name}' has no metadata, which tells its registers and memory")
    machine = machine_for(architecture)
    flow = ControlFlow(kernel)
    loops = tuple(_loop_figures(flow, loop, machine) for loop in flow.loops)
    return KernelFigures(
        kernel=kernel,
        architecture=architecture,
        metadata=metadata,
        counts=count(kernel.instructions),
        loops=loops,
        hottest=next((figures for figures in loops if figures.loop is flow.hottest), None),
        occupancy=occupancy(machine, metadata) if machine else None,
    )


def _loop_figures(flow: ControlFlow, loop: Loop, machine: Machine | None) -> LoopFigures:
    instructions = flow.instructions(loop)
    least = flow.instructions(loop, always=True)
    return LoopFigures(
        loop=loop,
        instructions=instructions,
        counts=count(instructions),
        cost=cost_of(instructions, machine) if machine else None,
        least_cost=cost_of(least, machine) if machine else None,
    )

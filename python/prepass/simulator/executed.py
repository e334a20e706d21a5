# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the first workgroup of a dispatch executes, and what that costs by the static cost model.

Loops count as often as they run, branches as they are taken; so the price knows what no loop alone shows: prologues,
epilogues, and work that is done for rows or columns that do not exist. It knows nothing of time: see
`prepass.amdgpu.cost`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prepass.amdgpu.assembly import read_kernels
from prepass.amdgpu.cost import Cycles, cost_of
from prepass.amdgpu.machine import GFX942, Machine
from prepass.compiler.runtime import find_function
from prepass.errors import PrepassError
from prepass.simulator.host.interpret import Host
from prepass.simulator.host.read import Export
from prepass.simulator.launch import launch
from prepass.simulator.memory import Memory
from prepass.simulator.program import Program, compile_kernel
from prepass.simulator.run import DeviceProgram
from prepass.simulator.waves import Waves


@dataclass(frozen=True)
class ExecutedWorkgroup:
    """The first workgroup of a dispatch.

    Attributes:
      wave_cycles: The cycles of all its waves, added up.
      waves: Of the workgroup.
      workgroups: Of the dispatch.
    """

    machine: Machine
    wave_cycles: Cycles
    waves: int
    workgroups: int

    @property
    def cycles(self) -> Cycles:
        """The cycles of each unit of a CU: its SIMDs share the waves, and have one LDS and one L1 together."""
        wave, simds = self.wave_cycles, self.machine.simds
        return Cycles(wave.mfma / simds, wave.valu / simds, wave.transcendental / simds, wave.lds, wave.memory)

    @property
    def busiest_cu_cycles(self) -> float:
        """The cycles of the CU with the most workgroups, when all are like the first and one unit is always busy."""
        return math.ceil(self.workgroups / self.machine.compute_units) * max(self.cycles.units.values())


def execute_first_workgroup(
    program: DeviceProgram, inputs: Sequence[np.ndarray], kernel: str, *, function: str | None = None
) -> ExecutedWorkgroup:
    """Run the first workgroup of one dispatch; other dispatches are left out, so values are not those of the program.

    Args:
      program: Of `compile_program`.
      inputs: The arguments of the function.
      kernel: The name of the dispatch, which must be dispatched once.
      function: The exported function's name; may be left out when there is one.

    Raises SimulationError and PrepassError as `simulate`.
    """
    memory = Memory()
    run = _FirstWorkgroup(program, memory, kernel)
    Host(program.host, memory, run.dispatch, {}).call(find_function(program.host.public, function), inputs)
    if run.found is None:
        raise PrepassError(f"simulator: no dispatch of '{kernel}'")
    return run.found


class _FirstWorkgroup:
    def __init__(self, program: DeviceProgram, memory: Memory, kernel: str) -> None:
        self._program = program
        self._memory = memory
        self._kernel = kernel
        self.found: ExecutedWorkgroup | None = None

    def dispatch(
        self, executable: str, export: Export, grid: Sequence[int], bindings: Sequence[int], constants: Sequence[int]
    ) -> None:
        """Run one workgroup of the kernel, once."""
        if export.name != self._kernel or self.found is not None:
            return
        kernels = [kernel for text in self._program.assembly for kernel in read_kernels(text)]
        program = compile_kernel(next(kernel for kernel in kernels if kernel.name == self._kernel))
        counted, counts = _with_counts(program)
        launch(counted, self._memory, (1, 1, 1), bindings, constants, export.workgroup_size)
        total = Cycles()
        for block, count in zip(program.blocks, counts, strict=True):
            total += cost_of(block.instructions, GFX942).wave * count
        self.found = ExecutedWorkgroup(GFX942, total, counts[0], math.prod(grid))


def _with_counts(program: Program) -> tuple[Program, list[int]]:
    """The program, and how many waves have run each of its blocks, counted as it runs."""
    counts = [0] * len(program.blocks)

    def counter(number: int) -> object:
        def count(waves: Waves) -> None:
            counts[number] += waves.count

        return count

    blocks = [
        dataclasses.replace(block, steps=(*block.steps, counter(number))) for number, block in enumerate(program.blocks)
    ]
    return dataclasses.replace(program, blocks=tuple(blocks)), counts

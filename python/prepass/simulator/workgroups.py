# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running the waves of workgroups: together as long as they go the same way, with barriers between them.

Source: "AMD Instinct MI300 Instruction Set Architecture Reference Guide" (CDNA3), section 4.3 (S_BARRIER), and
"AMDGPU Usage", section "Initial Kernel Execution State", https://llvm.org/docs/AMDGPUUsage.html
"""

from __future__ import annotations

import numpy as np

from prepass.simulator.errors import Fault, SimulationError
from prepass.simulator.lds import Lds
from prepass.simulator.program import BRANCHES, Block, Program
from prepass.simulator.waves import Waves, merge

# Blocks that one group of waves may run; a kernel that needs more does not end.
_MOST_BLOCKS = 5_000_000


class Workgroups:
    """Some workgroups of a kernel, from their first instruction to their last."""

    def __init__(self, program: Program, waves: Waves, lds: Lds) -> None:
        self._program = program
        self._lds = lds
        self._ready = [waves]
        self._waiting: list[Waves] = []
        count = int(waves.workgroup.max()) + 1
        self._alive = np.bincount(waves.workgroup, minlength=count)
        self._arrived = np.zeros(count, np.int64)

    def run(self) -> None:
        """Run all waves to their end. Raises SimulationError."""
        for _ in range(_MOST_BLOCKS):
            if not self._ready and not self._release():
                return
            self._run_next()
        raise SimulationError(self._program.kernel.name, None, f"did not end after {_MOST_BLOCKS} blocks")

    def _run_next(self) -> None:
        # The group that is furthest behind runs, so that groups that parted meet again.
        at = min(group.at for group in self._ready)
        groups = [group for group in self._ready if group.at == at]
        same = [group for group in groups if group.denormals == groups[0].denormals]
        self._ready = [group for group in self._ready if not any(group is other for other in same)]
        waves = same[0] if len(same) == 1 else merge(same)
        block = self._program.blocks[at]
        self._run_block(block, waves)
        if block.end == "s_endpgm":
            self._alive -= np.bincount(waves.workgroup, minlength=len(self._alive))
        elif block.end == "s_barrier":
            waves.at = at + 1
            self._arrived += np.bincount(waves.workgroup, minlength=len(self._arrived))
            self._waiting.append(waves)
        elif block.end in BRANCHES:
            self._branch(block, waves, at)
        else:
            waves.at = at + 1
            self._ready.append(waves)

    def _run_block(self, block: Block, waves: Waves) -> None:
        done = 0
        try:
            for step in block.steps:
                step(waves)
                done += 1
        except Fault as fault:
            raise SimulationError(self._program.kernel.name, block.instructions[done], str(fault)) from None

    def _branch(self, block: Block, waves: Waves, at: int) -> None:
        condition = BRANCHES[block.end]
        taken = np.ones(waves.count, bool) if condition is None else condition(waves)
        if taken.all():
            waves.at = block.target
            self._ready.append(waves)
        elif not taken.any():
            waves.at = at + 1
            self._ready.append(waves)
        else:
            self._ready += [waves.select(taken, block.target), waves.select(~taken, at + 1)]

    def _release(self) -> bool:
        """Let go of the workgroups whose waves are all at a barrier; false when none is left."""
        if not self._waiting:
            return False
        complete = (self._arrived == self._alive) & (self._alive > 0)
        self._lds.barrier(np.flatnonzero(complete))
        self._arrived[complete] = 0
        held = []
        for waves in self._waiting:
            free = complete[waves.workgroup]
            if free.all():
                self._ready.append(waves)
                continue
            if free.any():
                self._ready.append(waves.select(free, waves.at))
                waves = waves.select(~free, waves.at)
            held.append(waves)
        self._waiting = held
        if not self._ready:
            raise SimulationError(self._program.kernel.name, None, "waves wait at a barrier that others never reach")
        return True

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What goes wrong in a simulated kernel."""

from __future__ import annotations

from prepass.amdgpu.assembly import Instruction
from prepass.errors import PrepassError


class Fault(Exception):
    """What one instruction does wrong, without saying where: `SimulationError` adds that."""


class SimulationError(PrepassError):
    """A kernel that is wrong, or that uses what the simulator does not know.

    Attributes:
      kernel: The kernel's name.
      instruction: The instruction at fault; None when it is no single one.
      reason: What is wrong with it.
    """

    def __init__(self, kernel: str, instruction: Instruction | None, reason: str) -> None:
        at = f", line {instruction.line}: '{instruction}'" if instruction else ""
        super().__init__(f"kernel '{kernel}'{at}: {reason}")
        self.kernel = kernel
        self.instruction = instruction
        self.reason = reason

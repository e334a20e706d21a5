# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Executing gfx942 kernels on numpy arrays.

`simulate` compiles a module and runs all of it. `compile_program` and `run_program` are its two halves: between them,
kernels can be read, edited or replaced. `run_kernel` runs one kernel from its assembly.
"""

from prepass.simulator.errors import SimulationError
from prepass.simulator.run import DeviceProgram, compile_program, run_kernel, run_program, simulate

__all__ = ["DeviceProgram", "SimulationError", "compile_program", "run_kernel", "run_program", "simulate"]

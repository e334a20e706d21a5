# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many terms of its sums a loop of matrix instructions adds up in an iteration."""

from __future__ import annotations

from prepass.amdgpu.figures import KernelFigures
from prepass.amdgpu.opcodes import Kind, opcode


def terms_of_iteration(figures: KernelFigures) -> int:
    """The terms that an iteration of the hottest loop adds to each sum; 0 without MFMAs.

    An accumulator is read by the first MFMA of its chain, which no other one of the iteration has written before. So
    many chains share the MFMAs, each of which adds as many terms as its shape says.
    """
    machine, loop = figures.machine, figures.hottest
    if machine is None or loop is None:
        return 0
    written: set[str] = set()
    chains = terms = 0
    for instruction in loop.instructions:
        if opcode(instruction).kind is Kind.MFMA:
            result, *_, accumulator = instruction.operands
            chains += accumulator not in written
            written.add(result)
            terms += machine.mfma(instruction.name).k
    return terms // chains if chains else 0

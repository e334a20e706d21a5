# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vector registers whose number is computed: between S_SET_GPR_IDX_ON and S_SET_GPR_IDX_OFF.

Source: "AMD Instinct MI300 Instruction Set Architecture Reference Guide" (CDNA3), section 3.8.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prepass.amdgpu.assembly import Instruction
from prepass.simulator.errors import Fault
from prepass.simulator.modifiers import Step
from prepass.simulator.operands import Limits, expect_register, parse_source, scalar_word
from prepass.simulator.waves import M0, Waves

_MODES = {"gpr_idx(SRC0)": 1, "gpr_idx(DST)": 8}


def _start(instruction: Instruction, limits: Limits) -> Step:
    if len(instruction.operands) != 2 or instruction.operands[1] not in _MODES:
        raise Fault("only the first source or the destination can be indexed")
    get = scalar_word(parse_source(instruction.operands[0], limits).place)
    mode = np.uint32(_MODES[instruction.operands[1]] << 12)
    keep = np.uint32(0xFFFF0F00)

    def step(waves: Waves) -> None:
        waves.scalar[M0] = (waves.scalar[M0] & keep) | mode | (get(waves) & np.uint32(0xFF))

    return step


def _stop(instruction: Instruction, limits: Limits) -> Step:
    return lambda waves: None


INDEXING: dict[str, Callable[[Instruction, Limits], Step]] = {
    "s_set_gpr_idx_on": _start,
    "s_set_gpr_idx_off": _stop,
}


def translate_indexed(instruction: Instruction, mode: str, limits: Limits) -> Step:
    """A move with its source or its destination indexed by the low byte of M0. Raises Fault for other instructions."""
    if instruction.mnemonic != "v_mov_b32_e32" or instruction.modifiers:
        raise Fault("only v_mov_b32 is supported while registers are indexed")
    destination = expect_register(instruction.operands[0], limits, "v", 1)
    source = expect_register(instruction.operands[1], limits, "v", 1)
    reads = mode == "gpr_idx(SRC0)"
    first = source.index if reads else destination.index

    def step(waves: Waves) -> None:
        rows = first + (waves.scalar[M0] & np.uint32(0xFF)).astype(np.intp)
        if rows.max() >= limits.vector:
            raise Fault(f"indexed register v{int(rows.max())} is out of range")
        columns = np.arange(waves.count)
        if reads:
            waves.write(destination.index, waves.vector[rows, columns])
        else:
            old = waves.vector[rows, columns]
            waves.vector[rows, columns] = np.where(waves.mask, waves.vector[source.index], old)

    return step

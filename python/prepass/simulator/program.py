# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel as blocks of Python functions: each instruction is translated once.

Source: "AMD Instinct MI300 Instruction Set Architecture Reference Guide" (CDNA3), chapter 4, "Program Flow Control".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from prepass.amdgpu.assembly import Instruction, Kernel
from prepass.simulator.errors import Fault, SimulationError
from prepass.simulator.indexing import translate_indexed
from prepass.simulator.instructions import FLOW, translate
from prepass.simulator.local_memory import grain
from prepass.simulator.modifiers import Step
from prepass.simulator.operands import Limits
from prepass.simulator.undefined import check_undefined
from prepass.simulator.waits import check_waits
from prepass.simulator.waves import EXEC, VCC, Waves

_Condition = Callable[[Waves], np.ndarray]


def _pair_zero(index: int) -> _Condition:
    return lambda waves: (waves.scalar[index] | waves.scalar[index + 1]) == 0


def _pair_set(index: int) -> _Condition:
    return lambda waves: (waves.scalar[index] | waves.scalar[index + 1]) != 0


BRANCHES: dict[str, _Condition | None] = {
    "s_branch": None,
    "s_cbranch_scc0": lambda waves: ~waves.scc,
    "s_cbranch_scc1": lambda waves: waves.scc,
    "s_cbranch_vccz": _pair_zero(VCC),
    "s_cbranch_vccnz": _pair_set(VCC),
    "s_cbranch_execz": _pair_zero(EXEC),
    "s_cbranch_execnz": _pair_set(EXEC),
}


@dataclass(frozen=True)
class Block:
    """Instructions that run one after the other.

    Attributes:
      steps: One for each instruction of `instructions`.
      end: `s_barrier`, `s_endpgm`, a branch, or empty where the next block follows.
      target: The block that a branch goes to; otherwise the next one runs.
    """

    instructions: tuple[Instruction, ...]
    steps: tuple[Step, ...]
    end: str
    target: int


@dataclass(frozen=True)
class Program:
    """A translated kernel.

    Attributes:
      registers: Vector and accumulation registers together.
      grain: The bytes of the narrowest access to LDS.
    """

    kernel: Kernel
    blocks: tuple[Block, ...]
    registers: int
    grain: int


def compile_kernel(kernel: Kernel, symbols: Mapping[str, int] | None = None) -> Program:
    """Translate a kernel. `symbols` are the addresses of the constants beside the code.

    Raises SimulationError for whatever the simulator does not know.
    """
    limits = register_limits(kernel, symbols or {})
    starts = _block_starts(kernel)
    number_of = {start: number for number, start in enumerate(starts)}
    ranges = list(zip(starts, [*starts[1:], len(kernel.instructions)], strict=True))
    blocks = [_translate_block(kernel, kernel.instructions[slice(*span)], limits, number_of) for span in ranges]
    if not blocks or blocks[-1].end not in ("s_endpgm", "s_branch"):
        raise SimulationError(kernel.name, None, "the code runs beyond its end")
    successors = [_successors(block, number) for number, block in enumerate(blocks)]
    check_waits(kernel, ranges, successors)
    check_undefined(kernel, ranges, successors)
    names = [instruction.name for instruction in kernel.instructions]
    return Program(kernel, tuple(blocks), limits.vector + limits.accumulation, grain(names))


def _successors(block: Block, number: int) -> list[int]:
    follows = [] if block.end in ("s_endpgm", "s_branch") else [number + 1]
    return follows + ([block.target] if block.end in BRANCHES else [])


def register_limits(kernel: Kernel, symbols: Mapping[str, int]) -> Limits:
    """The registers that the kernel asks for."""
    total = kernel.directives.get("next_free_vgpr", 256)
    vector = kernel.directives.get("accum_offset", total)
    # Compilers that want fewer waves on a unit ask for registers that they do not use.
    used = [word for i in kernel.instructions for text in i.operands for word in _accumulators(text)]
    accumulation = min(max(total - vector, 0), max(used, default=-1) + 1)
    return Limits(vector, accumulation, min(kernel.directives.get("next_free_sgpr", 102), 102), symbols)


def _accumulators(text: str) -> list[int]:
    bare = text[1:].strip("[]").split(":")
    return [int(number) for number in bare if number.isdigit()] if text.startswith("a") else []


def _block_starts(kernel: Kernel) -> list[int]:
    starts = {0, *kernel.labels.values()}
    starts |= {at + 1 for at, instruction in enumerate(kernel.instructions) if instruction.name in FLOW}
    return sorted(start for start in starts if start < len(kernel.instructions))


def _translate_block(
    kernel: Kernel, instructions: tuple[Instruction, ...], limits: Limits, number_of: Mapping[int, int]
) -> Block:
    end, target = "", -1
    body = instructions
    if instructions[-1].name in FLOW:
        body, last = instructions[:-1], instructions[-1]
        end = last.name
        if end in BRANCHES:
            if len(last.operands) != 1 or last.operands[0] not in kernel.labels:
                raise SimulationError(kernel.name, last, "no such label")
            target = number_of[kernel.labels[last.operands[0]]]
    steps = []
    indexed = ""
    for instruction in body:
        try:
            if instruction.name == "s_set_gpr_idx_on":
                indexed = instruction.operands[1]
            elif instruction.name == "s_set_gpr_idx_off":
                indexed = ""
            elif indexed:
                steps.append(translate_indexed(instruction, indexed, limits))
                continue
            steps.append(translate(instruction, limits))
        except Fault as fault:
            raise SimulationError(kernel.name, instruction, str(fault)) from None
    if indexed:
        raise SimulationError(kernel.name, body[-1], "register indexing goes on beyond the block")
    return Block(body, tuple(steps), end, target)

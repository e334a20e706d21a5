# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All instructions that the simulator knows, by name."""

from __future__ import annotations

from collections.abc import Callable

from prepass.amdgpu.assembly import Instruction
from prepass.simulator.carry import CARRY
from prepass.simulator.compare import COMPARISONS
from prepass.simulator.cross_lane import CROSS_LANE
from prepass.simulator.dot import DOT
from prepass.simulator.errors import Fault
from prepass.simulator.global_memory import GLOBAL_MEMORY
from prepass.simulator.indexing import INDEXING
from prepass.simulator.integers import INTEGERS, SATURATING
from prepass.simulator.local_memory import LOCAL_MEMORY
from prepass.simulator.mfma import MFMA, translate_mfma
from prepass.simulator.modifiers import Step
from prepass.simulator.operands import Limits
from prepass.simulator.packed import PACKED, translate_packed
from prepass.simulator.reals import REALS
from prepass.simulator.scalar import SCALAR, translate_scalar
from prepass.simulator.scalar_operations import OPERATIONS
from prepass.simulator.scratch import SCRATCH
from prepass.simulator.vector import translate_vector

# Those with a function of their own.
_TRANSLATORS: dict[str, Callable[[Instruction, Limits], Step]] = {
    **SCALAR,
    **CARRY,
    **COMPARISONS,
    **CROSS_LANE,
    **DOT,
    **GLOBAL_MEMORY,
    **LOCAL_MEMORY,
    **SCRATCH,
    **INDEXING,
}
# Branches, barriers and ends are the work of `program`.
FLOW = (
    "s_branch",
    "s_cbranch_scc0",
    "s_cbranch_scc1",
    "s_cbranch_vccz",
    "s_cbranch_vccnz",
    "s_cbranch_execz",
    "s_cbranch_execnz",
    "s_barrier",
    "s_endpgm",
)
KNOWN = frozenset([*_TRANSLATORS, *OPERATIONS, *INTEGERS, *REALS, *PACKED, *MFMA, *FLOW])


def translate(instruction: Instruction, limits: Limits) -> Step:
    """One instruction that is no branch, barrier or end. Raises Fault."""
    name = instruction.name
    if name in SATURATING and "clamp" in instruction.modifiers:
        rest = {key: value for key, value in instruction.modifiers.items() if key != "clamp"}
        bare = Instruction(instruction.mnemonic, instruction.operands, rest, instruction.line)
        return translate_vector(bare, SATURATING[name], limits)
    if name in _TRANSLATORS:
        return _TRANSLATORS[name](instruction, limits)
    if name in OPERATIONS:
        return translate_scalar(instruction, OPERATIONS[name], limits)
    if name in INTEGERS or name in REALS:
        return translate_vector(instruction, INTEGERS.get(name) or REALS[name], limits)
    if name in PACKED:
        return translate_packed(instruction, PACKED[name], limits)
    if name in MFMA:
        return translate_mfma(instruction, MFMA[name], limits)
    raise Fault("unknown instruction")

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether code uses registers that no instruction before has written, on any path.

Compilers leave registers undefined on purpose where it does not matter what they hold: on some paths, and one of a
pair. An operand none of whose registers has a value on any path is a mistake.
"""

from __future__ import annotations

from collections.abc import Sequence

from prepass.amdgpu.assembly import Instruction, Kernel
from prepass.simulator.errors import SimulationError
from prepass.simulator.waits import registers

_NO_RESULT = (
    "buffer_store", "global_store", "scratch_store", "ds_write", "buffer_inv", "buffer_wbl2", "s_cmp", "s_bitcmp",
    "s_waitcnt", "s_nop", "s_barrier", "s_branch", "s_cbranch", "s_setreg", "s_endpgm", "s_setprio", "s_sleep",
    "s_set_gpr_idx", "s_icache", "s_dcache",
)  # fmt: skip
_TWO_RESULTS = ("v_div_scale", "v_mad_u64_u32", "v_mad_i64_i32", "v_swap")
_READ_RESULT = ("v_fmac", "v_dot2c", "v_swap", "s_addk", "s_mulk", "s_cmov", "s_bitset")


def check_undefined(kernel: Kernel, blocks: Sequence[tuple[int, int]], successors: Sequence[Sequence[int]]) -> None:
    """Raise SimulationError where an instruction uses registers that have no value on any path to it.

    `blocks` are ranges of the kernel's instructions, `successors` the blocks that may follow each.
    """
    if any("gpr_idx(DST)" in instruction.operands for instruction in kernel.instructions):
        # Which registers are written is known at run time only.
        return
    entries: dict[int, set[str]] = {0: _at_start(kernel)}
    todo = [0]
    while todo:
        block = todo.pop()
        written = set(entries[block])
        for instruction in kernel.instructions[slice(*blocks[block])]:
            written |= _results(instruction)
        for successor in successors[block]:
            # What is written before is never nothing, so that each block is reached.
            before = entries.setdefault(successor, set())
            if not before >= written:
                before |= written
                todo.append(successor)
    for block, written in entries.items():
        written, indexed = set(written), False
        for instruction in kernel.instructions[slice(*blocks[block])]:
            if instruction.name.startswith("s_set_gpr_idx"):
                indexed = instruction.name == "s_set_gpr_idx_on"
            for operand, source in [] if indexed else _sources(instruction):
                if source.isdisjoint(written):
                    reason = f"uses {operand}, which no instruction before it writes"
                    raise SimulationError(kernel.name, instruction, reason)
            written |= _results(instruction)


def _at_start(kernel: Kernel) -> set[str]:
    directives = kernel.directives
    count = directives.get("user_sgpr_count", 2)
    count += sum(directives.get(f"system_sgpr_workgroup_id_{axis}", int(axis == "x")) for axis in "xyz")
    return {"v0", *(f"s{number}" for number in range(count))}


def _results(instruction: Instruction) -> frozenset[str]:
    name = instruction.name
    if name.startswith(_NO_RESULT) or not instruction.operands:
        return frozenset()
    if name.startswith(_TWO_RESULTS) or "_co_u32" in name:
        return registers(instruction.operands[0]) | registers(instruction.operands[1])
    return registers(instruction.operands[0])


def _sources(instruction: Instruction) -> list[tuple[str, frozenset[str]]]:
    """The operands that are read and are registers, with those."""
    name, operands = instruction.name, instruction.operands
    first = 0
    if not name.startswith((*_NO_RESULT, *_READ_RESULT)):
        first = 2 if name.startswith(_TWO_RESULTS) or "_co_u32" in name else 1
    return [(operand, found) for operand in operands[first:] if (found := registers(operand))]

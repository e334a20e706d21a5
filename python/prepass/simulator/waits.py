# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether code waits for what it has loaded before it uses it.

Loads return in order within a counter, except for scalar loads; S_WAITCNT waits until no more than so many accesses
of a counter are outstanding. The check follows all paths of the code, those too that an execution does not take.
Source: "AMD Instinct MI300 Instruction Set Architecture Reference Guide" (CDNA3), section 4.4, "Manually Inserted
Wait States" and S_WAITCNT.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from prepass.amdgpu.assembly import Instruction, Kernel
from prepass.simulator.errors import SimulationError

_REGISTER = re.compile(r"(?<![\w.$@])([vas])(?:\[(\d+)(?::(\d+))?\]|(\d+)(?![\w.$@]))")
_WAIT = re.compile(r"(vmcnt|lgkmcnt|expcnt)\((\d+)\)")
# More than either counter can say.
_OLD = 64
# The counters: vector memory, and local memory together with scalar loads.
_VECTOR, _LOCAL = "vmcnt", "lgkmcnt"
# Stands for the bytes in LDS that a wave has written.
_WRITTEN = "LDS"


@dataclass
class _State:
    """What may be outstanding.

    Attributes:
      pending: For a register, the counter, the number of accesses issued when its load was, and the load.
      issued: Accesses issued so far, by counter.
      scalar: Whether scalar loads are outstanding: then only a wait for none says anything of that counter.
    """

    pending: dict[str, tuple[str, int, Instruction]] = field(default_factory=dict)
    issued: dict[str, int] = field(default_factory=lambda: {_VECTOR: 0, _LOCAL: 0})
    scalar: bool = False

    def relative(self) -> _State:
        """The same with no accesses issued so far, so that states of different paths compare."""
        pending = {
            register: (counter, max(index - self.issued[counter], -_OLD), load)
            for register, (counter, index, load) in self.pending.items()
        }
        return _State(pending, scalar=self.scalar)

    def join(self, other: _State) -> bool:
        """Add what may be outstanding on another path, both relative; whether that is more."""
        changed = other.scalar and not self.scalar
        self.scalar |= other.scalar
        for register, entry in other.pending.items():
            own = self.pending.get(register)
            # The younger one asks for the stricter wait.
            if own is None or own[1] < entry[1]:
                self.pending[register] = entry
                changed = True
        return changed

    def wait(self, counter: str, most: int) -> None:
        """Only `most` accesses of a counter are outstanding from here on."""
        if counter == _LOCAL and most and self.scalar:
            return
        if counter == _LOCAL and not most:
            self.scalar = False
        limit = self.issued[counter] - most
        done = [r for r, (of, index, _) in self.pending.items() if of == counter and index < limit]
        for register in done:
            del self.pending[register]


def check_waits(kernel: Kernel, blocks: Sequence[tuple[int, int]], successors: Sequence[Sequence[int]]) -> None:
    """Raise SimulationError where an instruction uses what may not have been loaded yet.

    `blocks` are ranges of the kernel's instructions, `successors` the blocks that may follow each.
    """
    entries = {0: _State()}
    todo = [0]
    while todo:
        block = todo.pop()
        state = _State(dict(entries[block].pending), scalar=entries[block].scalar)
        for instruction in kernel.instructions[slice(*blocks[block])]:
            _run(kernel, instruction, state)
        out = state.relative()
        for successor in successors[block]:
            if successor not in entries:
                entries[successor] = _State(dict(out.pending), scalar=out.scalar)
            elif not entries[successor].join(out):
                continue
            todo.append(successor)


def _run(kernel: Kernel, instruction: Instruction, state: _State) -> None:
    name = instruction.name
    if name == "s_waitcnt":
        for operand in instruction.operands:
            match = _WAIT.fullmatch(operand)
            if not match:
                raise SimulationError(kernel.name, instruction, f"unknown operand '{operand}'")
            if match[1] != "expcnt":
                state.wait(match[1], int(match[2]))
        return
    counter = _counter(name)
    loaded = registers(instruction.operands[0]) if counter and _loads(name) else frozenset()
    if state.pending:
        _check(kernel, instruction, state, counter, loaded)
    if counter:
        if name.startswith("s_"):
            state.scalar = True
        for register in loaded:
            state.pending[register] = (counter, state.issued[counter], instruction)
        if name.startswith("ds_write"):
            state.pending[_WRITTEN] = (counter, state.issued[counter], instruction)
        state.issued[counter] += 1


def _check(kernel: Kernel, instruction: Instruction, state: _State, counter: str, loaded: frozenset[str]) -> None:
    used: set[str] = {_WRITTEN} if instruction.name == "s_barrier" else set()
    for operand in instruction.operands[1:] if loaded else instruction.operands:
        used |= registers(operand)
    for register in loaded - used:
        # Loads of one counter return in order, so the later one wins.
        if register in state.pending and (state.pending[register][0] != counter or state.scalar):
            used.add(register)
    for register in used & state.pending.keys():
        of, _, load = state.pending[register]
        what = "passes a barrier while its writes to LDS" if register == _WRITTEN else f"uses {register}, which"
        verb = "may be outstanding" if register == _WRITTEN else "may not be loaded yet"
        raise SimulationError(kernel.name, instruction, f"{what} {verb}: no {of} waits for line {load.line}")


def _counter(name: str) -> str:
    """The counter that an instruction counts in; empty for none."""
    if name.startswith(("buffer_load", "buffer_store", "global_", "scratch_", "buffer_atomic")):
        return _VECTOR
    if name.startswith(("ds_", "s_load", "s_buffer_load")):
        return _LOCAL
    return ""


def _loads(name: str) -> bool:
    """Whether the first operand is a register that the access fills."""
    return "_load" in name or name.startswith(("ds_read", "ds_bpermute", "ds_permute", "ds_swizzle"))


@functools.lru_cache(maxsize=4096)
def registers(operand: str) -> frozenset[str]:
    """The registers that an operand names, one by one."""
    found = []
    for kind, first, last, single in _REGISTER.findall(operand):
        start = int(first or single)
        found += [f"{kind}{number}" for number in range(start, int(last or start) + 1)]
    return frozenset(found)

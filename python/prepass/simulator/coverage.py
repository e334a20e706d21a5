# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which of the instructions in assembly the simulator executes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from prepass.amdgpu.assembly import Kernel, read_kernels
from prepass.amdgpu.data import read_data
from prepass.errors import PrepassError
from prepass.simulator.carry import CARRY
from prepass.simulator.compare import COMPARISONS
from prepass.simulator.cross_lane import CROSS_LANE
from prepass.simulator.dot import DOT
from prepass.simulator.errors import Fault
from prepass.simulator.global_memory import GLOBAL_MEMORY
from prepass.simulator.indexing import INDEXING, translate_indexed
from prepass.simulator.instructions import FLOW, KNOWN, translate
from prepass.simulator.integers import INTEGERS
from prepass.simulator.local_memory import LOCAL_MEMORY
from prepass.simulator.mfma import MFMA
from prepass.simulator.packed import PACKED
from prepass.simulator.program import register_limits
from prepass.simulator.reals import REALS
from prepass.simulator.scalar import SCALAR
from prepass.simulator.scalar_operations import OPERATIONS
from prepass.simulator.scratch import SCRATCH

# Any address will do for a constant that is never read.
_SOME_ADDRESS = 1 << 40
GROUPS: Mapping[str, Iterable[str]] = {
    "scalar": [*OPERATIONS, *SCALAR],
    "branches, barriers": FLOW,
    "vector, integers": INTEGERS,
    "vector, floating point": REALS,
    "vector, masks": CARRY,
    "vector, comparisons": COMPARISONS,
    "packed": PACKED,
    "dot products": DOT,
    "matrix": MFMA,
    "between lanes": CROSS_LANE,
    "indexed registers": INDEXING,
    "global memory": GLOBAL_MEMORY,
    "local memory": LOCAL_MEMORY,
    "scratch": SCRATCH,
}
_OTHERS = "not known"


@dataclass
class Coverage:
    """What stands in the code of some kernels.

    Attributes:
      files: How many were read.
      kernels: How many there were, and how many of them differ.
      families: How often each instruction stands in kernels that differ, by its name without the encoding.
      written: Instructions that differ as they are written, with operands and modifiers.
      unknown: For what the simulator rejects, the reason and the first place, by the instruction as written.
    """

    files: int = 0
    kernels: int = 0
    different_kernels: int = 0
    families: dict[str, int] = field(default_factory=dict)
    written: int = 0
    unknown: dict[str, str] = field(default_factory=dict)

    @property
    def executed(self) -> set[str]:
        """The families that the simulator knows; each of them is executed in a test."""
        return set(self.families) & KNOWN

    def groups(self) -> dict[str, tuple[int, int]]:
        """For each group of families, how many are executed and how many were seen."""
        group_of = {name: group for group, names in GROUPS.items() for name in names}
        found: dict[str, tuple[int, int]] = {}
        for name in self.families:
            group = group_of.get(name, _OTHERS)
            executed, seen = found.get(group, (0, 0))
            found[group] = executed + (name in KNOWN), seen + 1
        return {group: found[group] for group in (*GROUPS, _OTHERS) if group in found}


def read_coverage(paths: Iterable[Path], progress: Callable[[Path], None] = lambda _: None) -> Coverage:
    """What stands in `.rocmasm` files; directories are searched for them. Raises PrepassError when there are none."""
    coverage = Coverage()
    kernels: set[int] = set()
    written: set[str] = set()
    for path in _files(paths):
        progress(path)
        text = path.read_text(errors="replace")
        coverage.files += 1
        symbols = dict.fromkeys(read_data(text), _SOME_ADDRESS)
        for kernel in read_kernels(text):
            coverage.kernels += 1
            key = hash(tuple(str(instruction) for instruction in kernel.instructions))
            if key not in kernels:
                kernels.add(key)
                _add(coverage, kernel, symbols, written, path)
    coverage.different_kernels = len(kernels)
    coverage.written = len(written)
    return coverage


def _files(paths: Iterable[Path]) -> list[Path]:
    files = [file for path in paths for file in (sorted(path.rglob("*.rocmasm")) if path.is_dir() else [path])]
    if not files:
        raise PrepassError("no .rocmasm file to read; --iree-hal-dump-executable-intermediates-to=<dir> writes them")
    for file in files:
        if not file.is_file():
            raise PrepassError(f"cannot open input '{file}': No such file or directory")
    return files


def _add(coverage: Coverage, kernel: Kernel, symbols: Mapping[str, int], written: set[str], path: Path) -> None:
    limits = register_limits(kernel, symbols)
    indexed = ""
    for instruction in kernel.instructions:
        coverage.families[instruction.name] = coverage.families.get(instruction.name, 0) + 1
        if instruction.name.startswith("s_set_gpr_idx"):
            indexed = instruction.operands[1] if instruction.operands else ""
        text = str(instruction)
        if text in written:
            continue
        written.add(text)
        if instruction.name in FLOW:
            continue
        try:
            if indexed and instruction.name not in INDEXING:
                translate_indexed(instruction, indexed, limits)
            else:
                translate(instruction, limits)
        except Fault as fault:
            coverage.unknown[text] = f"{fault} ({path.name}:{instruction.line}, kernel '{kernel.name}')"

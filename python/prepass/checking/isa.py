# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Static figures of AMD GPU kernels, read from the assembly that the compiler writes.

They are counts of what stands in the code, not measurements: nothing is run.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prepass.compiler.api import compile
from prepass.ir.parse import ModuleSource
from prepass.pipeline.builder import Pipeline

_KERNEL = re.compile(r"^\s*\.amdhsa_kernel (\S+)", re.MULTILINE)
_LABEL = re.compile(r"^(\.LBB\S+):")
_BRANCH = re.compile(r"^\s+s_c?branch\S* (\.LBB\S+)")
_INSTRUCTION = re.compile(r"^\s+([a-z]\w+)")


@dataclass(frozen=True)
class KernelFigures:
    """What the assembly of one kernel says.

    Attributes:
      instructions: How often each instruction stands in the code.
      loop: The same for the loop with the most MFMAs, or the longest where there
        are none; empty without a loop.
      vgprs: Vector registers of a wave.
      vgpr_spills: Vector registers spilled to scratch memory.
      lds_bytes: Local memory of a workgroup.
    """

    name: str
    instructions: Counter[str]
    loop: Counter[str]
    vgprs: int
    vgpr_spills: int
    lds_bytes: int

    @property
    def mfmas(self) -> int:
        """Matrix instructions in the code."""
        return _mfmas(self.instructions)


def read_assembly(text: str) -> list[KernelFigures]:
    """The figures of each kernel in the text of a `.rocmasm` file."""
    return [_read_kernel(text, name.strip('"')) for name in _KERNEL.findall(text)]


def compile_to_assembly(
    source: ModuleSource, *, pipeline: str | Pipeline | None = None, flags: Sequence[str] = ()
) -> list[KernelFigures]:
    """Compile a module for an AMD GPU and read its kernels. Arguments as for `prepass.compile`."""
    with tempfile.TemporaryDirectory(prefix="prepass-isa-") as directory:
        dump = f"--iree-hal-dump-executable-intermediates-to={directory}"
        compile(source, pipeline=pipeline, flags=[*flags, dump])
        files = sorted(Path(directory).glob("*.rocmasm"))
        return [figures for file in files for figures in read_assembly(file.read_text())]


def _read_kernel(text: str, name: str) -> KernelFigures:
    # Names with a `$`, as torch's functions give, stand in quotes in some places.
    start = next(at for label in (name, f'"{name}"') if (at := text.find(f"\n{label}:")) >= 0)
    body = text[start : text.index("\t.section", start)].splitlines()
    metadata = text[text.index("amdhsa.kernels") :]
    entry = next(
        part for part in metadata.split("\n  - ") if re.search(rf"""\.name:\s+['"]?{re.escape(name)}['"]?\s""", part)
    )

    def number(key: str) -> int:
        found = re.search(rf"\.{key}:\s+(\d+)", entry)
        return int(found[1]) if found else 0

    return KernelFigures(
        name,
        _count(body),
        _hottest_loop(body),
        number("vgpr_count"),
        number("vgpr_spill_count"),
        number("group_segment_fixed_size"),
    )


def _hottest_loop(body: list[str]) -> Counter[str]:
    """Among the innermost loops, a backward branch to a label with no other inside."""
    labels: dict[str, int] = {}
    loops: list[tuple[int, int]] = []
    for number, line in enumerate(body):
        if label := _LABEL.match(line):
            labels[label[1]] = number
        elif (branch := _BRANCH.match(line)) and branch[1] in labels:
            loops.append((labels[branch[1]], number))
    innermost = [loop for loop in loops if not any(_inside(other, loop) for other in loops)]
    counts = [_count(body[first:last]) for first, last in innermost]
    return max(counts, key=lambda count: (_mfmas(count), count.total()), default=Counter())


def _inside(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    return inner != outer and outer[0] <= inner[0] and inner[1] <= outer[1]


def _count(lines: list[str]) -> Counter[str]:
    return Counter(match[1] for line in lines if (match := _INSTRUCTION.match(line)))


def _mfmas(instructions: Counter[str]) -> int:
    return sum(count for name, count in instructions.items() if name.startswith("v_mfma"))

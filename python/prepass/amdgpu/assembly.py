# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels read from assembly, the `.rocmasm` files of `--iree-hal-dump-executable-intermediates-to`.

Source: "AMDGPU Usage", sections "Assembler" and "Code Object Metadata", https://llvm.org/docs/AMDGPUUsage.html
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prepass.amdgpu.metadata import Metadata, read_metadata
from prepass.errors import PrepassError

_LABEL = re.compile(r'^("[^"]+"|[\w.$@]+):')
_DIRECTIVE = re.compile(r"^\.amdhsa_(\w+)\s+(\S+)$")
_ENCODINGS = ("e32", "e64", "dpp", "sdwa", "e64_dpp")
# Words that stand alone and are no operands.
_FLAGS = frozenset(
    [
        "offen",
        "idxen",
        "addr64",
        "lds",
        "gds",
        "glc",
        "slc",
        "dlc",
        "scc",
        "sc0",
        "sc1",
        "nt",
        "tfe",
        "clamp",
        "row_mirror",
        "row_half_mirror",
    ]
)
_BARE_OPERANDS = frozenset(["s_waitcnt"])


@dataclass(frozen=True)
class Instruction:
    """One instruction as it is written.

    Attributes:
      mnemonic: With the suffix of the encoding: `v_add_u32_e32`.
      operands: As written: `v[0:3]`, `-|v1|`, `0x7f`, `hwreg(HW_REG_MODE, 4, 2)`, `vmcnt(0)`.
      modifiers: What follows the operands: `offset:16` as `{"offset": "16"}`, `offen` as `{"offen": ""}`.
      line: 1-based, in the file.
    """

    mnemonic: str
    operands: tuple[str, ...]
    modifiers: Mapping[str, str] = field(hash=False)
    line: int

    @functools.cached_property
    def name(self) -> str:
        """The mnemonic without the suffix of the encoding: `v_add_u32`."""
        return self.mnemonic.removesuffix(f"_{self.encoding}") if self.encoding else self.mnemonic

    @functools.cached_property
    def encoding(self) -> str:
        """`e32`, `e64`, `dpp`, `sdwa`, `e64_dpp`; empty when the mnemonic has no such suffix."""
        found = [e for e in _ENCODINGS if self.mnemonic.startswith("v_") and self.mnemonic.endswith(f"_{e}")]
        return max(found, key=len, default="")

    def __str__(self) -> str:
        """As it would be written on one line."""
        words = [f"{name}:{value}" if value else name for name, value in self.modifiers.items()]
        operands = (" " if self.name in _BARE_OPERANDS else ", ").join(self.operands)
        return " ".join(filter(None, [self.mnemonic, operands, *words]))


@dataclass(frozen=True)
class Kernel:
    """A kernel.

    Attributes:
      labels: For each label, the index in `instructions` of what follows it.
      directives: `.amdhsa_*` without that prefix; switches and counts are numbers.
      metadata: None when the file has none for the kernel.
    """

    name: str
    instructions: tuple[Instruction, ...]
    labels: Mapping[str, int] = field(hash=False)
    directives: Mapping[str, int] = field(hash=False)
    metadata: Metadata | None


def read_kernels(text: str) -> list[Kernel]:
    """The kernels in the text of a `.rocmasm` file, in order.

    Raises PrepassError for a kernel whose code is not in the text.
    """
    directives = _read_directives(text)
    bodies = _read_bodies(text, frozenset(directives))
    metadata = read_metadata(text)
    if missing := [name for name in directives if name not in bodies]:
        raise PrepassError(f"assembly: no code of kernel '{missing[0]}'")
    return [Kernel(name, *bodies[name], values, metadata.get(name)) for name, values in directives.items()]


def read_instruction(text: str, line: int) -> Instruction:
    """One instruction from its text, without a comment."""
    mnemonic, _, rest = text.strip().partition(" ")
    mnemonic, tab, more = mnemonic.partition("\t")
    operands: list[str] = []
    modifiers: dict[str, str] = {}
    for chunk in _split(more + " " + rest if tab else rest, ","):
        for position, word in enumerate(_split(chunk, " \t&")):
            if word in _FLAGS:
                modifiers[word] = ""
            elif match := re.match(r"([A-Za-z_]\w*):(.*)$", word, re.DOTALL):
                modifiers[match[1]] = match[2]
            elif position == 0 or mnemonic in _BARE_OPERANDS:
                operands.append(word)
            else:
                modifiers[word] = ""
    return Instruction(mnemonic, tuple(operands), modifiers, line)


def _read_directives(text: str) -> dict[str, dict[str, int]]:
    kernels: dict[str, dict[str, int]] = {}
    current: dict[str, int] | None = None
    for line in map(str.strip, text.splitlines()):
        if line.startswith(".amdhsa_kernel "):
            current = kernels.setdefault(_unquote(line.split(maxsplit=1)[1]), {})
        elif line == ".end_amdhsa_kernel":
            current = None
        elif current is not None and (match := _DIRECTIVE.match(line)):
            if re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)", match[2]):
                current[match[1]] = int(match[2], 0)
    return kernels


def _read_bodies(text: str, names: frozenset[str]) -> dict[str, tuple[tuple[Instruction, ...], dict[str, int]]]:
    bodies: dict[str, tuple[tuple[Instruction, ...], dict[str, int]]] = {}
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    current = None
    for number, line in enumerate(text.splitlines(), 1):
        stripped = _strip_comment(line).strip()
        if label := _LABEL.match(stripped):
            # Names with a `$`, as torch's functions give, stand in quotes in some places.
            name = _unquote(label[1])
            if name in names:
                current, instructions, labels = name, [], {}
            elif current and name.startswith(".Lfunc_end"):
                bodies[current], current = (tuple(instructions), labels), None
            elif current:
                labels[name] = len(instructions)
            stripped = stripped[label.end() :].strip()
        if current and stripped.startswith(".section"):
            bodies[current], current = (tuple(instructions), labels), None
        elif current and stripped and not stripped.startswith("."):
            instructions.append(read_instruction(stripped, number))
    return bodies


def _strip_comment(line: str) -> str:
    quoted = False
    for at, character in enumerate(line):
        quoted ^= character == '"'
        if not quoted and (character == ";" or line.startswith("//", at)):
            return line[:at]
    return line


def _split(text: str, separators: str) -> Iterator[str]:
    """The non-empty parts between separators that stand in no brackets and no quotes."""
    depth, quoted, start = 0, False, 0
    for at, character in enumerate(text):
        quoted ^= character == '"'
        depth += (character in "[(") - (character in "])")
        if character in separators and not depth and not quoted:
            if part := text[start:at].strip():
                yield part
            start = at + 1
    if part := text[start:].strip():
        yield part


def _unquote(name: str) -> str:
    return name[1:-1] if len(name) > 1 and name[0] == name[-1] == '"' else name

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels read from machine code: .hsaco files, and the code objects inside a .vmfb.

Source: "AMDGPU Usage", section "Code Object", https://llvm.org/docs/AMDGPUUsage.html
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Iterator, Sequence
from typing import Any

from prepass.amdgpu.assembly import Instruction, Kernel, read_instruction
from prepass.amdgpu.disassembler import disassemble
from prepass.amdgpu.kernel_descriptor import SIZE, read_descriptor
from prepass.amdgpu.metadata import metadata_from_entry
from prepass.errors import PrepassError

ELF_MAGIC = b"\x7fELF"
_MACHINE = 224
_METADATA_NOTE = 32
# EF_AMDGPU_MACH of e_flags.
_ARCHITECTURES = {0x3F: "gfx90a", 0x4C: "gfx942", 0x4F: "gfx950", 0x30: "gfx908", 0x2F: "gfx906"}
# Bytes of an ELF header: where its section headers are, how large and how many.
_HEADER = struct.Struct("<4sBBB9xHHIQQQIHHHHHH")


def find_code_objects(program: bytes) -> list[bytes]:
    """The code objects for AMD GPUs in a .vmfb: the flatbuffers inside keep them whole and uncompressed."""
    found = []
    start = program.find(ELF_MAGIC)
    while start >= 0:
        size = _elf_size(program, start)
        if size:
            found.append(program[start : start + size])
        start = program.find(ELF_MAGIC, start + (size or 1))
    return found


def read_code_object(data: bytes, name: str) -> tuple[str, list[Kernel]]:
    """The architecture and the kernels of a .hsaco file.

    Raises PrepassError when it is none, when the libraries that read it are not installed,
    or when no disassembler is.
    """
    elf = _open(data, name)
    machine = elf["e_flags"] & 0xFF
    if elf["e_machine"] != "EM_AMDGPU" or machine not in _ARCHITECTURES:
        raise PrepassError(f"'{name}': no code for a gfx9 GPU that prepass knows")
    section, table = (elf.get_section_by_name(part) for part in (".text", ".dynsym"))
    if section is None or table is None:
        raise PrepassError(f"'{name}': a code object without code or without symbols")
    symbols = {symbol.name: symbol for symbol in table.iter_symbols()}
    architecture = _ARCHITECTURES[machine]
    lines = disassemble(data, section.data(), section["sh_addr"], architecture)
    entries = _metadata(elf).get("amdhsa.kernels", [])
    return architecture, [_kernel(elf, entry, symbols, lines) for entry in entries]


def instructions_with_labels(lines: Sequence[tuple[int, str]]) -> tuple[tuple[Instruction, ...], dict[str, int]]:
    """Instructions from disassembled lines, with a label for each target of a branch.

    The padding that is jumped over, as in front of code that is aligned, is left out.
    """
    texts = dict(lines)
    targets = {address: target for address, text in lines if (target := _branch_target(address, text)) is not None}
    wanted = set(targets.values())
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    jumped_over = False
    for address, text in texts.items():
        if address in wanted:
            labels[_label(address)] = len(instructions)
            jumped_over = False
        if jumped_over and text.startswith("s_nop"):
            continue
        jumped_over = text.startswith(("s_branch", "s_endpgm", "s_setpc"))
        if address in targets:
            text = f"{text.split()[0]} {_label(targets[address])}"
        instructions.append(read_instruction(text, len(instructions) + 1))
    return tuple(instructions), labels


def _label(address: int) -> str:
    return f".L{address:x}"


def _branch_target(address: int, text: str) -> int | None:
    match = re.match(r"s_c?branch\w* (-?\d+)", text)
    if match is None:
        return None
    words = int(match[1]) & 0xFFFF
    return address + 4 + 4 * (words - 0x10000 if words & 0x8000 else words)


def _kernel(elf: Any, entry: dict[str, Any], symbols: dict[str, Any], lines: Sequence[tuple[int, str]]) -> Kernel:
    metadata = metadata_from_entry(entry)
    code, descriptor = symbols[metadata.name], symbols[entry[".symbol"]]
    start, end = code["st_value"], code["st_value"] + code["st_size"]
    instructions, labels = instructions_with_labels([line for line in lines if start <= line[0] < end])
    address = descriptor["st_value"]
    section = next(s for s in elf.iter_sections() if s["sh_addr"] <= address < s["sh_addr"] + s["sh_size"])
    at = address - section["sh_addr"]
    return Kernel(
        metadata.name, instructions, labels, read_descriptor(section.data()[at : at + SIZE]).directives, metadata
    )


def _open(data: bytes, name: str) -> Any:
    try:
        from elftools.common.exceptions import ELFError
        from elftools.elf.elffile import ELFFile
    except ImportError:
        raise PrepassError(f"'{name}': reading machine code needs more packages: pip install 'prepass[isa]'") from None
    try:
        return ELFFile(io.BytesIO(data))
    except ELFError as error:
        raise PrepassError(f"'{name}': not a code object: {error}") from None


def _metadata(elf: Any) -> dict[str, Any]:
    import msgpack

    for note in _notes(elf):
        if note["n_name"] == "AMDGPU" and note["n_type"] == _METADATA_NOTE:
            return msgpack.unpackb(note["n_descdata"])
    raise PrepassError("the code object has no kernel metadata")


def _notes(elf: Any) -> Iterator[Any]:
    for section in elf.iter_sections():
        if section["sh_type"] == "SHT_NOTE":
            yield from section.iter_notes()


def _elf_size(data: bytes, start: int) -> int:
    """The size of the 64-bit ELF file for an AMD GPU that starts there, 0 when none does."""
    if start + _HEADER.size > len(data):
        return 0
    _, bits, order, _, _, machine, _, _, _, offset, _, _, _, _, entry_size, entries, _ = _HEADER.unpack_from(
        data, start
    )
    end = offset + entry_size * entries
    # LLVM writes the section headers last.
    return end if (bits, order, machine, entry_size) == (2, 1, _MACHINE, 64) and start + end <= len(data) else 0

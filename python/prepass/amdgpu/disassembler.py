# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machine code as text, by an LLVM that is installed, or by the one in the wheel `llvm-nanobind`."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from prepass.amdgpu.llvm_tools import find_llvm_tool
from prepass.errors import PrepassError

# The first that knows gfx942.
LLVM_VERSION = 17
_LINE = re.compile(r"^\s+(?P<text>\S.*?)\s*// (?P<address>[0-9A-F]+): ")


def disassemble(code_object: bytes, text: bytes, address: int, architecture: str) -> list[tuple[int, str]]:
    """The instructions of a code object, each with its address.

    Args:
      code_object: The ELF file.
      text: Its section of code.
      address: Where the section is loaded.
      architecture: `gfx942`.

    Raises PrepassError when no disassembler is installed, or for code that it does not know.
    """
    if tool := find_llvm_tool("llvm-objdump", LLVM_VERSION):
        found = list(_by_objdump(tool, code_object))
    elif importlib.util.find_spec("llvm") is not None:
        found = list(_by_wheel(text, address, architecture))
    else:
        raise PrepassError(
            f"no disassembler for {architecture} is installed: install LLVM {LLVM_VERSION} or newer (ROCm's counts; "
            "set PREPASS_LLVM to its folder if it is not on PATH), or with Python 3.12 or newer run "
            "pip install 'prepass[isa]'"
        )
    for place, line in found:
        # Words of data behind the code follow its last instruction; a kernel's range ends before.
        if "<unknown>" in line:
            raise PrepassError(f"the disassembler does not know the instruction at {place:#x}")
    return found


def _by_objdump(tool: str, code_object: bytes) -> Iterator[tuple[int, str]]:
    with tempfile.TemporaryDirectory(prefix="prepass-isa-") as directory:
        path = Path(directory, "code.hsaco")
        path.write_bytes(code_object)
        result = subprocess.run([tool, "-d", str(path)], capture_output=True, text=True, check=False)
    if result.returncode:
        raise PrepassError(f"{tool}: {result.stderr.strip().splitlines()[-1]}")
    for line in result.stdout.splitlines():
        if match := _LINE.match(line):
            yield int(match["address"], 16), match["text"]


def _by_wheel(text: bytes, address: int, architecture: str) -> Iterator[tuple[int, str]]:
    import llvm  # Optional, and slow to load.

    disassembler = llvm.DisasmContext.create("amdgcn-amd-amdhsa", architecture, "")
    offset = 0
    while offset < len(text):
        size, line = disassembler.disasm_instruction(text, offset, address + offset)
        yield address + offset, line.strip() if size else "<unknown>"
        offset += size or 4

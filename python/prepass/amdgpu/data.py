# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants that lie beside the code of kernels in assembly."""

from __future__ import annotations

import re

from prepass.errors import PrepassError

_OBJECT = re.compile(r'^\s*\.type\s+("[^"]+"|\S+?)\s*,\s*@object', re.MULTILINE)
_LABEL = re.compile(r'^("[^"]+"|[\w.$@]+):')
_SIZES = {"byte": 1, "short": 2, "long": 4, "quad": 8}
_IGNORED = ("size", "type", "p2align", "globl", "weak", "section", "hidden", "protected", "local")


def read_data(text: str) -> dict[str, bytes]:
    """The contents of each data object in the text of a `.rocmasm` file.

    Raises PrepassError for a directive inside of one that is not known.
    """
    names = {name.strip('"') for name in _OBJECT.findall(text)}
    found: dict[str, bytearray] = {}
    current: bytearray | None = None
    for number, line in enumerate(text.splitlines() if names else (), 1):
        stripped = line.partition(";")[0].strip()
        if label := _LABEL.match(stripped):
            # Further labels of the same place, such as `.Lname$local`, are not referred to.
            name = label[1].strip('"')
            current = found.setdefault(name, bytearray()) if name in names else current
        elif current is not None and stripped:
            current = _read_directive(stripped, current, number)
    return {name: bytes(contents) for name, contents in found.items()}


def _read_directive(line: str, contents: bytearray, number: int) -> bytearray | None:
    """Add what a directive says; None when it ends the object."""
    name, _, values = line.lstrip(".").partition("\t")
    name, _, more = name.partition(" ")
    values = (more + " " + values).strip()
    if name in _SIZES:
        for value in values.split(","):
            size = _SIZES[name]
            contents += (int(value, 0) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        return contents
    if name == "zero":
        contents += bytes(int(values, 0))
        return contents
    if name == "size":
        return None
    if name in _IGNORED:
        return contents
    raise PrepassError(f"assembly, line {number}: data directive '.{name}' is not supported")

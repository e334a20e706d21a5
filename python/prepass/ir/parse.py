# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules from text, bytecode, files and other modules."""

from __future__ import annotations

import io
from pathlib import Path

from iree.compiler import ir
from iree.compiler.api import Session

from prepass.errors import PrepassError

ModuleSource = ir.Module | str | bytes | Path

# A .vmfb is a zip archive around a flatbuffer, or with some flags the flatbuffer alone.
_VMFB_MAGICS = (b"PK\x03\x04", b"IREE")


def is_vmfb(contents: bytes) -> bool:
    """Whether contents are those of a program that is compiled already."""
    return contents.startswith(_VMFB_MAGICS)


def check_is_mlir(contents: bytes, name: str) -> None:
    """Raise PrepassError for a compiled program, of which the parser would say that its bytes are no MLIR."""
    if is_vmfb(contents):
        raise PrepassError(f"'{name}' is compiled already; MLIR is needed")


def read_module(source: ModuleSource) -> tuple[bytes, str]:
    """The text or bytecode of a module, and what diagnostics should call it.

    A string with a line break is text, any other string is a path. A module is
    written as bytecode, which keeps its locations. Raises PrepassError when a
    file cannot be read.
    """
    if isinstance(source, ir.Module):
        buffer = io.BytesIO()
        source.operation.write_bytecode(buffer)
        return buffer.getvalue(), "<module>"
    if isinstance(source, bytes):
        return source, "<bytes>"
    if isinstance(source, str) and "\n" in source:
        return source.encode(), "<text>"
    try:
        return Path(source).read_bytes(), str(source)
    except OSError as error:
        raise PrepassError(f"cannot open '{source}': {error.strerror}") from None


def copy_module(source: ModuleSource) -> ir.Module:
    """A module of its own, in a context with every dialect. Raises PrepassError."""
    contents, name = read_module(source)
    check_is_mlir(contents, name)
    context = Session().context
    is_file = not isinstance(source, ir.Module | bytes) and name == str(source)
    with context:
        try:
            # A file is parsed as one, so that locations name it.
            return ir.Module.parseFile(name) if is_file else ir.Module.parse(contents)
        except ir.MLIRError as error:
            raise PrepassError(f"{name}: {error}") from None

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of an LLVM that is installed on this machine: on PATH, ROCm's, a distribution's."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

_PLACES = ("/opt/rocm*/llvm/bin", "/opt/rocm*/lib/llvm/bin", "/usr/lib/llvm-*/bin", "/usr/local/llvm*/bin")


@functools.cache
def find_llvm_tool(name: str, version: int) -> str | None:
    """The path of a program such as `llvm-objdump` with support for AMD GPUs, of a version or newer; else None.

    The environment variable PREPASS_LLVM names a folder to look into first.
    """
    for path in _candidates(name):
        text = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
        found = re.search(r"version (\d+)", text)
        if found and int(found[1]) >= version and "amdgcn" in text:
            return path
    return None


def _candidates(name: str) -> Iterator[str]:
    if folder := os.environ.get("PREPASS_LLVM"):
        yield from filter(None, [shutil.which(name, path=folder), shutil.which(name, path=f"{folder}/bin")])
    if path := shutil.which(name):
        yield path
    for pattern in _PLACES:
        # The newest first: 22 before 9.
        folders = sorted(Path("/").glob(pattern[1:]), key=_numbers, reverse=True)
        yield from (str(folder / name) for folder in folders if os.access(folder / name, os.X_OK))


def _numbers(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(path))]

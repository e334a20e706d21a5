# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Splitting an input at `// -----` lines, as the MLIR tools do."""

from __future__ import annotations

import re

_MARKER = re.compile(rb"^// -----[^\n]*$", re.MULTILINE)


def split_source(source: bytes) -> list[bytes]:
    """The parts of a source, each behind as many line breaks as stand before it.

    So the lines of a part keep the numbers that they have in the whole file.
    """
    parts: list[bytes] = []
    start = 0
    for marker in [*_MARKER.finditer(source), None]:
        end = marker.start() if marker else len(source)
        parts.append(b"\n" * source.count(b"\n", 0, start) + source[start:end])
        start = marker.end() if marker else end
    return parts

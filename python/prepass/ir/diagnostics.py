# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Diagnostics of the compiler, as text that outlives the IR it speaks of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from prepass.ir.locations import UNKNOWN

_LOCATED = re.compile(r"(?P<location>[^\n]+?:(?P<line>\d+):\d+|loc\([^\n]*?\)): (?P<message>.*)", re.DOTALL)


@dataclass(frozen=True)
class DiagnosticText:
    """One diagnostic or note.

    Attributes:
      severity: "error", "warning", "remark" or "note".
      location: `file:line:column`, or `<unknown>`.
      line: 1-based, or 0 where the location is unknown.
    """

    severity: str
    message: str
    location: str
    line: int

    def __str__(self) -> str:
        return f"{self.location}: {self.severity}: {self.message}"


def split_diagnostic(severity: str, text: str) -> Iterator[DiagnosticText]:
    """A diagnostic and its notes, from the one text that the compiler's C API makes of them.

    Each starts with its location; blank lines part them, but also stand inside
    of messages, so that a part without a location belongs to the one before.
    """
    parts: list[str] = []
    for part in text.split("\n\n"):
        if parts and not _LOCATED.match(part):
            parts[-1] += "\n\n" + part
        else:
            parts.append(part)
    for number, part in enumerate(parts):
        match = _LOCATED.match(part)
        line = int(match["line"] or 0) if match else 0
        location = match["location"] if match and line else UNKNOWN
        yield DiagnosticText("note" if number else severity, match["message"] if match else part, location, line)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Diagnostics of a context, as text that outlives it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.locations import describe_location, file_location


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


def diagnostic_texts(diagnostic: ir.Diagnostic) -> Iterator[DiagnosticText]:
    """A diagnostic and its notes."""
    found = file_location(diagnostic.location)
    yield DiagnosticText(
        diagnostic.severity.name.lower(),
        diagnostic.message,
        describe_location(diagnostic.location),
        found.start_line if found else 0,
    )
    for note in diagnostic.notes:
        yield from diagnostic_texts(note)

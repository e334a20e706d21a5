# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`--verify-diagnostics`: diagnostics and remarks against expectations in comments.

    // expected-error {{substring}}           on this line
    // expected-remark@+1 {{substring}}       on the next line; @-2, @above and @below likewise
    // expected-note-re {{a {{[0-9]+}} b}}    regular expressions between the inner braces
    // expected-warning@unknown {{substring}} without a location

As in mlir-opt, an expected diagnostic must appear, and an error or warning that
appears must be expected. Notes are checked when any is expected, remarks when
any is expected. Source: `SourceMgrDiagnosticVerifierHandler` of MLIR.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.diagnostics import DiagnosticText
from prepass.ir.locations import file_location
from prepass.pipeline.base import Remark

_EXPECTED = re.compile(
    r"expected-(?P<severity>error|warning|remark|note)(?P<regex>-re)?\s*"
    r"(?:@(?P<where>[+-]\d+|above|below|unknown))?\s*\{\{(?P<text>.*)\}\}"
)
_INNER = re.compile(r"\{\{(.*?)\}\}")
_ALWAYS_CHECKED = ("error", "warning")


@dataclass(frozen=True)
class Expectation:
    """One `expected-…` comment. `line` is where the diagnostic must be, 0 for unknown."""

    severity: str
    line: int
    text: str
    is_regex: bool
    comment_line: int

    def matches(self, diagnostic: DiagnosticText) -> bool:
        """Whether a diagnostic is the one that is expected."""
        if (diagnostic.severity, diagnostic.line) != (self.severity, self.line):
            return False
        if not self.is_regex:
            return self.text in diagnostic.message
        pieces = _INNER.split(self.text)
        pattern = "".join(piece if i % 2 else re.escape(piece) for i, piece in enumerate(pieces))
        return re.search(pattern, diagnostic.message) is not None


class Checker:
    """Compares what one part of the input produces with the expectations in its comments."""

    def __init__(self, source: str, name: str) -> None:
        self.name = name
        self.expectations = _parse_expectations(source)
        self.remarks: list[DiagnosticText] = []

    def on_remark(self, remark: Remark, location: ir.Location) -> None:
        """A remark handler for the pipeline."""
        found = file_location(location)
        line = found.start_line if found else 0
        self.remarks.append(DiagnosticText(remark.severity, remark.text, remark.location, line))

    def mismatches(self, diagnostics: Sequence[DiagnosticText]) -> list[str]:
        """Compare diagnostics and the remarks received so far with the expectations.

        Returns one line for each expectation that was not met and for each
        diagnostic that was not expected.
        """
        unmet = list(self.expectations)
        unexpected: list[DiagnosticText] = []
        for diagnostic in [*diagnostics, *self.remarks]:
            met = next((e for e in unmet if e.matches(diagnostic)), None)
            if met:
                unmet.remove(met)
            elif diagnostic.severity in self._checked_severities():
                unexpected.append(diagnostic)
        return [
            *(f"{d.location}: error: unexpected {d.severity}: {d.message}" for d in unexpected),
            *(f'{self.name}:{e.comment_line}: error: expected {e.severity} "{e.text}" was not produced' for e in unmet),
        ]

    def _checked_severities(self) -> set[str]:
        return {*_ALWAYS_CHECKED, *(e.severity for e in self.expectations)}


def _parse_expectations(source: str) -> list[Expectation]:
    lines = source.splitlines()
    expectations = []
    for number, line in enumerate(lines, start=1):
        for match in _EXPECTED.finditer(line):
            where = _line_of(match["where"], number, lines)
            expectations.append(
                Expectation(match["severity"], where, match["text"], match["regex"] is not None, number)
            )
    return expectations


def _line_of(where: str | None, number: int, lines: list[str]) -> int:
    """The line that an expectation on line `number` speaks of."""
    if where is None:
        return number
    if where == "unknown":
        return 0
    if where in ("above", "below"):
        step = -1 if where == "above" else 1
        number += step
        # Comments that expect something themselves are skipped, so that several can be stacked.
        while 0 < number <= len(lines) and _EXPECTED.search(lines[number - 1]):
            number += step
        return number
    return number + int(where)

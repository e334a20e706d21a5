# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors a user can cause. Programs print them as one line; nothing else is caught."""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Collection, Sequence
from pathlib import Path


class PrepassError(Exception):
    """A mistake in what the user gave: one line that says what and where."""


class PipelineError(PrepassError):
    """A pass pipeline that cannot be parsed or assembled.

    `column` is 1-based and counts characters of `text`.
    """

    def __init__(self, message: str, text: str, column: int) -> None:
        super().__init__(f"pass pipeline, column {column}: {message}")
        self.message = message
        self.text = text
        self.column = column


class PassFailure(PrepassError):
    """A Python pass raised; `__cause__` is what it raised."""


class CompileError(PrepassError):
    """The compiler rejected the program.

    The text holds the first line of each diagnostic, with its location; what
    follows that line can be the whole IR. `diagnostics` has them in full, a
    `prepass.ir.diagnostics.DiagnosticText` each.
    """

    def __init__(self, message: str, diagnostics: Sequence[object] = ()) -> None:
        super().__init__("\n".join([*(str(d).partition("\n")[0] for d in diagnostics), message]))
        self.diagnostics = tuple(diagnostics)


def describe_exception(error: BaseException, file: str) -> str:
    """One line of what code of a user's raised: `ValueError: no (pass.py:12)`, with the line where it left `file`."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    where = f" ({Path(file).name}:{lines[-1]})" if lines else ""
    return f"{type(error).__name__}: {error}".partition("\n")[0] + where


def did_you_mean(name: str, names: Collection[str]) -> str:
    """`; did you mean 'x'?` for the nearest of `names`, or nothing when none is near."""
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f"; did you mean '{near[0]}'?" if near else ""

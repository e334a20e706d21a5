# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables that people read on a terminal and programs read from a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

# Nothing is folded or cut in a pipe.
_PIPE_WIDTH = 10_000


def report_console() -> Console:
    """Standard output for reports."""
    return Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on a terminal; tab-separated lines without a header in a pipe."""
    if not sys.stdout.isatty():
        for row in rows:
            print("\t".join(row))
        return
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    Console().print(table)

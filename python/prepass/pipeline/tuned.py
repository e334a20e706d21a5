# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes that ask a tuning table before their own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prepass.errors import PrepassError
from prepass.ir.targets import Target
from prepass.pipeline.base import Pass
from prepass.pipeline.options import option

if TYPE_CHECKING:
    from prepass.ir.targets.tuning_table import TuningTable


def read_table(path: str | Path) -> TuningTable:
    """The tuning table in a file; see `read_tuning_table`."""
    # Imported where there is a table: its module loads what targets know of ops, which takes as long as all else.
    from prepass.ir.targets.tuning_table import read_tuning_table

    return read_tuning_table(path)


@dataclass(frozen=True)
class TunedPass(Pass):
    """A pass whose choices a tuning table may override. `--prepass-tuning-table` sets the option of all of them."""

    table: str = option("", help="A tuning table, of `prepass-tune`: what it says of an op comes first.")

    def __post_init__(self) -> None:
        # A table that cannot be read is an error before anything is compiled, not after.
        if self.table:
            read_table(self.table)

    @classmethod
    def for_table(cls, table: str) -> TunedPass:
        """The pass that is added to a pipeline without it where a table is given: it does what the table says."""
        return cls(table=table)

    def tuning_table(self, target: Target | None) -> TuningTable | None:
        """The table, None without one. Raises PrepassError when all of the program is for another target."""
        if not self.table:
            return None
        table = read_table(self.table)
        if target is not None and target.architecture != table.target:
            raise PrepassError(f"tuning table '{self.table}' is for {table.target}, the program for {target.name}")
        return table

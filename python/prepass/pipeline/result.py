# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a pipeline run gives back, and how terminals and notebooks show it."""

from __future__ import annotations

import difflib
import html
from collections import Counter
from dataclasses import dataclass

from iree.compiler import ir
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from prepass.pipeline.base import Remark, RemarkKind
from prepass.pipeline.manager import PassRun, PipelineRun

_COLOURS = {RemarkKind.APPLIED: "green", RemarkKind.MISSED: "yellow", RemarkKind.WARNING: "red"}


@dataclass(frozen=True)
class PipelineResult:
    """A run of a pipeline.

    Attributes:
      pipeline: Its text, named pipelines expanded.
      module: The rewritten module.
      before, after: The module's text before and after the run.
      run: What each prepass pass did.
    """

    pipeline: str
    module: ir.Module
    before: str
    after: str
    run: PipelineRun

    @property
    def remarks(self) -> list[Remark]:
        """All remarks, in the order they were made."""
        return self.run.remarks

    @property
    def counters(self) -> Counter[str]:
        """The counters of all passes, added up."""
        return sum((run.counters for run in self.run.passes), Counter())

    @property
    def seconds(self) -> float:
        """Wall time of the whole run, verification included."""
        return self.run.seconds

    @property
    def diff(self) -> str:
        """A unified diff of the module's text; empty when nothing changed."""
        lines = difflib.unified_diff(
            self.before.splitlines(), self.after.splitlines(), "before", "after", n=2, lineterm=""
        )
        return "\n".join(lines)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Group(*self._rich_parts())

    def _rich_parts(self) -> list[Table | Text | Syntax]:
        parts: list[Table | Text | Syntax] = [Text(self.pipeline, style="bold"), _passes_table(self)]
        parts += [_remark_line(remark) for remark in self.remarks]
        parts.append(Syntax(self.diff, "diff") if self.diff else Text("no change", style="dim"))
        return parts

    def _repr_html_(self) -> str:
        rows = "".join(_html_row(run) for run in self.run.passes)
        remarks = "".join(f"<li>{html.escape(str(remark))}</li>" for remark in self.remarks)
        return (
            f"<p><code>{html.escape(self.pipeline)}</code> in {self.seconds * 1e3:.1f} ms</p>"
            "<table><tr><th>pass</th><th>applied</th><th>missed</th><th>ms</th><th>counters</th></tr>"
            f"{rows}</table><ul>{remarks}</ul>"
            f"<details open><summary>diff</summary>{_highlighted(self.diff or 'no change', 'diff')}</details>"
            f"<details><summary>module</summary>{_highlighted(self.after, 'mlir')}</details>"
        )


def _passes_table(result: PipelineResult) -> Table:
    table = Table(caption=f"whole run: {result.seconds * 1e3:.1f} ms", caption_justify="left")
    for column in ("pass", "applied", "missed", "ms", "counters"):
        table.add_column(column, justify="left" if column in ("pass", "counters") else "right")
    for run in result.run.passes:
        table.add_row(*_cells(run))
    return table


def _cells(run: PassRun) -> tuple[str, ...]:
    kinds = Counter(remark.kind for remark in run.remarks)
    counters = ", ".join(f"{name} {count}" for name, count in sorted(run.counters.items()))
    applied, missed = str(kinds[RemarkKind.APPLIED]), str(kinds[RemarkKind.MISSED])
    return run.pass_text, applied, missed, f"{run.seconds * 1e3:.1f}", counters


def _html_row(run: PassRun) -> str:
    return "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in _cells(run)) + "</tr>"


def _remark_line(remark: Remark) -> Text:
    line = Text(str(remark))
    line.highlight_words([remark.kind.value], style=_COLOURS[remark.kind])
    return line


def _highlighted(text: str, language: str) -> str:
    """HTML with inline colours; plain `<pre>` where Pygments has no lexer for the language."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return f"<pre>{html.escape(text)}</pre>"
    return highlight(text, lexer, HtmlFormatter(noclasses=True))

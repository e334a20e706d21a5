# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a search found, as tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from prepass.ir.targets.attention_shape import AttentionShape
from prepass.ir.targets.tuning_table import Shape
from prepass.tuning.extract import TunedOp
from prepass.tuning.price import Price
from prepass.tuning.sweep import Candidate, OpResult

STATIC = "cycles are those of a static cost model; nothing was run"


def ops_table(ops: Sequence[TunedOp]) -> Table:
    """The ops of a program: how often each is in it, and in how many different dispatches."""
    table = Table("op", "first dispatch", "times", "dispatches", box=None, pad_edge=False)
    for op in ops:
        table.add_row(op.kind, op.name, str(sum(op.dispatches.values())), str(len(op.dispatches)))
    return table


def results_table(results: Sequence[OpResult]) -> Table:
    """For each op IREE's default, what was picked by hand and the best that was found."""
    columns = ("op", "shape", "tried", "failed", "default", "picked", "best", "/picked", "VGPRs", "LDS", "choice")
    table = Table(*columns, box=None, pad_edge=False)
    for result in results:
        failed = sum(bool(candidate.reason) for candidate in result.candidates)
        counts = (str(len(result.candidates)), str(failed))
        table.add_row(result.op.kind, shape_text(result.op.shape), *counts, *_prices(result))
    return table


def shape_text(shape: Shape) -> str:
    """The sizes of an op in a few words: "20x4096x64x64x4096 f16", the loops of other ops as they are."""
    if not isinstance(shape, AttentionShape):
        types = "x".join(dict.fromkeys(shape.element_types))
        return f"{'x'.join(map(str, shape.sizes))} {types}" + (f" {shape.results} results" if shape.results > 1 else "")
    sizes = [*shape.batch, shape.m, shape.n, shape.k1, shape.k2]
    flags = [name for name in ("value_transposed", "key_transposed", "masked") if getattr(shape, name)]
    return " ".join(["x".join(map(str, sizes)), shape.element_type, *flags])


def _prices(result: OpResult) -> tuple[str, ...]:
    default = next((c for c in result.candidates if not c.choice.config and not c.choice.kernel), None)
    best = result.best
    prices = tuple(_cycles(candidate) for candidate in (default, result.picked, best))
    if best is None or best.price is None:
        return (*prices, "", "", "", "all failed")
    return (
        *prices,
        _ratio(best.price, result.picked),
        str(best.price.vgprs),
        str(best.price.lds_bytes),
        str(best.choice),
    )


def _cycles(candidate: Candidate | None) -> str:
    if candidate is None:
        return "-"
    if candidate.price is None:
        return "failed"
    return f"{candidate.price.cycles:,.0f}" + (" spills" if candidate.price.spilling else "")


def _ratio(best: Price, picked: Candidate | None) -> str:
    return f"{best.cycles / picked.price.cycles:.2f}" if picked and picked.price else ""

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether and how contractions that share an operand are joined, by target; docs/horizontal-fusion.md has figures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from prepass.ir.targets import gfx942_contractions as gfx942
from prepass.ir.targets.target import Target

Form = Literal["results", "packed"]


@dataclass(frozen=True)
class HorizontalShape:
    """What contractions with a shared operand have in common.

    Attributes:
      rows: The extent of each loop over rows of the shared operand; None where dynamic.
      weight_bytes: Of the largest weight.
      accumulator: Of the sums.
    """

    rows: tuple[int | None, ...]
    weight_bytes: int
    accumulator: str


class NotWorthIt(Exception):
    """The target is not better off with one op.

    Attributes:
      reason: Why, as a clause.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def horizontal_forms(target: Target | None, shape: HorizontalShape) -> tuple[Form, ...]:
    """The forms that may pay off, best first. Raises NotWorthIt when none does."""
    if target is None:
        raise NotWorthIt("no target is known to gain from it")
    if target.backend == "llvm-cpu":
        # 2048x640x640 three times, f32, two threads: 80 ms apart, 119 ms packed; 10 times that with several results.
        raise NotWorthIt("llvm-cpu computes them faster one by one")
    if target.architecture != "gfx942":
        raise NotWorthIt(f"nothing is known of it on {target.name}")
    if shape.accumulator != "f32":
        raise NotWorthIt(f"they accumulate in {shape.accumulator}, which gfx942 has no matrix instructions for")
    rows = math.prod(extent for extent in shape.rows if extent is not None)
    if None in shape.rows:
        raise NotWorthIt("the number of rows is dynamic")
    if rows >= gfx942.MFMA_ROWS:
        return ("results", "packed")
    if shape.weight_bytes <= gfx942.LAUNCH_BOUND_BYTES:
        return ("packed",)
    raise NotWorthIt("with so few rows the time goes into reading the weights, which are read once either way")


def results_fit(
    target: Target | None, results: int, rows: int | None, columns: int | None, depth: int | None, element_type: str
) -> bool:
    """Whether a target has full tiles for a contraction with several results, by the extents of its innermost loops."""
    if target is None or target.architecture != "gfx942" or rows is None or columns is None or depth is None:
        return False
    return gfx942.results_tile(results, rows, columns, depth, element_type) is not None


def check_layouts(target: Target | None, rows: tuple[int | None, ...]) -> None:
    """Raise NotWorthIt unless a target gains from a contraction whose maps have the layouts of weight and result."""
    if target is None:
        raise NotWorthIt("no target is known to gain from it")
    if target.backend == "llvm-cpu":
        # Its fast kernels are for products of matrices without further dims.
        raise NotWorthIt("llvm-cpu multiplies plain matrices faster")
    if target.architecture != "gfx942":
        raise NotWorthIt(f"nothing is known of it on {target.name}")
    if None not in rows and math.prod(extent or 0 for extent in rows) < gfx942.MFMA_ROWS:
        raise NotWorthIt("gfx942 computes few rows without matrix instructions, and the layout does not matter")


def gains_from_shared_heads(target: Target | None) -> bool:
    """Whether attention over several batch loops, as shared heads need, is as good as over one."""
    # The CPU's lowering configs are for one batch loop.
    return target is not None and target.architecture == "gfx942"

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which form of a lookup loads whole rows, by target. docs/lookups.md has the measurements."""

from __future__ import annotations

from typing import Literal

from prepass.ir.targets.target import Target

LookupForm = Literal["gather", "scalar"]


def lookup_form(target: Target, *, meets_tiled_op: bool) -> LookupForm | None:
    """The form for a lookup on a target, or None when the target is not in the table.

    Args:
      target: What the module is compiled for.
      meets_tiled_op: Whether a reduction, contraction or other op that is not
        elementwise reads the rows, directly or through elementwise ops, so that
        one dispatch may hold both.
    """
    if target.backend == "llvm-cpu":
        return "gather"
    if target.architecture.startswith("gfx9"):
        # In a dispatch with a reduction each thread runs a scalar body for the whole row; a gather that is the root of
        # its dispatch, or fused with elementwise ops only, gets no vectors.
        return "gather" if meets_tiled_op else "scalar"
    return None

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Comparing the results of two programs, or of a program and a reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Difference:
    """How far results are from their references.

    Attributes:
      largest: The largest absolute difference over all finite elements.
      nan_mismatches: Elements that are NaN, or infinite with a sign, in one and
        not in the other.
    """

    largest: float
    nan_mismatches: int

    def within(self, tolerance: float) -> bool:
        """Whether no element differs by more than `tolerance`, NaN and infinity included."""
        return self.nan_mismatches == 0 and self.largest <= tolerance


def compare(results: Sequence[np.ndarray], references: Sequence[np.ndarray]) -> Difference:
    """Compare arrays pairwise, in float64.

    Raises ValueError when their number or shapes differ: nothing is broadcast.
    """
    if len(results) != len(references):
        raise ValueError(f"{len(results)} results, {len(references)} references")
    largest, mismatches = 0.0, 0
    for result, reference in zip(results, references, strict=True):
        if result.shape != reference.shape:
            raise ValueError(f"result of shape {result.shape}, reference of shape {reference.shape}")
        got, wanted = result.astype(np.float64), reference.astype(np.float64)
        finite = np.isfinite(got) & np.isfinite(wanted)
        same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
        mismatches += int(np.count_nonzero(~finite & ~same))
        if finite.any():
            largest = max(largest, float(np.max(np.abs(got[finite] - wanted[finite]))))
    return Difference(largest, mismatches)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Comparing the results of two programs, or of a program and a reference."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Difference:
    """How far results are from their references.

    Attributes:
      largest: The largest absolute difference over all finite elements.
      nan_mismatches: Elements that are NaN, or infinite with a sign, in one and
        not in the other.
      scale: The largest magnitude of a finite element of the references.
      finite: The share of elements that are finite in both; what is compared.
    """

    largest: float
    nan_mismatches: int
    scale: float = 0.0
    finite: float = 1.0

    @property
    def relative(self) -> float:
        """The largest difference, as a share of the largest magnitude; infinite where only the references are 0."""
        if self.largest == 0:
            return 0.0
        return self.largest / self.scale if self.scale else math.inf

    def within(self, tolerance: float) -> bool:
        """Whether no element differs by more than `tolerance`, NaN and infinity included."""
        return self.nan_mismatches == 0 and self.largest <= tolerance


def compare(results: Sequence[np.ndarray], references: Sequence[np.ndarray]) -> Difference:
    """Compare arrays pairwise, in float64.

    Raises ValueError when their number or shapes differ: nothing is broadcast.
    """
    if len(results) != len(references):
        raise ValueError(f"{len(results)} results, {len(references)} references")
    largest, scale, mismatches, finite_count, count = 0.0, 0.0, 0, 0, 0
    for result, reference in zip(results, references, strict=True):
        if result.shape != reference.shape:
            raise ValueError(f"result of shape {result.shape}, reference of shape {reference.shape}")
        count += result.size
        for got, wanted in zip(_chunks(result), _chunks(reference), strict=True):
            finite = np.isfinite(got) & np.isfinite(wanted)
            same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
            mismatches += int(np.count_nonzero(~finite & ~same))
            finite_count += int(np.count_nonzero(finite))
            if finite.any():
                largest = max(largest, float(np.max(np.abs(got[finite] - wanted[finite]))))
                scale = max(scale, float(np.max(np.abs(wanted[finite]))))
    return Difference(largest, mismatches, scale, finite_count / count if count else 1.0)


def _chunks(array: np.ndarray) -> Iterator[np.ndarray]:
    """An array in float64, a part at a time, so that a large one needs little memory."""
    flat = array.reshape(-1)
    for start in range(0, flat.size, _CHUNK):
        yield flat[start : start + _CHUNK].astype(np.float64)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts of a program that were kept, and what has become more since."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from prepass.analysis.dispatches import Dispatch
from prepass.checking.statistics import ProgramStatistics
from prepass.errors import PrepassError

# The number of dispatches with each signature, by group.
Baseline = dict[str, dict[str, int]]

_VERSION = 1
_GROUPS = ("dispatches", "initializer_dispatches")
_BYTES = ("transient_bytes", "weight_bytes", "initializer_read_bytes")


@dataclass(frozen=True)
class Change:
    """How one count differs from its baseline.

    Attributes:
      new: The dispatches that the baseline does not have; where there are more of one kernel, the last ones.
      gone: The signatures of those that only the baseline has, with repetition.
    """

    count: str
    before: int
    after: int
    new: list[Dispatch] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)

    @property
    def regresses(self) -> bool:
        return self.after > self.before


def baseline_text(statistics: ProgramStatistics) -> str:
    """The contents of a baseline file: the signature of each dispatch with its number, and bytes."""
    document: dict[str, object] = {"version": _VERSION}
    for group, sites in _groups(statistics).items():
        document[group] = dict(sorted(Counter(site.signature for site in sites).items()))
    document |= {name: getattr(statistics, name) for name in _BYTES}
    return json.dumps(document, indent=2) + "\n"


def compare_with_baseline(statistics: ProgramStatistics, document: Baseline) -> list[Change]:
    """What changed in the numbers of dispatches since a baseline was written."""
    changes: list[Change] = []
    for group, sites in _groups(statistics).items():
        kept = Counter(document[group])
        change = Change(group, kept.total(), len(sites), _new(sites, kept), _gone(sites, kept))
        if change.new or change.gone:
            changes.append(change)
    return changes


def _groups(statistics: ProgramStatistics) -> dict[str, list[Dispatch]]:
    initializers = [site for site in statistics.sites if site.initializer]
    return dict(zip(_GROUPS, (statistics.main, initializers), strict=True))


def read_baseline(text: str, name: str) -> Baseline:
    """The contents of a baseline file. `name` is what errors call it; raises PrepassError when it is no baseline."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise PrepassError(f"baseline '{name}' is no JSON: {error}") from None
    if not isinstance(document, dict) or document.get("version") != _VERSION:
        raise PrepassError(f"'{name}' is no baseline of version {_VERSION}; --update writes one")
    for group in _GROUPS:
        counts = document.get(group)
        if not isinstance(counts, dict) or not all(isinstance(count, int) for count in counts.values()):
            raise PrepassError(f"baseline '{name}' lacks the counts '{group}'")
    return document


def _new(sites: Sequence[Dispatch], kept: Counter[str]) -> list[Dispatch]:
    left = kept.copy()
    found: list[Dispatch] = []
    for site in sites:
        if left[site.signature]:
            left[site.signature] -= 1
        else:
            found.append(site)
    return found


def _gone(sites: Sequence[Dispatch], kept: Counter[str]) -> list[str]:
    return sorted((kept - Counter(site.signature for site in sites)).elements())

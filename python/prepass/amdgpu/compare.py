# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Two sets of kernels side by side: which belong together, and what differs."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from prepass.amdgpu.figures import KernelFigures
from prepass.amdgpu.metrics import LOOP_METRICS, LOOP_PREFIX, METRICS, metrics_of

# `main$async_dispatch_12_attention_24x4608x128…`: the number differs between compilations.
_DISPATCH = re.compile(r"_dispatch_\d+_?")
_SIMILAR = 0.5
# Beyond, comparing the names of all with all takes seconds.
_MOST_COMPARISONS = 40_000

# Parts, which say nothing more where the whole differs by as much.
_WHOLE = {"vgpr_spills": "spills", "sgpr_spills": "spills", "least_cycles": "cycles"}
_WHOLE |= {name: whole for name in METRICS if (whole := re.sub(r"_\d+b$", "", name)) != name}


@dataclass(frozen=True)
class Difference:
    """A metric on both sides; None where it is not known or not of the part.

    Attributes:
      kernel: Old and new, of the kernel.
      loop: Old and new, of the hottest loop.
    """

    metric: str
    kernel: tuple[float, float] | None
    loop: tuple[float, float] | None

    @property
    def differs(self) -> bool:
        """Whether old and new are not the same, of the kernel or of the loop."""
        return any(pair and pair[0] != pair[1] for pair in (self.kernel, self.loop))


@dataclass(frozen=True)
class Pair:
    """A kernel before and after."""

    old: KernelFigures
    new: KernelFigures

    @functools.cached_property
    def differences(self) -> tuple[Difference, ...]:
        """The metrics that differ, those that matter most first."""
        return tuple(row for row in self.rows if row.differs)

    @functools.cached_property
    def rows(self) -> tuple[Difference, ...]:
        """The differences, and the matrix instructions where they are the same: it is good to know."""
        old, new = metrics_of(self.old), metrics_of(self.new)
        straight = self.old.hottest is None and self.new.hottest is None

        def values(name: str) -> tuple[float, float] | None:
            return (old[name], new[name]) if name in old and name in new else None

        found: dict[str, Difference] = {}
        for name, metric in METRICS.items():
            # What all code costs when it runs once says nothing beside what a loop costs.
            kernel = values(name) if straight or metric.scope != "cost" else None
            loop = values(LOOP_PREFIX + name) if name in LOOP_METRICS else None
            whole = found.get(_WHOLE.get(name, ""))
            repeats = whole is not None and (whole.kernel, whole.loop) == (kernel, loop)
            row = Difference(name, kernel, loop)
            if (row.differs and not repeats) or (name == "mfma" and row.kernel != (0, 0)):
                found[name] = row
        return tuple(found.values())

    @property
    def severity(self) -> tuple[int, float]:
        """For sorting: pairs that differ in what matters most come first, the greatest difference among them."""
        if not self.differences:
            return len(METRICS), 0.0
        first = self.differences[0]
        changes = [abs(pair[1] - pair[0]) for pair in (first.kernel, first.loop) if pair]
        return list(METRICS).index(first.metric), -max(changes)


@dataclass(frozen=True)
class Comparison:
    """What became of kernels.

    Attributes:
      pairs: Those that were found on both sides; the greatest differences first.
      only_old: Those that have no counterpart.
      only_new: Those that have none on the other side.
    """

    pairs: tuple[Pair, ...]
    only_old: tuple[KernelFigures, ...]
    only_new: tuple[KernelFigures, ...]


def compare_kernels(old: Sequence[KernelFigures], new: Sequence[KernelFigures]) -> Comparison:
    """Pair kernels by their name, by their name but for the dispatch's number, then by the most similar name.

    Of similar names only those are paired whose kernels do the same kind of work: the
    first word of the name, such as `matmul`, and matrix instructions or none.
    """
    rest_old, rest_new = list(old), list(new)
    pairs: list[Pair] = []
    for key in (lambda f: f.name, lambda f: _DISPATCH.sub("_", f.name)):
        pairs += _take_equal(rest_old, rest_new, key)
    pairs += _take_similar(rest_old, rest_new)
    return Comparison(tuple(sorted(pairs, key=lambda p: p.severity)), tuple(rest_old), tuple(rest_new))


def _take_equal(
    old: list[KernelFigures], new: list[KernelFigures], key: Callable[[KernelFigures], Hashable]
) -> list[Pair]:
    waiting: dict[Hashable, list[KernelFigures]] = {}
    for figures in new:
        waiting.setdefault(key(figures), []).append(figures)
    pairs = [Pair(figures, waiting[key(figures)].pop(0)) for figures in old if waiting.get(key(figures))]
    _remove(old, [pair.old for pair in pairs])
    _remove(new, [pair.new for pair in pairs])
    return pairs


def _take_similar(old: list[KernelFigures], new: list[KernelFigures]) -> list[Pair]:
    if len(old) * len(new) > _MOST_COMPARISONS:
        return []
    scores = [
        (difflib.SequenceMatcher(None, _work(a), _work(b)).ratio(), i, j)
        for i, a in enumerate(old)
        for j, b in enumerate(new)
        if _kind(a) == _kind(b)
    ]
    pairs: list[Pair] = []
    taken: set[tuple[str, int]] = set()
    for score, i, j in sorted(scores, key=lambda entry: (-entry[0], entry[1], entry[2])):
        if score >= _SIMILAR and not taken & {("old", i), ("new", j)}:
            taken |= {("old", i), ("new", j)}
            pairs.append(Pair(old[i], new[j]))
    _remove(old, [pair.old for pair in pairs])
    _remove(new, [pair.new for pair in pairs])
    return pairs


def _work(figures: KernelFigures) -> str:
    """The part of the name that says what a dispatch computes."""
    return _DISPATCH.split(figures.name)[-1]


def _kind(figures: KernelFigures) -> tuple[str, bool]:
    return re.split(r"[_\d]", _work(figures))[0], figures.counts.mfmas > 0


def _remove(kernels: list[KernelFigures], taken: Sequence[KernelFigures]) -> None:
    gone = {id(figures) for figures in taken}
    kernels[:] = [figures for figures in kernels if id(figures) not in gone]

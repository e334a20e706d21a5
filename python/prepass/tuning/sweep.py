# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The search: from what is known to be good towards what is better, in rounds.

A round evaluates configs near the best one so far. What is evaluated depends on earlier outcomes and not on the order
in which they came, so any executor finds the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from prepass.ir.targets.tuning_table import Choice, Entry
from prepass.tuning.child import Outcome
from prepass.tuning.evaluate import NOT_TAKEN, UNPRICED, Request
from prepass.tuning.executors import Executor
from prepass.tuning.extract import TunedOp
from prepass.tuning.price import Price
from prepass.tuning.space import centre, configs, kernels, nearest, picked, start
from prepass.tuning.store import Store

ROUND = 40


@dataclass(frozen=True)
class Candidate:
    """A way to compile an op, and what became of it in each dispatch that holds the op.

    Attributes:
      weights: How often each dispatch is in the program.
      checked: Whether its results have been found right.
    """

    kind: str
    choice: Choice
    outcomes: tuple[Outcome, ...]
    weights: tuple[int, ...]
    checked: bool = False

    @property
    def price(self) -> Price | None:
        """The price in the first dispatch; None where it failed in any."""
        return None if self.reason else self.outcomes[0].price

    @property
    def reason(self) -> str:
        """Why it failed, or nothing."""
        return next((outcome.reason or "failed" for outcome in self.outcomes if outcome.price is None), "")

    @property
    def rank(self) -> tuple[float, ...]:
        """Lower is better: `Price.rank` over all dispatches, each as often as it is in the program."""
        ranks = [outcome.price.rank(self.kind) for outcome in self.outcomes if outcome.price]
        if self.reason:
            return (float("inf"),)
        # Of spills and of too few waves the worst dispatch counts, of cycles all do.
        flags = [max(rank[place] for rank in ranks) for place in (0, 1)]
        weighed = zip(ranks, self.weights, strict=True)
        sums = [sum(parts) for parts in zip(*([part * n for part in rank[2:]] for rank, n in weighed), strict=True)]
        return (*flags, *sums)


@dataclass
class OpResult:
    """What a search found for an op.

    Attributes:
      candidates: In the order in which they were chosen.
      picked: The config picked by hand, None where there is none.
    """

    op: TunedOp
    candidates: list[Candidate] = field(default_factory=list)
    picked: Candidate | None = None

    @property
    def best(self) -> Candidate | None:
        """The best candidate; of equal ones the first. None where all failed."""
        return next(iter(self.top(1)), None)

    def top(self, count: int) -> list[Candidate]:
        """The best candidates that did not fail, the best first."""
        good = [candidate for candidate in self.candidates if not candidate.reason]
        return sorted(good, key=lambda candidate: candidate.rank)[:count]

    def entry(self) -> Entry | None:
        """The table's entry, None where all failed, or where IREE's default compiles and cannot be compared."""
        best = self.best
        unpriced = any(c.choice == Choice() and c.reason == UNPRICED for c in self.candidates)
        if best is None or best.price is None or unpriced:
            return None
        price = {"cycles": best.price.cycles, "vgprs": best.price.vgprs, "lds_bytes": best.price.lds_bytes}
        return Entry(self.op.kind, self.op.shape, best.choice, price)


@dataclass
class Sweep:
    """A search over the ops of a program.

    Attributes:
      limit: How many ways to try for each op.
      flags, files: See `Request`.
      on_progress: Called with how many requests there are more, and how many are done more.
      requested: How many requests there were.
      compiled: How many of them the store did not have.
    """

    store: Store
    executor: Executor
    target: str
    limit: int
    flags: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    on_progress: Callable[[int, int], None] = lambda more, done: None
    requested: int = 0
    compiled: int = 0

    def run(self, ops: Sequence[TunedOp]) -> list[OpResult]:
        """Search for the best way to compile each op."""
        searches = {id(op): _Search(op, self.limit) for op in ops}
        results = {id(op): OpResult(op) for op in ops}
        while any(search.round for search in searches.values()):
            batch = [(op, choice) for op in ops for choice in searches[id(op)].round]
            for op, candidate in self._evaluate(batch):
                if not _is_for_other_ops(candidate):
                    results[id(op)].candidates.append(candidate)
            for op in ops:
                searches[id(op)].advance(results[id(op)])
        self._check(list(results.values()))
        for result in results.values():
            chosen = picked(result.op.kind, result.op.shape)
            result.picked = next((c for c in result.candidates if c.choice == Choice(chosen) and chosen), None)
        return list(results.values())

    def _check(self, results: Sequence[OpResult]) -> None:
        """Run the best config of each op on a small op; where its results are wrong it has failed, and the next is."""
        while unchecked := [(r, best) for r in results if (best := r.best) and best.choice.config and not best.checked]:
            batch = [(result.op, best.choice) for result, best in unchecked]
            checked = [candidate for _, candidate in self._evaluate(batch, check=True)]
            for (result, best), candidate in zip(unchecked, checked, strict=True):
                known = dataclasses.replace(best, checked=True)
                result.candidates[result.candidates.index(best)] = candidate if candidate.reason else known

    def _evaluate(
        self, batch: Iterable[tuple[TunedOp, Choice]], check: bool = False
    ) -> Iterator[tuple[TunedOp, Candidate]]:
        """The candidates of choices, in the order of these."""
        requests = [(op, choice, self._requests(op, choice, check)) for op, choice in batch]
        wanted = {request.key: request for _, _, several in requests for request in several}
        missing = {key: request for key, request in wanted.items() if self.store.get(key) is None}
        self.requested += len(wanted)
        self.on_progress(len(wanted), len(wanted) - len(missing))
        for key, outcome in self.executor.run({key: request.record() for key, request in missing.items()}):
            self.store.add(key, f"{missing[key].entry.kind}: {missing[key].entry.choice}", outcome)
            self.compiled += 1
            self.on_progress(0, 1)
        for op, choice, several in requests:
            outcomes = tuple(self.store.get(request.key) or Outcome(None, "failed") for request in several)
            yield op, Candidate(op.kind, choice, outcomes, tuple(op.dispatches.values()))

    def _requests(self, op: TunedOp, choice: Choice, check: bool) -> list[Request]:
        entry = Entry(op.kind, op.shape, choice)
        first = Request("", entry, self.target, self.flags, self.files, check)
        return [dataclasses.replace(first, source=dispatch.source) for dispatch in op.dispatches]


def _is_for_other_ops(candidate: Candidate) -> bool:
    """Whether it is a kernel that does not fit the op, which is no way to compile it."""
    return bool(candidate.choice.kernel) and candidate.reason.startswith(NOT_TAKEN)


class _Search:
    """Which choices of an op are next.

    Attributes:
      round: What is to be evaluated now; nothing when the search is over.
    """

    def __init__(self, op: TunedOp, limit: int) -> None:
        self._op = op
        self._limit = limit
        self._configs = configs(op.kind, op.shape)
        self._kernels = kernels(op.kind)
        self.round: list[Choice] = []
        known = start(op.kind, op.shape)
        # Which kernels fit is seen when they are tried; it takes no time for those that do not.
        self._take([choice for choice in known if not choice.kernel][:limit])
        self._take([*self.round, *(choice for choice in known if choice.kernel and len(self.round) < limit)])

    def advance(self, result: OpResult) -> None:
        """Choose the next round by what was found so far: members of kernels that fit, and configs near the best."""
        good = [candidate.choice for candidate in result.top(len(result.candidates))]
        fitting = {choice.kernel for choice in good if choice.kernel}
        members = [choice for choice in self._kernels if choice.kernel in fitting][: ROUND // 2]
        middle = next((choice.config for choice in good if choice.config), centre(self._op.kind, self._op.shape))
        ordered = nearest(self._configs, middle) if middle else self._configs
        left = max(0, self._limit - len(result.candidates))
        self._take([*members, *(Choice(config) for config in ordered[: ROUND - len(members)])][:left])

    def _take(self, choices: list[Choice]) -> None:
        self.round = choices
        taken = set(choices)
        self._configs = [config for config in self._configs if Choice(config) not in taken]
        self._kernels = [choice for choice in self._kernels if choice not in taken]

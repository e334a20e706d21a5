# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An issue: what is wrong in how many places, what it costs, and what becomes of it."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from prepass.analysis.costs import Cost
from prepass.analysis.graph import DispatchGraph, Node, cost_of


class State(enum.Enum):
    """What becomes of an instance of an issue."""

    FIXED = "fixed"
    FIXABLE = "fixable"
    LEFT = "left"


@dataclass(frozen=True)
class Instance:
    """One place that has an issue.

    Attributes:
      location: `file:line:column` in the source, or `<unknown>`.
      what: The op or the dispatch, with its type.
      note: What the pass did or would do, or why nothing is done.
      fix: The pass that fixes it; "" when none does.
      ops: The numbers of the source ops that are part of it.
    """

    location: str
    what: str
    state: State
    note: str
    fix: str
    ops: frozenset[int]


@dataclass(frozen=True)
class Share:
    """The dispatches that an issue is in. One dispatch can be in several issues.

    Attributes:
      dispatches: Those of functions, which run in each call.
      initializers: Those that run once, when the program is loaded.
      cost: Of all of them.
      numbers: Which they are.
    """

    dispatches: int
    initializers: int
    cost: Cost
    numbers: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Saving:
    """What a program without some passes of a pipeline has more than with them.

    Attributes:
      dispatches, initializers: In functions, and at loading.
      bytes: That the dispatches of functions move.
    """

    passes: tuple[str, ...]
    dispatches: int
    initializers: int
    bytes: int


@dataclass(frozen=True)
class Issue:
    """All instances of one kind of issue.

    Attributes:
      before: The dispatches that it is in without the pipeline.
      after: Those that the same source ops end up in with it.
      saving: What the passes that fix it save, where that was found out.
    """

    name: str
    title: str
    why: str
    instances: tuple[Instance, ...]
    before: Share
    after: Share
    saving: Saving | None = None

    def count(self, state: State) -> int:
        """The number of instances in a state."""
        return sum(instance.state is state for instance in self.instances)

    def notes(self, state: State) -> list[tuple[str, str, int]]:
        """The passes and notes of the instances in a state, with how many have each, the most first."""
        notes = Counter((i.fix, i.note) for i in self.instances if i.state is state)
        return [(fix, note, count) for (fix, note), count in notes.most_common()]


def share_of(dispatches: Sequence[Node]) -> Share:
    """What dispatches are together."""
    main = sum(dispatch.function is not None for dispatch in dispatches)
    numbers = frozenset(dispatch.number for dispatch in dispatches)
    return Share(main, len(dispatches) - main, cost_of(dispatches), numbers)


def make_issue(
    name: str, title: str, why: str, instances: Sequence[Instance], before: DispatchGraph, after: DispatchGraph
) -> Issue:
    """An issue whose shares are the dispatches that hold its source ops."""
    ops = frozenset[int]().union(*(instance.ops for instance in instances))
    return Issue(name, title, why, tuple(instances), share_of(before.holding(ops)), share_of(after.holding(ops)))

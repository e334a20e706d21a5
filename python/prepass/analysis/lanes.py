# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A dispatch graph drawn along the order of the program: a row a dispatch, a lane a result that is still to be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prepass.analysis.graph import Node

_LEAST, _MOST = 16, 40


@dataclass(frozen=True)
class Lanes:
    """Where dispatches stand.

    Attributes:
      rows: The row of each dispatch, by its number.
      lanes: The lane of each dispatch, which its result keeps down to the last dispatch that reads it.
      last: The row of that dispatch; its own row for what none reads.
      live: For each row, how many lanes go on below it.
    """

    rows: Mapping[int, int]
    lanes: Mapping[int, int]
    last: Mapping[int, int]
    live: tuple[int, ...]


def assign_lanes(dispatches: Sequence[Node]) -> Lanes:
    """Lanes such that a dispatch continues that of an operand which it is the last to read, where there is one."""
    rows = {dispatch.number: row for row, dispatch in enumerate(dispatches)}
    last = dict(rows)
    for row, dispatch in enumerate(dispatches):
        for producer in dispatch.producers:
            if producer in last:
                last[producer] = max(last[producer], row)
    lanes: dict[int, int] = {}
    taken: dict[int, int] = {}
    live: list[int] = []
    for row, dispatch in enumerate(dispatches):
        taken = {lane: number for lane, number in taken.items() if last[number] > row}
        ended = sorted(lanes[p] for p in dispatch.producers if p in lanes and lanes[p] not in taken)
        lane = ended[0] if ended else next(lane for lane in range(len(taken) + 1) if lane not in taken)
        lanes[dispatch.number] = lane
        if last[dispatch.number] > row:
            taken[lane] = dispatch.number
        live.append(len(taken))
    return Lanes(rows, lanes, last, tuple(live))


def regions(live: Sequence[int]) -> list[range]:
    """The rows in parts of a readable length, cut where the fewest results are alive, as between layers."""
    parts: list[range] = []
    start = 0
    while len(live) - start > _MOST:
        ends = range(start + _LEAST, start + _MOST)
        end = min(ends, key=lambda row: (live[row], -row)) + 1
        parts.append(range(start, end))
        start = end
    if start < len(live):
        parts.append(range(start, len(live)))
    return parts

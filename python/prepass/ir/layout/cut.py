# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where to change between two layouts at the least cost: a minimum cut (Dinic's algorithm)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

SOURCE, SINK = 0, 1


class Network:
    """A flow network under construction; nodes are numbers."""

    def __init__(self) -> None:
        self._edges: list[list[int]] = [[], []]
        self._heads: list[int] = []
        self._capacities: list[float] = []

    def node(self) -> int:
        """A new node."""
        self._edges.append([])
        return len(self._edges) - 1

    def edge(self, tail: int, head: int, capacity: float = math.inf) -> None:
        """An edge that costs `capacity` where its tail is on the source's side and its head is not."""
        for a, b, amount in ((tail, head, capacity), (head, tail, 0.0)):
            self._edges[a].append(len(self._heads))
            self._heads.append(b)
            self._capacities.append(amount)

    def source_side(self) -> set[int]:
        """The nodes of the source's side of a cheapest cut, as many as possible."""
        while True:
            levels = self._levels()
            if SINK not in levels:
                return set(range(len(self._edges))) - self._reaching_sink()
            positions = [0] * len(self._edges)
            while self._augment(levels, positions):
                pass

    def _levels(self) -> dict[int, int]:
        """How far nodes are from the source, along edges with room."""
        return self._search(SOURCE, lambda edge: edge)

    def _reaching_sink(self) -> set[int]:
        return set(self._search(SINK, lambda edge: edge ^ 1))

    def _search(self, start: int, direction: Callable[[int], int]) -> dict[int, int]:
        levels = {start: 0}
        pending = deque([start])
        while pending:
            node = pending.popleft()
            for edge in self._edges[node]:
                head = self._heads[edge]
                if self._capacities[direction(edge)] > 0 and head not in levels:
                    levels[head] = levels[node] + 1
                    pending.append(head)
        return levels

    def _augment(self, levels: dict[int, int], positions: list[int]) -> bool:
        """Send what fits along one path; False when there is no path."""
        path: list[int] = []
        node = SOURCE
        while node != SINK:
            edge = self._next_edge(node, levels, positions)
            if edge is not None:
                path.append(edge)
                node = self._heads[edge]
            elif path:
                node = self._heads[path.pop() ^ 1]
                positions[node] += 1
            else:
                return False
        amount = min(self._capacities[edge] for edge in path)
        if amount == math.inf:
            raise ValueError("what must be on one side must be on the other too")
        for edge in path:
            self._capacities[edge] -= amount
            self._capacities[edge ^ 1] += amount
        return True

    def _next_edge(self, node: int, levels: dict[int, int], positions: list[int]) -> int | None:
        edges = self._edges[node]
        while positions[node] < len(edges):
            edge = edges[positions[node]]
            if self._capacities[edge] > 0 and levels.get(self._heads[edge], -1) == levels[node] + 1:
                return edge
            positions[node] += 1
        return None

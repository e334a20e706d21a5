# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the dims of a tensor are in memory, once it is known which of its factors go last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.layout.factors import Factor, Group, extent, leaves


@dataclass(frozen=True)
class Part:
    """A run of neighbouring factors of one dim of a tensor.

    Attributes:
      dim: The dim, as the program has it.
      piece: Which of the dim's runs it is.
      pieces: How many runs the dim has.
    """

    dim: int
    piece: int
    pieces: int
    factors: Group

    @property
    def extent(self) -> int | None:
        """The size, None where dynamic."""
        return extent(self.factors)


@dataclass(frozen=True)
class Layout:
    """The dims of a tensor as they are laid out, outermost first.

    Attributes:
      rank: The number of dims that the program gives the tensor.
    """

    parts: tuple[Part, ...]
    rank: int

    @property
    def moves(self) -> bool:
        """Whether elements change place: whether dims that are not of extent 1 change their order."""
        keys = [(part.dim, part.piece) for part in self.parts]
        if keys == sorted(keys):
            return False
        wide = [(part.dim, part.piece) for part in self.parts if part.extent != 1]
        return wide != sorted(wide)

    @property
    def trivial(self) -> bool:
        """Whether it is what the program says."""
        return [part.dim for part in self.parts] == list(range(self.rank))

    @property
    def shape(self) -> list[int | None]:
        """The sizes as laid out."""
        return [part.extent for part in self.parts]

    def place(self, dim: int) -> int | None:
        """Where a dim of the program is, or None when it is in several places."""
        places = [place for place, part in enumerate(self.parts) if part.dim == dim]
        return places[0] if len(places) == 1 else None

    def determined(self) -> bool:
        """Whether the sizes follow from those the program has: no dim has two dynamic pieces."""
        return all(sum(part.extent is None for part in self.parts if part.dim == dim) < 2 for dim in range(self.rank))


# Gives an operand in the layout that an op wants it in.
Operand = Callable[[ir.Value, Layout], ir.Value]


def ordered_layout(dims: Sequence[Group]) -> Layout:
    """The layout of a tensor with all that goes last behind the rest, dims of extent 1 too."""
    parts = [part for dim, group in enumerate(dims) for part in _parts(dim, group)]
    return Layout(tuple(sorted(parts, key=_goes_last)), len(dims))


def layout_of(dims: Sequence[Group]) -> Layout:
    """The layout of a tensor: what goes last is behind the rest, unless that would move only dims of extent 1."""
    ordered = ordered_layout(dims)
    if ordered.moves:
        return ordered
    return Layout(tuple(sorted(ordered.parts, key=lambda part: (part.dim, part.piece))), len(dims))


def _goes_last(part: Part) -> bool:
    return part.factors[0].last


def _parts(dim: int, group: Group) -> list[Part]:
    runs: list[list[Factor]] = []
    units: list[Factor] = []
    factors = leaves(group)
    for leaf in factors:
        if leaf.extent == 1 and len(factors) > 1:
            units.append(leaf)
        elif runs and runs[-1][0].last == leaf.last:
            runs[-1].append(leaf)
        else:
            runs.append([leaf])
    runs = runs or [units[:1]]
    return [Part(dim, piece, len(runs), tuple(run)) for piece, run in enumerate(runs)]

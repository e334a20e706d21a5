# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the kernels need to know of an attention op: its loops, layouts and types."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.attention.read import loop_kinds
from prepass.ir.expressions import as_constant, element_type, scalar_expr, tensor_sizes
from prepass.ir.match import NoMatch

ELEMENT_TYPES = ("f16", "bf16")
MASK_TYPES = ("f16", "bf16", "f32")
SCALE_TYPES = ("f16", "bf16", "f32")

# Channels that one load takes.
_CHANNELS = 8


@dataclass(frozen=True)
class Layout:
    """An operand: the loop of each of its dims, the outermost first, and its element type."""

    loops: tuple[int, ...]
    element: str


@dataclass(frozen=True)
class AttentionProblem:
    """One attention op. Loops are numbered as in the op.

    Attributes:
      kinds: What each loop is: "batch", "m", "n", "k1" or "k2".
      extents: Of each loop, None where dynamic.
      mask: None where the op has none.
      scale: The element type of the scale.
      positive_scale: Whether the scale is known to be positive.
    """

    kinds: tuple[str, ...]
    extents: tuple[int | None, ...]
    query: Layout
    key: Layout
    value: Layout
    mask: Layout | None
    result: Layout
    scale: str
    positive_scale: bool

    def loops(self, kind: str) -> tuple[int, ...]:
        """The loops of a kind."""
        return tuple(loop for loop, found in enumerate(self.kinds) if found == kind)

    @property
    def row_loop(self) -> int:
        """The loop over queries that a workgroup has a tile of; further ones are as if batch loops."""
        return self.loops("m")[-1]

    @property
    def key_loop(self) -> int:
        """The loop over keys."""
        return self.loops("k2")[0]

    @property
    def rows(self) -> int | None:
        """Queries of a head."""
        return self.extents[self.row_loop]

    @property
    def heads(self) -> int | None:
        """How often there are so many queries: along all other loops of Q but its channels. None where dynamic."""
        sizes = [self.extents[loop] for loop in (*self.loops("batch"), *self.loops("m")[:-1])]
        return None if None in sizes else math.prod(size for size in sizes if size is not None)

    @property
    def keys(self) -> int | None:
        """Keys of a head."""
        return self.extents[self.key_loop]

    @property
    def key_channels(self) -> int:
        """Channels of Q and K, of one loop or two."""
        channels = 1
        for loop in self.loops("k1"):
            channels *= self.extents[loop] or 1
        return channels

    @property
    def value_channels(self) -> int:
        """Channels of V."""
        return self.extents[self.loops("n")[0]] or 1

    @property
    def key_transposed(self) -> bool:
        """Whether K is (k1, k2), its keys side by side."""
        return self.key.loops[-1] == self.key_loop

    @property
    def value_transposed(self) -> bool:
        """Whether V is (n, k2), its keys side by side."""
        return self.value.loops[-1] == self.key_loop


def read_problem(op: ir.Operation) -> AttentionProblem:
    """The problem that an attention op states. Raises NoMatch for what the kernels do not compute."""
    kinds, dims = loop_kinds(op)
    operands = list(op.operands)
    masked = len(dims) == 6
    problem = AttentionProblem(
        kinds=tuple(kinds),
        extents=_extents(operands, dims, len(kinds)),
        query=_layout(operands[0], dims[0]),
        key=_layout(operands[1], dims[1]),
        value=_layout(operands[2], dims[2]),
        mask=_layout(operands[4], dims[4]) if masked else None,
        result=_layout(operands[-1], dims[-1]),
        scale=str(operands[3].type),
        positive_scale=(as_constant(scalar_expr(operands[3])) or 0) > 0,
    )
    _check_loops(op, problem, dims)
    _check_channels(op, problem)
    _check_layouts(op, problem)
    _check_types(op, problem)
    _check_region(op)
    return problem


def _layout(operand: ir.Value, loops: Sequence[int]) -> Layout:
    return Layout(tuple(loops), str(element_type(operand)))


def _extents(operands: list[ir.Value], dims: list[list[int]], loops: int) -> tuple[int | None, ...]:
    extents: list[int | None] = [None] * loops
    for operand, positions in zip(operands, dims, strict=True):
        if isinstance(operand.type, ir.RankedTensorType):
            for size, loop in zip(tensor_sizes(operand), positions, strict=True):
                extents[loop] = size if extents[loop] is None else extents[loop]
    return tuple(extents)


def _check_loops(op: ir.Operation, problem: AttentionProblem, dims: list[list[int]]) -> None:
    for name, kind in (("queries", "m"), ("channels of V", "n"), ("channels of Q", "k1"), ("keys", "k2")):
        if not problem.loops(kind):
            raise NoMatch(f"there is no loop over the {name}", op)
    if "" in problem.kinds or len(problem.loops("n")) > 1 or len(problem.loops("k2")) > 1:
        raise NoMatch("the loops are not those of attention", op)
    for loop in problem.loops("batch"):
        if not all(loop in dims[number] for number in (0, 1, 2)):
            raise NoMatch("Q, K and V do not all have the same batch loops", op)


def _check_channels(op: ir.Operation, problem: AttentionProblem) -> None:
    channels = problem.loops("k1")
    if any(problem.extents[loop] is None for loop in (*channels, *problem.loops("n"))):
        raise NoMatch("the head dim is dynamic", op)
    # Of two loops over channels the inner one is what loads go along.
    for loop in (channels[-1], *problem.loops("n")):
        if (problem.extents[loop] or 0) % _CHANNELS:
            raise NoMatch(f"a head dim of {problem.extents[loop]} is no multiple of {_CHANNELS}", op)


def _check_layouts(op: ir.Operation, problem: AttentionProblem) -> None:
    channels = problem.loops("k1")
    if problem.query.loops[-len(channels) :] != channels:
        raise NoMatch("the channels of Q are not innermost", op)
    if problem.key_transposed:
        if len(channels) > 1:
            raise NoMatch("K is (k1, k2), with two loops over channels", op)
    elif problem.key.loops[-len(channels) :] != channels:
        raise NoMatch("neither the channels nor the keys of K are innermost", op)
    inner = problem.value.loops[-1]
    if inner not in (*problem.loops("n"), problem.key_loop):
        raise NoMatch("neither the channels nor the keys of V are innermost", op)
    if problem.result.loops[-1] not in problem.loops("n"):
        raise NoMatch("the channels of the result are not innermost", op)
    for name, transposed in (("K", problem.key_transposed), ("V", problem.value_transposed)):
        if transposed and (problem.keys is None or problem.keys % _CHANNELS):
            count = "a dynamic number" if problem.keys is None else f"{problem.keys}, no multiple of {_CHANNELS},"
            raise NoMatch(f"the keys of {name} are innermost, and there is {count} of them", op)
    if problem.mask is not None and (not problem.mask.loops or problem.mask.loops[-1] != problem.key_loop):
        raise NoMatch("the keys are not innermost in the mask", op)


def _check_types(op: ir.Operation, problem: AttentionProblem) -> None:
    if problem.mask is not None and problem.mask.element not in MASK_TYPES:
        raise NoMatch(f"a mask of type {problem.mask.element} is not added to the scores", op)
    if problem.scale not in SCALE_TYPES:
        raise NoMatch(f"the scale is of type {problem.scale}", op)


def _check_region(op: ir.Operation) -> None:
    (block,) = op.regions[0].blocks
    operations = [inner.operation for inner in block.operations]
    if len(operations) != 1 or operations[0].operands[0] != block.arguments[0]:
        raise NoMatch("the region changes the scores", op)

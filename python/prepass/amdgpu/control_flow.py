# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks and loops of a kernel.

A loop is a natural loop: an edge back to a block that dominates its source, with all blocks
from which that edge is reached. Compilers write no other.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prepass.amdgpu.assembly import Instruction, Kernel
from prepass.amdgpu.opcodes import Kind, opcode

_JUMPS = ("s_branch", "s_endpgm", "s_setpc_b64")


@dataclass(frozen=True)
class Block:
    """Instructions `start` to `end`, exclusive, that run one after the other."""

    start: int
    end: int
    successors: tuple[int, ...]


@dataclass(frozen=True)
class Loop:
    """A loop.

    Attributes:
      label: The label of its first block, empty when it has none.
      blocks: Indices of its blocks, those of inner loops included.
      always: Those of them that every iteration runs: no branch goes around them.
      depth: 1 for an outermost loop.
      innermost: Whether it has no loop inside.
    """

    label: str
    blocks: frozenset[int]
    always: frozenset[int]
    depth: int
    innermost: bool


class ControlFlow:
    """The blocks of a kernel, in order, and its loops, outermost first."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.blocks = _split(kernel)

    @functools.cached_property
    def loops(self) -> tuple[Loop, ...]:
        """All loops; of two that share a first block, one."""
        names = {index: label for label, index in reversed(list(self.kernel.labels.items()))}
        bodies: dict[int, set[int]] = {}
        ends: dict[int, list[int]] = {}
        for source, target in self._back_edges():
            bodies.setdefault(target, {target}).update(self._body(source, target))
            ends.setdefault(target, []).append(source)
        found = []
        for header, body in bodies.items():
            depth = sum(1 for other, outer in bodies.items() if body <= outer and (other == header or body != outer))
            innermost = not any(inner < body for inner in bodies.values())
            label = names.get(self.blocks[header].start, "")
            always = self._always(ends[header]) & body
            found.append(Loop(label, frozenset(body), always, depth, innermost))
        return tuple(sorted(found, key=lambda loop: (loop.depth, min(loop.blocks))))

    @functools.cached_property
    def hottest(self) -> Loop | None:
        """The deepest loop with MFMAs of its own, not of a loop inside, and of several that with the most.

        In a kernel without MFMAs the deepest, then the longest; None without a loop.
        """

        def heat(loop: Loop) -> tuple[bool, int, int, int]:
            inner = {block for other in self.loops if other.blocks < loop.blocks for block in other.blocks}
            own = [opcode(i).kind for block in loop.blocks - inner for i in self._block(block)]
            return Kind.MFMA in own, loop.depth, own.count(Kind.MFMA), len(own)

        return max(self.loops, key=heat, default=None)

    @functools.cached_property
    def always(self) -> tuple[Instruction, ...]:
        """The instructions of the kernel that no branch goes around."""
        ends = [index for index in self._dominators if not self.blocks[index].successors]
        return tuple(i for index in sorted(self._always(ends)) for i in self._block(index))

    def instructions(self, loop: Loop, *, always: bool = False) -> tuple[Instruction, ...]:
        """The instructions of a loop, as they stand in the code; all, or those that every iteration runs."""
        return tuple(i for index in sorted(loop.always if always else loop.blocks) for i in self._block(index))

    def _always(self, ends: Sequence[int]) -> frozenset[int]:
        """The blocks that every way to one of some blocks passes."""
        return frozenset.intersection(*(self._dominators[end] for end in ends)) if ends else frozenset()

    @functools.cached_property
    def _dominators(self) -> dict[int, frozenset[int]]:
        return _dominators(self.blocks)

    def _block(self, index: int) -> tuple[Instruction, ...]:
        block = self.blocks[index]
        return self.kernel.instructions[block.start : block.end]

    def _back_edges(self) -> list[tuple[int, int]]:
        return [
            (index, successor)
            for index, block in enumerate(self.blocks)
            for successor in block.successors
            # Blocks that are never reached have no dominators.
            if successor in self._dominators.get(index, frozenset())
        ]

    def _body(self, source: int, header: int) -> set[int]:
        """The blocks from which `source` is reached without passing `header`."""
        predecessors = _predecessors(self.blocks)
        body, pending = {header}, [source]
        while pending:
            if (block := pending.pop()) not in body:
                body.add(block)
                pending += predecessors[block]
        return body


def _split(kernel: Kernel) -> tuple[Block, ...]:
    instructions = kernel.instructions
    if not instructions:
        return ()
    starts = {0, *kernel.labels.values()}
    starts |= {index + 1 for index, instruction in enumerate(instructions) if _ends_block(instruction)}
    bounds = sorted(start for start in starts if start < len(instructions))
    number = {start: index for index, start in enumerate(bounds)}
    blocks = []
    for start, end in zip(bounds, [*bounds[1:], len(instructions)], strict=True):
        targets = _targets(kernel, instructions[end - 1], end)
        blocks.append(Block(start, end, tuple(number[target] for target in targets if target in number)))
    return tuple(blocks)


def _ends_block(instruction: Instruction) -> bool:
    return instruction.name in _JUMPS or instruction.name.startswith("s_cbranch")


def _targets(kernel: Kernel, last: Instruction, following: int) -> Iterable[int]:
    branches = last.name.startswith(("s_branch", "s_cbranch")) and last.operands
    if branches and last.operands[-1].strip('"') in kernel.labels:
        yield kernel.labels[last.operands[-1].strip('"')]
    if last.name not in _JUMPS:
        yield following


def _predecessors(blocks: Sequence[Block]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in blocks]
    for index, block in enumerate(blocks):
        for successor in block.successors:
            found[successor].append(index)
    return found


def _dominators(blocks: Sequence[Block]) -> dict[int, frozenset[int]]:
    """For each block that is reached, the blocks that every way to it passes, itself included."""
    if not blocks:
        return {}
    predecessors = _predecessors(blocks)
    order = _reverse_postorder(blocks)
    found = {0: frozenset([0])}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            known = [found[p] for p in predecessors[block] if p in found]
            new = frozenset.intersection(*known) | {block}
            if found.get(block) != new:
                found[block], changed = new, True
    return found


def _reverse_postorder(blocks: Sequence[Block]) -> list[int]:
    order: list[int] = []
    seen = {0}
    pending = [(0, iter(blocks[0].successors))]
    while pending:
        block, successors = pending[-1]
        following = next((s for s in successors if s not in seen), None)
        if following is None:
            order.append(block)
            pending.pop()
        else:
            seen.add(following)
            pending.append((following, iter(blocks[following].successors)))
    return order[::-1]

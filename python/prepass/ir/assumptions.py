# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`util.assume.int` from what the assertions of a block prove."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from iree.compiler import ir
from iree.compiler.dialects import util

from prepass.ir.match import NoMatch, defining_op, is_dead
from prepass.ir.ranges import Range, before_cast, cast_source, facts, known_range, through_cast

# Nothing is hoisted out of these.
_FUNCTIONS = ("func.func", "util.func", "util.initializer")


@dataclass
class Proof:
    """What assertions prove about one value that is not a cast of another.

    Attributes:
      steps: Each assertion that says something new of the value, with the range of
        the value when all assertions up to that one hold.
    """

    root: ir.Value
    steps: list[tuple[ir.Operation, Range]]

    @property
    def is_contradiction(self) -> bool:
        """Whether the assertions cannot all hold."""
        return self.steps[-1][1].is_empty


@dataclass
class Assumptions:
    """The assumptions made so far, so that inner blocks build on those of outer ones."""

    _ranges: dict[ir.Value, Range] = field(default_factory=dict)
    _ops: list[ir.Operation] = field(default_factory=list)

    def prove(self, assertions: Sequence[ir.Operation]) -> list[Proof]:
        """What the assertions of one block, in order, prove, a proof for each value."""
        proofs: dict[ir.Value, Proof] = {}
        for assertion in assertions:
            for value, fact in facts(assertion.operands[0]):
                root, range_ = _root(value, fact)
                steps = proofs[root].steps if root in proofs else []
                before = steps[-1][1] if steps else self._ranges.get(root) or known_range(root)
                if before & range_ != before:
                    proofs.setdefault(root, Proof(root, [])).steps.append((assertion, before & range_))
        return list(proofs.values())

    def assume(self, proof: Proof) -> None:
        """Let later uses of the value and of its casts read an assumption.

        Raises NoMatch when the ranges are of no use, or cannot be tied to the
        place where the assertions are.
        """
        last, range_ = proof.steps[-1]
        if range_.is_full_unsigned:
            raise NoMatch("the assertions do not bound the value as unsigned number", last)
        if not _varies_with(proof.root, last.block):
            raise NoMatch("the value does not change in the loop, so that an assumption could be hoisted", last)
        for member, casts in list(_family(proof.root, proof.steps[0][0])):
            for assertion, proved in reversed(proof.steps):
                range_ = functools.reduce(lambda known, cast: through_cast(cast, known), casts, proved)
                if not range_.is_full_unsigned:
                    self._assume(member, range_, assertion)

    def erase_unread(self) -> int:
        """Erase the assumptions that nothing reads, once the assertions are gone; returns how many stay."""
        unread = 0
        for op in reversed(self._ops):
            if is_dead(op):
                op.erase()
                unread += 1
        return len(self._ops) - unread

    def _assume(self, value: ir.Value, range_: Range, assertion: ir.Operation) -> None:
        uses = [use for use in value.uses if _runs_after(use.owner.operation, assertion)]
        uses = [use for use in uses if use.owner.operation not in self._ops]
        if not uses:
            return
        with ir.InsertionPoint.after(assertion), assertion.location:
            assumed = util.assume_int([value.type], [value], _assumptions(range_))
        self._ranges[assumed] = range_
        self._ops.append(assumed.owner.operation)
        for use in uses:
            use.owner.operands[use.operand_number] = assumed


def _assumptions(range_: Range) -> ir.Attribute:
    # The bindings have no builder for the attribute.
    low, high = range_.unsigned
    return ir.Attribute.parse(f"[[#util.int.assumption<umin = {low}, umax = {high}>]]")


def _root(value: ir.Value, range_: Range) -> tuple[ir.Value, Range]:
    """What `value` is a cast of, and its range."""
    while (source := cast_source(value)) is not None:
        range_ = before_cast(value, range_)
        value = source
    return value, range_


def _family(root: ir.Value, assertion: ir.Operation) -> Iterator[tuple[ir.Value, tuple[ir.Value, ...]]]:
    """`root` and its casts before `assertion`, each with the casts that lead to it."""
    pending: list[tuple[ir.Value, tuple[ir.Value, ...]]] = [(root, ())]
    while pending:
        value, path = pending.pop()
        yield value, path
        for use in value.uses:
            cast = use.owner.operation
            # The cast's one operand is `value`.
            if len(cast.results) == 1 and cast_source(cast.result) is not None and _runs_after(assertion, cast):
                pending.append((cast.result, (*path, cast.result)))


def _runs_after(op: ir.Operation, earlier: ir.Operation) -> bool:
    """Whether `op` stands after `earlier` in its block, or in a region of an op that does."""
    ancestor = op
    while ancestor.block != earlier.block:
        parent = ancestor.parent
        if parent is None or parent.operation.name == "builtin.module":
            return False
        ancestor = parent.operation
    return earlier.is_before_in_block(ancestor)


def _varies_with(value: ir.Value, block: ir.Block) -> bool:
    """Whether nothing hoists an op on `value` from `block` to where it runs although `block` does not.

    An op in an scf.if stays there, so the block around the scf.if decides.
    """
    while block.owner.operation.name == "scf.if":
        block = block.owner.operation.block
    return block.owner.operation.name in _FUNCTIONS or _depends_on(value, block)


def _depends_on(value: ir.Value, block: ir.Block) -> bool:
    """Whether `value` is computed from an argument or a position of the loops of `block`."""
    op = defining_op(value)
    if op is None:
        return value.owner == block
    if op.block != block:
        return False
    return op.name == "linalg.index" or any(_depends_on(operand, block) for operand in op.operands)

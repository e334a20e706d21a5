# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What every match stands on: the match failure and walks up the def-use chain."""

from __future__ import annotations

from iree.compiler import ir


class NoMatch(Exception):
    """A pattern does not apply; raised by matchers, reported as a missed remark.

    Attributes:
      reason: Why, as one clause in the field's words, without a full stop.
      op: The op that made the match fail.
    """

    def __init__(self, reason: str, op: ir.Operation | ir.OpView) -> None:
        super().__init__(reason)
        self.reason = reason
        self.op = op.operation


def defining_op(value: ir.Value) -> ir.Operation | None:
    """The operation that defines `value`, or None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def walk_ops(root: ir.Operation, name: str) -> list[ir.Operation]:
    """All operations called `name` nested in `root`, in post-order.

    The list is made before the caller rewrites anything.
    """
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == name:
            found.append(op.operation)
        return ir.WalkResult.ADVANCE

    root.operation.walk(visit)
    return found


def has_one_use(value: ir.Value) -> bool:
    """Whether exactly one operand in the program reads `value`."""
    uses = iter(value.uses)
    return next(uses, None) is not None and next(uses, None) is None


def is_dead(op: ir.Operation) -> bool:
    """Whether no result of `op` is read."""
    return all(next(iter(result.uses), None) is None for result in op.results)

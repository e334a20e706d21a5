# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What every match stands on: the match failure and walks up the def-use chain."""

from __future__ import annotations

from collections.abc import Callable

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


def find_ops(
    root: ir.Operation, wanted: Callable[[ir.Operation], bool], order: ir.WalkOrder = ir.WalkOrder.POST_ORDER
) -> list[ir.Operation]:
    """All operations nested in `root` that are wanted.

    The list is made before the caller rewrites anything.
    """
    found: list[ir.Operation] = []

    def visit(visited: ir.Operation) -> ir.WalkResult:
        op = visited.operation
        if wanted(op):
            found.append(op)
        return ir.WalkResult.ADVANCE

    root.operation.walk(visit, order)
    return found


def walk_ops(root: ir.Operation, name: str) -> list[ir.Operation]:
    """All operations called `name` nested in `root`, in post-order; see `find_ops`."""
    return find_ops(root, lambda op: op.name == name)


def yielded(op: ir.Operation) -> list[ir.Value]:
    """What the body of a linalg op or of a pad yields."""
    return list(op.regions[0].blocks[0].operations[-1].operation.operands)


def has_one_user(value: ir.Value) -> bool:
    """Whether one op reads `value`, in any number of operands."""
    return len({use.owner for use in value.uses}) == 1


def is_dead(op: ir.Operation) -> bool:
    """Whether no result of `op` is read."""
    return all(next(iter(result.uses), None) is None for result in op.results)


def computes(op: ir.Operation) -> bool:
    """Whether an op of a dispatch makes tensors in loops of its own."""
    return op.name.startswith(("linalg.", "iree_linalg_ext.")) and len(op.results) > 0 and len(op.regions) > 0

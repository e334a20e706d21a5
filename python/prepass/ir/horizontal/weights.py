# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who reads a weight: one that is packed must not be needed unpacked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from iree.compiler import ir

from prepass.ir.elementwise import VIEWS, is_elementwise, moves_only
from prepass.ir.horizontal.members import is_constant
from prepass.ir.match import defining_op, walk_ops


class WeightUses:
    """The parameters of a program, and how often each is loaded."""

    def __init__(self, root: ir.Operation) -> None:
        self._loads = Counter(_global_of(op) for op in walk_ops(root, "util.global.load"))

    def only_by(self, value: ir.Value, ops: Iterable[ir.Operation]) -> bool:
        """Whether nothing but `ops` reads a constant or parameter, directly or moved."""
        op = defining_op(value)
        if op is None or not is_constant(value):
            return False
        if op.name == "util.global.load" and self._loads[_global_of(op)] > 1:
            return False
        wanted, pending = set(ops), [value]
        while pending:
            for use in pending.pop().uses:
                user = use.owner.operation
                if user.name in VIEWS or (is_elementwise(user) and moves_only(user)):
                    pending.append(user.results[0])
                elif user not in wanted:
                    return False
        return True


def _global_of(op: ir.Operation) -> str:
    return ir.FlatSymbolRefAttr(op.attributes["global"]).value

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants and parameters: what no call changes, and who reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from iree.compiler import ir

from prepass.ir.elementwise import VIEWS, is_elementwise, moves_only
from prepass.ir.match import defining_op, walk_ops

_LOAD = "util.global.load"


class Weights:
    """The constants and parameters of the program that an op is in."""

    def __init__(self, root: ir.Operation) -> None:
        program = root
        while (parent := program.parent) is not None:
            program = parent.operation
        self._loads = Counter(_global_of(op) for op in walk_ops(program, _LOAD))
        self._mutable = {
            ir.StringAttr(op.attributes["sym_name"]).value
            for op in walk_ops(program, "util.global")
            if "is_mutable" in op.attributes
        }

    def is_constant(self, value: ir.Value) -> bool:
        """Whether `value` is a constant or a parameter that is not stored to."""
        op = defining_op(value)
        if op is None:
            return False
        return op.name == "arith.constant" or (op.name == _LOAD and _global_of(op) not in self._mutable)

    def only_by(self, value: ir.Value, ops: Iterable[ir.Operation]) -> bool:
        """Whether nothing but `ops` reads a constant or parameter, directly or moved."""
        op = defining_op(value)
        if op is None or not self.is_constant(value):
            return False
        if op.name == _LOAD and self._loads[_global_of(op)] > 1:
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

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a program costs before it runs: dispatches and transient memory, counted in the IR."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iree.compiler import ir

from prepass.compiler.compilation import Hook
from prepass.ir.match import defining_op, walk_ops


@dataclass
class ProgramStatistics:
    """Static counts of one compilation; give `hooks` to `prepass.compile` to fill them.

    Attributes:
      dispatches: Dispatches in functions, each call site once.
      initializer_dispatches: Dispatches that run once, when the program is loaded.
      transient_bytes: Memory allocated for intermediate results, or None when a
        size is dynamic.
    """

    dispatches: int = 0
    initializer_dispatches: int = 0
    transient_bytes: int | None = 0

    @property
    def hooks(self) -> Mapping[str, Hook]:
        """Hooks that count at the phases where the counts can be seen."""
        return {"flow": self._count_dispatches, "stream": self._add_transient_bytes}

    def _count_dispatches(self, module: ir.Operation) -> None:
        for function in module.regions[0].blocks[0].operations:
            count = len(walk_ops(function.operation, "flow.dispatch"))
            if function.operation.name == "util.initializer":
                self.initializer_dispatches += count
            elif function.operation.name == "util.func":
                self.dispatches += count

    def _add_transient_bytes(self, module: ir.Operation) -> None:
        for alloca in walk_ops(module, "stream.resource.alloca"):
            if str(alloca.results[0].type) != "!stream.resource<transient>":
                continue  # A result of the program, which its caller keeps.
            size = _constant_size(alloca.operands[0])
            if size is None or self.transient_bytes is None:
                self.transient_bytes = None
            else:
                self.transient_bytes += size


def _constant_size(value: ir.Value) -> int | None:
    op = defining_op(value)
    return ir.IntegerAttr(op.attributes["value"]).value if op and op.name == "arith.constant" else None

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a program costs before it runs: dispatches and transient memory, counted in the IR."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iree.compiler import ir

from prepass.checking.loading import constant_size, initializer_read_bytes, kept_bytes
from prepass.compiler.compilation import Hook
from prepass.ir.match import walk_ops


@dataclass
class ProgramStatistics:
    """Static counts of one compilation; give `hooks` to `prepass.compile` to fill them.

    Attributes:
      dispatches: Dispatches in functions, each call site once.
      initializer_dispatches: Dispatches that run once, when the program is loaded.
      transient_bytes: Memory allocated for intermediate results, or None when a
        size is dynamic.
      weight_bytes: Memory of parameters and constants once the program is loaded,
        or None when a size is dynamic.
      initializer_read_bytes: What loading reads of them to change them, in
        dispatches and copies, or None when a size is dynamic.
    """

    dispatches: int = 0
    initializer_dispatches: int = 0
    transient_bytes: int | None = 0
    weight_bytes: int | None = 0
    initializer_read_bytes: int | None = 0

    @property
    def hooks(self) -> Mapping[str, Hook]:
        """Hooks that count at the phases where the counts can be seen."""
        return {"flow": self._count_dispatches, "stream": self._count_bytes}

    def _count_dispatches(self, module: ir.Operation) -> None:
        for function in module.regions[0].blocks[0].operations:
            count = len(walk_ops(function.operation, "flow.dispatch"))
            if function.operation.name == "util.initializer":
                self.initializer_dispatches += count
            elif function.operation.name == "util.func":
                self.dispatches += count

    def _count_bytes(self, module: ir.Operation) -> None:
        self.weight_bytes = kept_bytes(module)
        self.initializer_read_bytes = initializer_read_bytes(module)
        self._add_transient_bytes(module)

    def _add_transient_bytes(self, module: ir.Operation) -> None:
        for alloca in walk_ops(module, "stream.resource.alloca"):
            if str(alloca.results[0].type) != "!stream.resource<transient>":
                continue  # A result of the program, which its caller keeps.
            size = constant_size(alloca.operands[0])
            if size is None or self.transient_bytes is None:
                self.transient_bytes = None
            else:
                self.transient_bytes += size

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a program costs before it runs: dispatches and memory, counted in the IR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from iree.compiler import ir

from prepass.analysis.dispatches import Dispatch, read_dispatches
from prepass.checking.loading import constant_size, initializer_read_bytes, kept_bytes
from prepass.compiler.api import compile_to
from prepass.compiler.compilation import Hook
from prepass.ir.match import walk_ops
from prepass.ir.parse import ModuleSource
from prepass.ir.targets import Target, find_target
from prepass.pipeline.base import RemarkHandler
from prepass.pipeline.builder import Pipeline


@dataclass
class ProgramStatistics:
    """Static counts of one compilation; give `hooks` to `prepass.compile` to fill them.

    Attributes:
      sites: The dispatches of functions and initializers, each call site once.
      transient_bytes: Memory allocated for intermediate results, or None when a
        size is dynamic.
      weight_bytes: Memory of parameters and constants once the program is loaded,
        or None when a size is dynamic.
      initializer_read_bytes: What loading reads of them to change them, in
        dispatches and copies, or None when a size is dynamic.
      target: What the program is compiled for, or None when there are several.
    """

    sites: list[Dispatch] = field(default_factory=list)
    transient_bytes: int | None = 0
    weight_bytes: int | None = 0
    initializer_read_bytes: int | None = 0
    target: Target | None = None

    @property
    def main(self) -> list[Dispatch]:
        """The dispatches in functions."""
        return [site for site in self.sites if not site.initializer]

    @property
    def dispatches(self) -> int:
        """How many dispatches are in functions."""
        return len(self.main)

    @property
    def initializer_dispatches(self) -> int:
        """How many dispatches run once, when the program is loaded."""
        return len(self.sites) - len(self.main)

    @property
    def hooks(self) -> Mapping[str, Hook]:
        """Hooks that count at the phases where the counts can be seen."""
        return {"flow": self._read_dispatches, "stream": self._count_bytes}

    def _read_dispatches(self, module: ir.Operation) -> None:
        self.sites = read_dispatches(module)
        self.target = find_target(module)

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


def measure(
    source: ModuleSource,
    *,
    pipeline: str | Pipeline | None = None,
    preset: str | None = None,
    kernels: str | Sequence[str] | None = None,
    flags: Sequence[str] = (),
    on_remark: RemarkHandler | None = None,
) -> ProgramStatistics:
    """The counts of a program, without compiling its kernels. Arguments and errors as for `prepass.compile`."""
    statistics = ProgramStatistics()
    compile_to(
        source,
        "stream",
        pipeline=pipeline,
        preset=preset,
        kernels=kernels,
        flags=flags,
        hooks=statistics.hooks,
        on_remark=on_remark,
    )
    return statistics

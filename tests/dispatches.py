# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a program costs on gfx942, without compiling its kernels."""

from __future__ import annotations

import re
from dataclasses import dataclass

from prepass.checking.statistics import ProgramStatistics
from prepass.compiler.api import compile_to

from .conftest import GFX942


@dataclass(frozen=True)
class Cost:
    """Static counts of a program.

    Attributes:
      names: Of the executables, such as `main_dispatch_0_reduction_64x640_f16`.
    """

    dispatches: int
    initializer_dispatches: int
    transient_bytes: int
    names: tuple[str, ...]
    weight_bytes: int
    initializer_read_bytes: int


def cost(source, pipeline, level, *more_flags) -> Cost:
    """The cost of a program at an optimization level."""
    statistics = ProgramStatistics()
    names: list[str] = []

    def flow(module):
        names.extend(re.findall(r"flow.executable.export public @(\S+)", str(module)))
        statistics.hooks["flow"](module)

    flags = (*GFX942, f"--iree-opt-level={level}", *more_flags)
    compile_to(source, "stream", pipeline=pipeline, flags=flags, hooks={**statistics.hooks, "flow": flow})
    return Cost(
        statistics.dispatches,
        statistics.initializer_dispatches,
        statistics.transient_bytes,
        tuple(names),
        statistics.weight_bytes,
        statistics.initializer_read_bytes,
    )

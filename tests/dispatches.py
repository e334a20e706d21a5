# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a program costs on gfx942, without compiling its kernels."""

from __future__ import annotations

import re
from dataclasses import dataclass

import prepass
from prepass.checking.statistics import ProgramStatistics

from .conftest import GFX942


@dataclass(frozen=True)
class Cost:
    """Static counts of a program.

    Attributes:
      names: Of the executables, such as `main_dispatch_0_reduction_64x640_f16`.
    """

    dispatches: int
    transient_bytes: int
    names: tuple[str, ...]
    weight_bytes: int
    initializer_read_bytes: int


class _StopError(Exception):
    """Compilation has gone far enough."""


def cost(source, pipeline, level, *more_flags) -> Cost:
    """The cost of a program at an optimization level."""
    statistics = ProgramStatistics()
    names: list[str] = []

    def flow(module):
        names.extend(re.findall(r"flow.executable.export public @(\S+)", str(module)))
        statistics.hooks["flow"](module)

    def stream(module):
        statistics.hooks["stream"](module)
        raise _StopError

    flags = (*GFX942, f"--iree-opt-level={level}", *more_flags)
    try:
        prepass.compile(source, pipeline=pipeline, flags=flags, hooks={"flow": flow, "stream": stream})
    except _StopError:
        return Cost(
            statistics.dispatches,
            statistics.transient_bytes,
            tuple(names),
            statistics.weight_bytes,
            statistics.initializer_read_bytes,
        )
    raise AssertionError("the stream phase was not reached")

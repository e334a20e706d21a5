# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Named pipelines: a name for a list of pipeline elements, each with its reason."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prepass.ir.targets.devices import DEVICE_FLAGS, flag_name


@dataclass(frozen=True)
class Step:
    """One element of a named pipeline.

    Attributes:
      text: Pipeline text: a pass, a nest or another named pipeline.
      reason: Why it stands where it stands, in one sentence.
    """

    text: str
    reason: str


@dataclass(frozen=True)
class Flag:
    """A flag of iree-compile that a named pipeline is meant to be compiled with.

    Attributes:
      text: As on the command line, with its value: `--iree-opt-data-tiling=false`.
      reason: Why it is set, in one sentence.
      devices: The devices that it is for, as `--iree-hal-target-device` names them; empty when it is for all.
    """

    text: str
    reason: str
    devices: tuple[str, ...] = ()


# The device of ROCm, and its former names.
ROCM = ("hip", "rocm", "amdgpu")
# The device that runs what llvm-cpu compiles, and its name as a backend.
CPU = ("local", "llvm-cpu")


@dataclass(frozen=True)
class NamedPipeline:
    """A pipeline that pipeline text uses like a pass, on `builtin.module`.

    Attributes:
      name: Kebab-case with the prefix `prepass-`.
      summary: One line.
      steps: The elements, in order.
      flags: Set where the pipeline is used as a preset, unless the user gives
        them; pipeline text alone sets none.
    """

    name: str
    summary: str
    steps: tuple[Step, ...]
    flags: tuple[Flag, ...] = ()

    @property
    def text(self) -> str:
        """The whole as pipeline text, spelt out."""
        return f"builtin.module({','.join(step.text for step in self.steps)})"

    @property
    def as_text(self) -> str:
        """The whole as pipeline text, by its name."""
        return f"builtin.module({self.name})"

    def flags_beside(self, given: Sequence[str]) -> list[str]:
        """The flags of the pipeline for the devices that a user's flags name, without those that the user gives."""
        names = {flag_name(flag) for flag in given}
        devices = set(_devices(given))
        return [
            flag.text
            for flag in self.flags
            if flag_name(flag.text) not in names and (not flag.devices or devices & set(flag.devices))
        ]


def _devices(flags: Sequence[str]) -> Iterator[str]:
    """The names of devices in flags such as `--iree-hal-target-device=gpu=hip[0]`, the value in a flag or behind it."""
    for flag, following in zip(flags, [*flags[1:], ""], strict=False):
        if flag_name(flag) in DEVICE_FLAGS:
            _, equals, value = flag.partition("=")
            yield from re.findall(r"[\w-]+", value if equals else following)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Named pipelines: a name for a list of pipeline elements, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass


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
class NamedPipeline:
    """A pipeline that pipeline text uses like a pass, on `builtin.module`.

    Attributes:
      name: Kebab-case with the prefix `prepass-`.
      summary: One line.
      steps: The elements, in order.
    """

    name: str
    summary: str
    steps: tuple[Step, ...]

    @property
    def text(self) -> str:
        """The whole as pipeline text."""
        return f"builtin.module({','.join(step.text for step in self.steps)})"

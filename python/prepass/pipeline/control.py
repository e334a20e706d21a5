# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running only a part of what passes would do, to find out which rewrite does harm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from iree.compiler import ir

from prepass.ir.targets import Target


@dataclass(frozen=True)
class Control:
    """How passes run otherwise than they would.

    Attributes:
      rewrite_limits: How many rewrites a pass may make in a run, by its name; it stops at the next one. What
        is already rewritten stays, so that the IR is what it would be in between.
      target: What passes rewrite for, instead of the target of the module.
    """

    rewrite_limits: Mapping[str, int] = field(default_factory=dict)
    target: Target | None = None


class RewriteLimit(Exception):
    """A pass is about to make a rewrite beyond its limit.

    Attributes:
      op: What it would rewrite next.
    """

    def __init__(self, op: ir.Operation) -> None:
        super().__init__("the limit of rewrites is reached")
        self.op = op

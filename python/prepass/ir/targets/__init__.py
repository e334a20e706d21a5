# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Target facts. Each target's numbers live in its own module beside this one."""

from prepass.ir.targets.target import (
    Target,
    enclosing_variant,
    executable_target,
    find_target,
    target_to_configure,
)

__all__ = ["Target", "enclosing_variant", "executable_target", "find_target", "target_to_configure"]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Warnings of passes, which are printed whether or not remarks are asked for."""

from __future__ import annotations

import sys

from iree.compiler import ir

from prepass.ir.locations import describe_location


def warn(op: ir.Operation, message: str) -> None:
    """Print a warning at the source location of `op` to standard error.

    The bindings emit errors only, and an error fails the pass.
    """
    print(f"{describe_location(op.location)}: warning: {message}", file=sys.stderr)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Source positions of MLIR locations, as compilers print them."""

from __future__ import annotations

from iree.compiler import ir

UNKNOWN = "<unknown>"


def file_location(location: ir.Location) -> ir.FileLineColLoc | None:
    """The first file position inside a location that may be named, fused or a call site."""
    if isinstance(location, ir.FileLineColLoc):
        return location
    if isinstance(location, ir.NameLoc):
        return file_location(location.child_loc)
    if isinstance(location, ir.CallSiteLoc):
        return file_location(location.callee)
    if isinstance(location, ir.FusedLoc):
        return next((found for part in location.locations if (found := file_location(part))), None)
    return None


def describe_location(location: ir.Location) -> str:
    """`file:line:column`, 1-based, or `<unknown>`."""
    found = file_location(location)
    if found is None:
        return UNKNOWN
    return f"{found.filename}:{found.start_line}:{found.start_col}"

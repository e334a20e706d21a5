# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Source positions of MLIR locations, as compilers print them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from iree.compiler import ir

UNKNOWN = "<unknown>"
_IN_TORCH = re.compile(r"-packages[/\\]torch[/\\]")


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


def describe_source(location: ir.Location) -> str:
    """The innermost `file:line:column` outside of torch, as in the model's own code; as `describe_location` otherwise.

    Exporters of torch keep the Python frames of an op as call sites, and the innermost is in torch.nn.
    """
    for frame in _frames(location):
        found = file_location(frame)
        if found is not None and not _IN_TORCH.search(found.filename):
            return describe_location(found)
    return describe_location(location)


def _frames(location: ir.Location) -> Iterator[ir.Location]:
    """The frames of a call stack, the innermost first."""
    if isinstance(location, ir.NameLoc):
        yield from _frames(location.child_loc)
    elif isinstance(location, ir.CallSiteLoc):
        yield from _frames(location.callee)
        yield from _frames(location.caller)
    elif isinstance(location, ir.FusedLoc) and location.locations:
        yield from _frames(location.locations[0])
    else:
        yield location

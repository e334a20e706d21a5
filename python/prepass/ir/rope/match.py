# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recognizing a rotary embedding: pairs of channels, each turned by an angle that a table gives."""

from __future__ import annotations

from iree.compiler import ir

from prepass.ir.rope.operands import FLOATS
from prepass.ir.rope.partial import match_partial
from prepass.ir.rope.reading import match_reading
from prepass.ir.rope.rotation import NotARotation, Rotation
from prepass.ir.rope.terms import may_be_sum


def match_rotation(value: ir.Value) -> Rotation | None:
    """The rotation that computes `value`, None when it is nothing like one.

    Raises NotARotation when it is like one and is not, or is one that no form here can express.
    """
    if not isinstance(value.type, ir.RankedTensorType):
        return None
    type_ = ir.RankedTensorType(value.type)
    if not type_.rank or not isinstance(type_.element_type, FLOATS):
        return None
    if not may_be_sum(value):
        return None
    miss: NotARotation | None = None
    for interleaved in (False, True):
        try:
            rotation = match_reading(value, interleaved)
        except NotARotation as found:
            miss = miss or found
        else:
            if rotation is not None:
                return rotation
    if miss is not None:
        raise miss
    return match_partial(value)

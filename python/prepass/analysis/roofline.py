# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long dispatches take at least, if nothing but memory and arithmetic limits them.

An estimate from peak rates; nothing is run, and no kernel reaches it. It knows nothing of
launches, of what stays in caches between dispatches, or of how well a kernel fills the GPU.
Source: Williams, Waterman, Patterson, "Roofline: An Insightful Visual Performance Model", 2009.
"""

from __future__ import annotations

from prepass.amdgpu.machine import Machine
from prepass.analysis.dispatches import Dispatch

_MEMORY = "HBM"


def roofline_seconds(dispatch: Dispatch, machine: Machine) -> dict[str, float]:
    """The seconds that each unit is busy at its peak rate; the longest bounds the dispatch.

    Factors of a type that the matrix cores do not have are multiplied by the vector ALUs, in f32.
    """
    cost = dispatch.cost
    element = dispatch.element if dispatch.element in machine.matrix_flops else None
    matrix = cost.matrix_flops / machine.peak_flops(element)
    vector = cost.vector_flops / machine.peak_flops(None)
    memory = cost.bytes / machine.bandwidths[_MEMORY]
    if element is None:
        return {_MEMORY: memory, "VALU": matrix + vector}
    return {_MEMORY: memory, "MFMA": matrix, "VALU": vector}

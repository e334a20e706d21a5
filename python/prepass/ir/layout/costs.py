# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What it costs to bring a tensor into another layout."""

from __future__ import annotations

import math

from iree.compiler import ir

from prepass.ir.expressions import element_type, tensor_sizes
from prepass.ir.match import defining_op

_DYNAMIC_SIZE = 64  # A guess: only how costs compare matters.
_DEPTH = 16


def cost(value: ir.Value) -> float:
    """The bits that are moved, none where that is done when the program is loaded."""
    if is_constant(value):
        return 0.0
    elements = math.prod(_DYNAMIC_SIZE if size is None else size for size in tensor_sizes(value))
    element = element_type(value)
    return float(elements * (element.width if isinstance(element, (ir.IntegerType, ir.FloatType)) else 64))


def is_constant(value: ir.Value, depth: int = _DEPTH) -> bool:
    """Whether a value is known once the program is loaded: weights, and what is computed of nothing else."""
    op = defining_op(value)
    if op is None or depth == 0:
        return False
    if op.name in ("arith.constant", "tensor.empty", "util.global.load"):
        return True
    pure = op.name.split(".")[0] in ("linalg", "tensor", "arith", "math")
    return pure and all(is_constant(operand, depth - 1) for operand in op.operands)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions that add onto a bias: the bias is added behind them, where it loses its unit dims with what follows.

IREE does the same, but not through the reshape that would be between the two; it leaves them in one dispatch then.
Where sizes are no multiples of a tile, IREE 3.13 does not compile some of these for gfx942. Where they are, they take
less memory: the decoder of the VAE of SDXL 369 MB, not 470.
"""

from __future__ import annotations

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg

from prepass.ir.elementwise import empty_like, is_elementwise
from prepass.ir.emit import constant, generic
from prepass.ir.expressions import element_type, tensor_sizes
from prepass.ir.layout.convolutions import read_convolution
from prepass.ir.match import defining_op

_TILE = 16


def adds_onto_bias(op: ir.Operation) -> bool:
    """Whether `op` is a convolution of floats with unit dims and uneven sizes that starts from what is elementwise."""
    if not op.name.startswith("linalg.") or len(op.results) != 1 or read_convolution(op) is None:
        return False
    bias = defining_op(op.operands[-1])
    if bias is None or bias.name == "linalg.fill" or not is_elementwise(bias):
        return False
    sizes = tensor_sizes(op.result)
    uneven = any(size is None or size % _TILE for size in sizes if size != 1)
    return 1 in sizes and uneven and not isinstance(element_type(op.result), ir.IntegerType)


def add_bias_behind(op: ir.Operation) -> None:
    """Let a convolution start from zeros, and add what it started from to its result."""
    bias, result = op.operands[-1], op.result
    with ir.InsertionPoint(op), op.location:
        op.operands[-1] = linalg.fill(constant(0.0, element_type(result)), outs=[empty_like(bias, element_type(bias))])
    maps = [ir.AffineMap.get_identity(ir.RankedTensorType(result.type).rank)] * 3
    with ir.InsertionPoint.after(op), op.location:
        init = empty_like(result, element_type(result))
        total = generic([result, bias], init, maps, lambda values: arith.addf(values[0], values[1]))
    result.replace_all_uses_except(total, defining_op(total))

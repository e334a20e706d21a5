# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kinds of op that kernels compute."""

from __future__ import annotations

from iree.compiler import ir
from iree.compiler.dialects import linalg

from prepass.ir.attention.build import OP_NAME
from prepass.ir.kernels.kernel import OpKind


def _is_contraction(op: ir.Operation) -> bool:
    return op.name.startswith("linalg.") and len(op.results) == 1 and linalg.isa_contraction_op(op)


def _is_convolution(op: ir.Operation) -> bool:
    if not op.name.startswith("linalg.") or len(op.results) != 1 or not linalg.isa_convolution_op(op):
        return False
    # Pooling has the loops of a convolution, without filters.
    dimensions = linalg.infer_convolution_dimensions(op)
    return dimensions is not None and len(dimensions.input_channel) > 0


ATTENTION = OpKind("attention", lambda op: op.name == OP_NAME)
CONTRACTION = OpKind("contraction", _is_contraction)
CONVOLUTION = OpKind("convolution", _is_convolution)

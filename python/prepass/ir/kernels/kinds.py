# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kinds of op that kernels compute.

What recognizes them is imported when it is first asked: it loads the definitions of all linalg ops, which takes as long
as the rest of prepass, and the registry, which every program reads, needs the names alone.
"""

from __future__ import annotations

from iree.compiler import ir

from prepass.ir.kernels.kernel import OpKind


def _is_attention(op: ir.Operation) -> bool:
    from prepass.ir.attention.build import OP_NAME

    return op.name == OP_NAME


def _is_contraction(op: ir.Operation) -> bool:
    from iree.compiler.dialects import linalg

    return op.name.startswith("linalg.") and len(op.results) == 1 and linalg.isa_contraction_op(op)


def _is_convolution(op: ir.Operation) -> bool:
    from iree.compiler.dialects import linalg

    if not op.name.startswith("linalg.") or len(op.results) != 1 or not linalg.isa_convolution_op(op):
        return False
    # Pooling has the loops of a convolution, without filters.
    dimensions = linalg.infer_convolution_dimensions(op)
    return dimensions is not None and len(dimensions.input_channel) > 0


ATTENTION = OpKind("attention", _is_attention)
CONTRACTION = OpKind("contraction", _is_contraction)
CONVOLUTION = OpKind("convolution", _is_convolution)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that tuning tables speak of: which they are, and what of them a table is keyed by."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from iree.compiler import ir
from iree.compiler.dialects import linalg

from prepass.ir.attention.build import OP_NAME
from prepass.ir.attention.read import read_attention_shape
from prepass.ir.targets.linalg_shape import contraction_loops, read_linalg_shape
from prepass.ir.targets.tuning_table import ATTENTION, CONTRACTION, CONVOLUTION, Shape

_READERS: Mapping[str, Callable[[ir.Operation], Shape]] = {
    ATTENTION: read_attention_shape,
    CONTRACTION: read_linalg_shape,
    CONVOLUTION: read_linalg_shape,
}


def tuned_kind(op: ir.Operation) -> str | None:
    """The kind of an op in tuning tables, None where it is of none."""
    if op.name == OP_NAME:
        return ATTENTION
    if not op.name.startswith("linalg.") or not op.results:
        return None
    if linalg.isa_convolution_op(op):
        # Pooling has the loops of a convolution, without filters.
        dimensions = linalg.infer_convolution_dimensions(op)
        return CONVOLUTION if dimensions is not None and len(dimensions.input_channel) > 0 else None
    return CONTRACTION if _is_contraction(op) else None


def read_tuned_shape(kind: str, op: ir.Operation) -> Shape:
    """What a table is keyed by, of an op of a kind. Raises NoMatch where the op is not what the kind is for."""
    return _READERS[kind](op)


def _is_contraction(op: ir.Operation) -> bool:
    if len(op.results) == 1:
        return linalg.isa_contraction_op(op)
    # Of one operand with several: as many products, each added up.
    body = [inner.operation.name for inner in op.regions[0].blocks[0]]
    sums = sorted(name for name in body if name in ("arith.addf", "arith.mulf"))
    several = sums == ["arith.addf"] * len(op.results) + ["arith.mulf"] * len(op.results)
    return several and op.name == "linalg.generic" and contraction_loops(read_linalg_shape(op)) is not None

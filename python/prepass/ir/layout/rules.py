# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is done with ops that stand between convolutions, by kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import linalg

from prepass.ir.expressions import indexing_maps
from prepass.ir.layout import slices, structured, views
from prepass.ir.layout.layouts import Operand
from prepass.ir.layout.shapes import Shapes

__all__ = ["Operand", "Rules", "find_rules"]


@dataclass(frozen=True)
class Rules:
    """What is done with ops of a kind.

    Attributes:
      link: Says which dims of operands and results are the same axis.
      check: Raises NoMatch where an op cannot follow, once it is known what goes last.
      build: The op on operands in their layouts.
    """

    link: Callable[[ir.Operation, Shapes], None]
    check: Callable[[ir.Operation, Shapes], None]
    build: Callable[[ir.Operation, Shapes, Operand], list[ir.Value]]


_STRUCTURED = Rules(structured.link, structured.check, structured.build)
_RESHAPE = Rules(views.link, views.check, views.build)
_RULES = {
    "tensor.expand_shape": _RESHAPE,
    "tensor.collapse_shape": _RESHAPE,
    "tensor.pad": Rules(slices.link_pad, slices.check, slices.build_pad),
    "tensor.extract_slice": Rules(slices.link_slice, slices.check, slices.build_slice),
    "tensor.insert_slice": Rules(slices.link_slice, slices.check, slices.build_slice),
    "tensor.concat": Rules(slices.link_concat, slices.check, slices.build_concat),
}


def find_rules(op: ir.Operation) -> Rules | None:
    """What is done with an op, or None where it keeps the layout that the program gives it."""
    if op.name in _RULES:
        return _RULES[op.name]
    if not op.name.startswith("linalg.") or len(op.regions) != 1 or not len(op.results):
        return None
    if not all(isinstance(result.type, ir.RankedTensorType) for result in op.results):
        return None
    # The layout of a contraction is that of its weights, or it was given for a reason.
    return None if indexing_maps(op) is None or linalg.isa_contraction_op(op) else _STRUCTURED

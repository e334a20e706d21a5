# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linalg ops that add up: contractions, convolutions and sums, named or generic."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from iree.compiler import ir
from iree.compiler.dialects import linalg

from prepass.ir.casts.widen import cast, is_float, widen_body
from prepass.ir.elementwise import CASTS, cast_tensor, empty_like
from prepass.ir.expressions import element_type, indexing_maps, loop_sizes, result_map
from prepass.ir.match import NoMatch, defining_op, yielded

Kind = Literal["contraction", "convolution", "reduction"]

_SUMS = {"arith.addf", "arith.addi", "arith.subf", "arith.subi"}


@dataclass(frozen=True)
class Sum:
    """A linalg op that adds to its init.

    Attributes:
      accumulator: The element type of the result, in which it adds.
      count: How many terms there are for each element of the result, None where that is dynamic.
    """

    op: ir.Operation
    kind: Kind
    accumulator: ir.Type
    count: int | None

    @property
    def is_of_one_tensor(self) -> bool:
        """Whether all terms come from one tensor, as in a mean or a sum of squares."""
        inputs = set(list(self.op.operands)[:-1])
        return self.kind == "reduction" or (self.kind == "contraction" and len(inputs) == 1)


def reduces(op: ir.Operation) -> bool:
    """Whether `op` is a linalg op on tensors with a reduction loop."""
    if not op.name.startswith("linalg.") or len(op.regions) != 1 or not len(op.results):
        return False
    written = result_map(op, len(op.results) - 1)
    return written is not None and len(_kept(written)) < written.n_dims


def match_sum(op: ir.Operation) -> Sum:
    """Read an op that `reduces`; raises NoMatch when it does not add up, or adds up several results."""
    if len(op.results) != 1:
        raise NoMatch("it has several results", op)
    block = op.regions[0].blocks[0]
    combiner = _below_casts(yielded(op)[0])
    if combiner is None or combiner.operation.block != block:
        raise NoMatch("it adds nothing to its result", op)
    accumulator = block.arguments[len(block.arguments) - 1]
    if combiner.name not in _SUMS:
        raise NoMatch(f"{combiner.name} is no sum", op)
    terms = [_strip_casts(operand) == accumulator for operand in combiner.operands]
    signed = combiner.name in ("arith.subf", "arith.subi")
    if sum(terms) != 1 or (signed and not terms[0]) or _reads(accumulator) > 1:
        raise NoMatch("the running sum is used for more than adding to it", op)
    return Sum(op, _kind(op), element_type(op.result), _count(op))


def build_wide_sum(found: Sum, inputs: Sequence[ir.Value], wide: ir.Type) -> ir.Value:
    """A sum that accumulates in the type `wide`, at the current insertion point; inputs are narrow or wide."""
    op = found.op
    operands = [*inputs, _build_init(op.operands[-1], wide)]
    return build_like(op, operands, lambda arguments: widen_body(op, arguments, found.accumulator, wide))


def _build_init(init: ir.Value, wide: ir.Type) -> ir.Value:
    op = defining_op(init)
    if op is not None and op.name == "tensor.empty":
        return empty_like(init, wide)
    if op is None or op.name != "linalg.fill":
        return cast_tensor(init, wide)
    scalar = defining_op(op.operands[0])
    empty = empty_like(op.operands[1], wide)
    if scalar is not None and scalar.name == "arith.constant":
        kind = ir.FloatAttr if is_float(wide) else ir.IntegerAttr
        attribute = kind.get(wide, kind(scalar.attributes["value"]).value)
        fill = ir.Operation.create("arith.constant", [wide], attributes={"value": attribute}).result
    else:
        fill = cast(op.operands[0], wide)
    return build_like(op, [fill, empty], lambda arguments: [arguments[0]])


def build_like(
    op: ir.Operation, operands: Sequence[ir.Value], body: Callable[[Sequence[ir.Value]], Sequence[ir.Value]]
) -> ir.Value:
    """A linalg op as `op` with other operands, one result of the type of the last, and another body."""
    attributes = {name: op.attributes[name] for name in op.attributes}
    made = ir.Operation.create(op.name, [operands[-1].type], operands, attributes, regions=1)
    types = [element_type(v) if isinstance(v.type, ir.RankedTensorType) else v.type for v in operands]
    block = made.regions[0].blocks.append(*types, arg_locs=[op.location] * len(types))
    with ir.InsertionPoint(block):
        ir.Operation.create("linalg.yield", [], body(block.arguments))
    return made.result


def _kind(op: ir.Operation) -> Kind:
    if op.name.startswith("linalg.pooling"):
        return "reduction"
    if linalg.isa_contraction_op(op):
        return "contraction"
    return "convolution" if linalg.isa_convolution_op(op) else "reduction"


def _count(op: ir.Operation) -> int | None:
    maps, sizes = indexing_maps(op) or [], loop_sizes(op)
    reduced = [size for dim, size in enumerate(sizes) if dim not in _kept(maps[-1])]
    return None if None in reduced else math.prod(size for size in reduced if size is not None)


def _kept(result_map: ir.AffineMap) -> set[int]:
    return {expr.position for expr in result_map.results if isinstance(expr, ir.AffineDimExpr)}


def _reads(value: ir.Value) -> int:
    return sum(1 for _ in value.uses)


def _strip_casts(value: ir.Value) -> ir.Value:
    while (op := defining_op(value)) is not None and op.name in CASTS:
        value = op.operands[0]
    return value


def _below_casts(value: ir.Value) -> ir.Operation | None:
    return defining_op(_strip_casts(value))

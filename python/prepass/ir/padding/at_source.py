# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Padding a tensor where that costs least: in what it is computed from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.axes import Axis, index_leaves, leaves
from prepass.ir.elementwise import clone_body, has_plain_body
from prepass.ir.emit import constant, pad_high
from prepass.ir.expressions import (
    Read,
    as_constant,
    element_type,
    expand,
    indexing_maps,
    loop_groups,
    loop_sizes,
    scalar_expr,
    tensor_sizes,
)
from prepass.ir.match import defining_op, has_one_user
from prepass.ir.sums import build_like

Build = Callable[[], ir.Value]

_RESHAPES = ("tensor.expand_shape", "tensor.collapse_shape")
# Of zeros and finite numbers these make finite numbers.
_FINITE = {"arith.addf", "arith.subf", "arith.mulf", "arith.negf", "arith.extf", "arith.truncf", "linalg.yield"}


def pad_at_source(value: ir.Value, dim: int, amount: int) -> ir.Value:
    """`value` with `amount` more elements at the end of a static dim, at the current insertion point.

    What they are is not said, but that they are finite. The padding moves up through ops that only `value` is computed
    by: reshapes, transposes, casts, sums with a bias, and contractions, which get more rows. So what is copied is what
    the contraction reads, and values that are computed from one tensor share the copy.
    """
    index = tuple((Axis(size),) for size in tensor_sizes(value))
    (axis,) = index[dim]
    build = _Padding(axis, tensor_sizes(value)[dim] + amount).plan(Read(value, index))
    return build() if build else pad_high(value, dim, amount, constant(0.0, element_type(value)))


@dataclass(frozen=True)
class _Padding:
    """The axis that gets longer, and how long."""

    axis: Axis
    extent: int

    def plan(self, read: Read) -> Build | None:
        """How to build `read.value` with the axis padded; None when it cannot be, here or above."""
        if self.axis not in index_leaves(read.index):
            return lambda: read.value
        op = defining_op(read.value)
        build = None
        if op is not None and has_one_user(read.value):
            build = self._plan_reshape(op, read) if op.name in _RESHAPES else self._plan_linalg(op, read)
        return build or self._plan_here(read)

    def _plan_here(self, read: Read) -> Build | None:
        dims = [dim for dim, group in enumerate(read.index) if leaves(group) == (self.axis,)]
        if not dims:
            return None  # The axis is in a dim with others, or in parts.
        amount = self.extent - (self.axis.extent or 0)
        return lambda: pad_high(read.value, dims[0], amount, constant(0.0, element_type(read.value)))

    def _plan_reshape(self, op: ir.Operation, read: Read) -> Build | None:
        source = expand(read)
        inner = self.plan(source) if isinstance(source, Read) else None
        if inner is None:
            return None

        def build() -> ir.Value:
            type_ = self._type(read)
            attributes = {name: op.attributes[name] for name in op.attributes}
            if "static_output_shape" in attributes:
                attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(type_.shape)
            return ir.Operation.create(op.name, [type_], [inner(), *list(op.operands)[1:]], attributes).result

        return build

    def _plan_linalg(self, op: ir.Operation, read: Read) -> Build | None:
        groups = loop_groups(op, read)
        if groups is None or len(op.results) != 1 or not _stays_finite(op):
            return None
        # Of a reduction, which is not along the axis, any axis will do.
        loops = [group or (Axis(size),) for group, size in zip(groups, loop_sizes(op), strict=True)]
        reads = [
            Read(
                operand,
                tuple(loops[expr.position] if isinstance(expr, ir.AffineDimExpr) else () for expr in map_.results),
            )
            for operand, map_ in zip(op.operands, indexing_maps(op) or [], strict=True)
        ]
        longer = [number for number, part in enumerate(reads[:-1]) if self.axis in index_leaves(part.index)]
        if len(longer) != 1 or not _is_plain_init(op.operands[-1]):
            return None
        inner = self.plan(reads[longer[0]])
        if inner is None:
            return None

        def build() -> ir.Value:
            operands = list(op.operands)
            operands[longer[0]] = inner()
            operands[-1] = self._init(Read(op.operands[-1], reads[-1].index))
            block = op.regions[0].blocks[0]
            return build_like(op, operands, lambda new: clone_body(op, dict(zip(block.arguments, new, strict=True))))

        return build

    def _init(self, read: Read) -> ir.Value:
        op = defining_op(read.value)
        if op is not None and op.name == "linalg.fill":
            empty = self._init(Read(op.operands[1], read.index))
            return build_like(op, [op.operands[0], empty], lambda new: [new[0]])
        sizes = list(op.operands) if op is not None else []
        return ir.Operation.create("tensor.empty", [self._type(read)], sizes).result

    def _type(self, read: Read) -> ir.RankedTensorType:
        type_ = ir.RankedTensorType(read.value.type)
        shape = [
            size // (self.axis.extent or 1) * self.extent if self.axis in leaves(group) else size
            for size, group in zip(type_.shape, read.index, strict=True)
        ]
        return ir.RankedTensorType.get(shape, type_.element_type)


def _is_plain_init(value: ir.Value) -> bool:
    """Whether an op starts from nothing, or from a finite number."""
    op = defining_op(value)
    if op is not None and op.name == "linalg.fill":
        return _is_finite(op.operands[0]) and _is_plain_init(op.operands[1])
    return op is not None and op.name == "tensor.empty"


def _stays_finite(op: ir.Operation) -> bool:
    """Whether the body of a linalg op makes finite numbers of such."""
    if not has_plain_body(op):
        return False
    block = op.regions[0].blocks[0]
    known = set(block.arguments)
    for inner in (view.operation for view in block.operations):
        if inner.name not in _FINITE or not all(value in known or _is_finite(value) for value in inner.operands):
            return False
        known.update(inner.results)
    return True


def _is_finite(value: ir.Value) -> bool:
    number = as_constant(scalar_expr(value))
    return number is not None and math.isfinite(number)

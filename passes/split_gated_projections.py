# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Split a projection whose slices meet again, as in GEGLU and SwiGLU, so that the gate fuses with it.

A gated feed-forward block computes the value and the gate in one projection and cuts its result in two. An elementwise
op that reads two slices of one tensor cannot be fused with what computes that, so the gate is a dispatch of its own,
which reads all of the projection's result and writes half as much. Of two projections the second takes the gate into
its dispatch.

Before:

    %both = linalg.batch_matmul ins(%x, %w : tensor<2x1024x640xf16>, tensor<2x640x5120xf16>) ...
    %biased = linalg.generic ... ins(%both, %bias : ...) { ... } -> tensor<2x1024x5120xf16>
    %value = tensor.extract_slice %biased[0, 0, 0] [2, 1024, 2560] [1, 1, 1] : ...
    %gate = tensor.extract_slice %biased[0, 0, 2560] [2, 1024, 2560] [1, 1, 1] : ...
    %gated = linalg.generic ... ins(%value, %gate : ...) { ... }

After:

    %w0 = tensor.extract_slice %w[0, 0, 0] [2, 640, 2560] [1, 1, 1] : ...
    %b0 = tensor.extract_slice %bias[0] [2560] [1] : ...
    %product = linalg.generic ... ins(%x, %w0 : tensor<2x1024x640xf16>, tensor<2x640x2560xf16>) { ... }
    %value = linalg.generic ... ins(%product, %b0 : ...) { ... } -> tensor<2x1024x2560xf16>
    (the same for %gate)
    %gated = linalg.generic ... ins(%value, %gate : ...) { ... }

The contractions become generics that read through transposes and broadcasts of weights, so that those are cut as they
are stored, and the cuts are offsets of what the dispatches load. Every number stays what it was.

Left alone when

- the slices do not meet in an elementwise op: those of queries, keys and values are better off in one projection;
- the slices are not static cuts along one dim;
- its result is read otherwise than in slices too;
- a weight that is to be cut has a dynamic shape;
- it accumulates onto a tensor, as a projection does not.

Source: https://arxiv.org/abs/2002.05202
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import linalg

from prepass.ir.elementwise import (
    clone_body,
    compose,
    empty_like,
    has_plain_body,
    is_elementwise,
    meet,
    moves_only,
    tensor_inputs,
    walk_tensor_ops,
)
from prepass.ir.emit import erase_dead_producers, generic, slice_dim
from prepass.ir.expressions import element_type, indexing_maps, tensor_sizes
from prepass.ir.match import NoMatch, defining_op, has_one_user
from prepass.ir.sums import build_like, reduces
from prepass.pipeline.base import Pass, PassContext


@dataclass(frozen=True)
class _Cut:
    """Elements `offset` to `offset + size` along `dim`."""

    dim: int
    offset: int
    size: int


@dataclass(frozen=True)
class _Projection:
    """A contraction, the elementwise ops after it, and the slices of what they give."""

    ops: tuple[ir.Operation, ...]
    slices: tuple[tuple[ir.Operation, _Cut], ...]


def _match_projection(op: ir.Operation) -> _Projection | None:
    """Read a contraction whose result is cut; None when it is not."""
    if not reduces(op) or not linalg.isa_contraction_op(op):
        return None
    ops = [op]
    while has_one_user(ops[-1].result) and _passes(user := next(iter(ops[-1].result.uses)).owner.operation):
        ops.append(user)
    users = [use.owner.operation for use in ops[-1].result.uses]
    if not any(user.name == "tensor.extract_slice" for user in users):
        return None
    if not all(user.name == "tensor.extract_slice" for user in users):
        raise NoMatch("its result is read otherwise than in slices too", op)
    cuts = [_match_cut(user) for user in users]
    if len({cut.dim for cut in cuts}) != 1:
        raise NoMatch("the slices are not static cuts along one dim", op)
    if not meet([user.result for user in users]):
        raise NoMatch("the slices do not meet in an elementwise op", op)
    for cut in cuts:
        _match_sliceable(ops[-1], cut, ops)
    return _Projection(tuple(ops), tuple(zip(users, cuts, strict=True)))


def _passes(op: ir.Operation) -> bool:
    return is_elementwise(op) and has_plain_body(op)


def _match_cut(op: ir.Operation) -> _Cut:
    offsets, sizes, strides = (
        list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("offsets", "sizes", "strides")
    )
    shape = tensor_sizes(op.operands[0])
    dims = [dim for dim, size in enumerate(sizes) if size != shape[dim]]
    static = len(op.operands) == 1 and all(stride == 1 for stride in strides) and len(dims) == 1
    if not static or ir.RankedTensorType(op.result.type).rank != len(shape):
        raise NoMatch("the slices are not static cuts along one dim", op)
    (dim,) = dims
    return _Cut(dim, offsets[dim], sizes[dim])


def _operands(op: ir.Operation) -> list[tuple[ir.Value, ir.AffineMap]]:
    """What a linalg op reads and where, behind transposes and broadcasts."""
    operands = []
    for value, map_ in zip(tensor_inputs(op), indexing_maps(op) or [], strict=False):
        while (mover := defining_op(value)) is not None and is_elementwise(mover) and moves_only(mover):
            value, map_ = mover.operands[0], compose((indexing_maps(mover) or [])[0], map_)
        operands.append((value, map_))
    return operands


def _cuts(op: ir.Operation, cut: _Cut) -> list[_Cut | None]:
    """How each operand of a linalg op is to be cut so that its result is."""
    loop = (indexing_maps(op) or [])[-1].results[cut.dim]
    cuts: list[_Cut | None] = []
    for _, map_ in _operands(op):
        dims = [dim for dim, expr in enumerate(map_.results) if expr == loop]
        cuts.append(_Cut(dims[0], cut.offset, cut.size) if dims else None)
    return cuts


def _match_sliceable(op: ir.Operation, cut: _Cut, ops: Sequence[ir.Operation]) -> None:
    init = defining_op(op.operands[-1])
    if op == ops[0] and (init is None or init.name != "linalg.fill"):
        raise NoMatch("it accumulates onto a tensor", op)
    for (value, _), part in zip(_operands(op), _cuts(op, cut), strict=True):
        producer = defining_op(value)
        if part is None:
            continue
        if producer is not None and producer in ops:
            _match_sliceable(producer, part, ops)
        elif None in tensor_sizes(value):
            raise NoMatch("a weight that is to be cut has a dynamic shape", ops[0])


def _build_slice(op: ir.Operation, cut: _Cut, ops: Sequence[ir.Operation]) -> ir.Value:
    """A slice of the result of one of `ops`, computed from slices of what it reads."""
    inputs: list[ir.Value] = []
    for (value, _), part in zip(_operands(op), _cuts(op, cut), strict=True):
        producer = defining_op(value)
        if part is None:
            inputs.append(value)
        elif producer is not None and producer in ops:
            inputs.append(_build_slice(producer, part, ops))
        else:
            inputs.append(slice_dim(value, part.dim, part.offset, part.size))
    arguments = op.regions[0].blocks[0].arguments

    def body(new: Sequence[ir.Value]) -> ir.Value:
        (result,) = clone_body(op, dict(zip(arguments, new, strict=True)))
        return result

    maps = [*(map_ for _, map_ in _operands(op)), (indexing_maps(op) or [])[-1]]
    return generic(inputs, _build_init(op.operands[-1], cut), maps, body)


def _build_init(value: ir.Value, cut: _Cut) -> ir.Value:
    """What the result of a slice is written over: nothing, or the number that the whole is filled with."""
    op = defining_op(value)
    empty = empty_like(value, element_type(value))
    type_ = ir.RankedTensorType(value.type)
    shape = [cut.size if dim == cut.dim else size for dim, size in enumerate(type_.shape)]
    result = ir.RankedTensorType.get(shape, type_.element_type)
    part = ir.Operation.create("tensor.empty", [result], list(defining_op(empty).operands)).result
    if op is None or op.name != "linalg.fill":
        return part
    return build_like(op, [op.operands[0], part], lambda new: [new[0]])


@dataclass(frozen=True)
class SplitGatedProjectionsPass(Pass):
    """Split a projection whose slices meet again, so that the gate fuses with it."""

    name = "prepass-split-gated-projections"
    dependent_dialects = ("arith", "linalg", "math", "tensor")

    def run(self, op: ir.Operation, context: PassContext) -> None:
        for candidate, projection in context.matches(walk_tensor_ops(op), _match_projection):
            context.applied(candidate, f"split in {len(projection.slices)}")
            context.count("split")
            for slice_op, cut in projection.slices:
                with ir.InsertionPoint(slice_op), candidate.location:
                    value = _build_slice(projection.ops[-1], cut, projection.ops)
                slice_op.result.replace_all_uses_with(value)
            erase_dead_producers([slice_op.result for slice_op, _ in projection.slices])

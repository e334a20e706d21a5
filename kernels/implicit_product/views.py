# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of a dispatch as memory: which binding they are in, and where each element is."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.match import NoMatch, defining_op

_LOAD, _STORE = "iree_tensor_ext.dispatch.tensor.load", "iree_tensor_ext.dispatch.tensor.store"
_SUBSPAN = "hal.interface.binding.subspan"
# The type has no accessors in Python.
_DISPATCH_TENSOR = re.compile(r"!iree_tensor_ext\.dispatch\.tensor<(\w+):(tensor<.*>)>$")


@dataclass(frozen=True)
class View:
    """A tensor in memory.

    Attributes:
      binding: The `hal.interface.binding.subspan` that it is part of.
      elements: How many elements the binding has.
      element: Their type.
      offset: Of the first element, in elements of the binding.
      sizes: Of the tensor.
      pitches: From one position to the next along each dim, in elements.
    """

    binding: ir.Operation
    elements: int
    element: ir.Type
    offset: int
    sizes: tuple[int, ...]
    pitches: tuple[int, ...]


def loaded_view(value: ir.Value) -> View:
    """The memory that a tensor was loaded from. Raises NoMatch for one that was computed."""
    op = defining_op(value)
    if op is None or op.name != _LOAD:
        raise NoMatch("an operand is computed in the same dispatch", op or ir.Block(value.owner).owner)
    return _view(op, op.operands[0], "readonly")


def stored_view(store: ir.Operation) -> View:
    """The memory that a `dispatch.tensor.store` writes. Raises NoMatch."""
    return _view(store, store.operands[1], "writeonly")


def is_store(op: ir.Operation) -> bool:
    """Whether an op writes a result of the dispatch."""
    return op.name == _STORE


def is_memory_op(op: ir.Operation) -> bool:
    """Whether an op is a binding, a load from one or a store to one."""
    return op.name in (_SUBSPAN, _LOAD, _STORE)


def _view(op: ir.Operation, source: ir.Value, access: str) -> View:
    binding = defining_op(source)
    parsed = _DISPATCH_TENSOR.match(str(source.type))
    if binding is None or binding.name != _SUBSPAN or parsed is None:
        raise NoMatch("a tensor is in no binding", op)
    if parsed[1] != access:
        # What is read and written again elsewhere cannot be written twice, as at the edges it is.
        raise NoMatch(f"a binding is {parsed[1]}, not {access}", op)
    type_ = ir.RankedTensorType(ir.Type.parse(parsed[2]))
    offsets, sizes, strides = (
        list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("offsets", "sizes", "strides")
    )
    dynamic = ir.ShapedType.get_dynamic_size()
    if dynamic in (*type_.shape, *offsets, *sizes, *strides):
        raise NoMatch("a shape is dynamic", op)
    pitches = [math.prod(type_.shape[dim + 1 :]) for dim in range(type_.rank)]
    offset = sum(at * pitch for at, pitch in zip(offsets, pitches, strict=True))
    stepped = tuple(stride * pitch for stride, pitch in zip(strides, pitches, strict=True))
    kept = _kept_dims(op, sizes)
    return View(
        binding,
        math.prod(type_.shape),
        type_.element_type,
        offset,
        tuple(sizes[dim] for dim in kept),
        tuple(stepped[dim] for dim in kept),
    )


def _kept_dims(op: ir.Operation, sizes: list[int]) -> list[int]:
    """The dims that the tensor has: a load or a store may leave out dims of size 1."""
    tensor = ir.RankedTensorType((op.operands[0] if is_store(op) else op.results[0]).type)
    wanted, kept = list(tensor.shape), []
    for dim, size in enumerate(sizes):
        if len(kept) < len(wanted) and size == wanted[len(kept)]:
            kept.append(dim)
        elif size != 1:
            raise NoMatch("a load does not keep its dims", op)
    if len(kept) != len(wanted):
        raise NoMatch("a load does not keep its dims", op)
    return kept

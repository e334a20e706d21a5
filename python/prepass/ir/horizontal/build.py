# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Building contractions with one or several results, and the elementwise op after them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg

from prepass.ir.axes import Index, resolve
from prepass.ir.casts.widen import cast
from prepass.ir.emit import Extents, constant, emit_scalar, empty, generics
from prepass.ir.expressions import Expr, Read
from prepass.ir.horizontal.weights import Weights
from prepass.ir.match import defining_op

_VIEWS_OF_CONSTANTS = ("tensor.extract_slice", "tensor.expand_shape", "tensor.collapse_shape")


@dataclass(frozen=True)
class Laid:
    """A tensor with one loop a dim."""

    value: ir.Value
    dims: Index


@dataclass(frozen=True)
class Computed:
    """An elementwise result: its expression, of which type it is, and how it is to be laid out."""

    expr: Expr
    element: ir.Type
    dims: Index


def build_contraction(
    loops: Index,
    shared: Laid,
    weights: Sequence[Laid],
    results: Sequence[Index],
    accumulator: ir.Type,
    extents: Extents,
) -> list[Laid]:
    """The contractions of `shared` with each weight, in one op; weight and result go in pairs."""
    zero = constant(0.0, accumulator)
    fills = {}
    for dims in dict.fromkeys(results):
        fills[dims] = linalg.fill(zero, outs=[empty(dims, accumulator, extents)])
    inits = [fills[dims] for dims in results]
    maps = [_map(loops, dims) for dims in (shared.dims, *(weight.dims for weight in weights), *results)]

    def body(arguments: Sequence[ir.Value]) -> list[ir.Value]:
        left = cast(arguments[0], accumulator)
        sums = []
        for weight, total in zip(arguments[1:], arguments[1 + len(weights) :], strict=False):
            sums.append(arith.addf(total, arith.mulf(left, cast(weight, accumulator))))
        return sums

    values = generics([shared.value, *(weight.value for weight in weights)], inits, maps, body)
    return [Laid(value, dims) for value, dims in zip(values, results, strict=True)]


def build_elementwise(
    loops: Index, reads: dict[tuple[ir.Value, Index], Laid], outputs: Sequence[Computed], extents: Extents
) -> list[Laid]:
    """Several elementwise results in one op; `reads` says which tensor holds what the expressions read."""
    tensors = list(dict.fromkeys(reads.values()))
    inits = [empty(output.dims, output.element, extents) for output in outputs]
    maps = [_map(loops, dims) for dims in (*(t.dims for t in tensors), *(output.dims for output in outputs))]

    def body(arguments: Sequence[ir.Value]) -> list[ir.Value]:
        elements = {key: arguments[tensors.index(laid)] for key, laid in reads.items()}
        return [emit_scalar(output.expr, elements) for output in outputs]

    values = generics([laid.value for laid in tensors], inits, maps, body)
    return [Laid(value, output.dims) for value, output in zip(values, outputs, strict=True)]


def read_key(read: Read) -> tuple[ir.Value, Index]:
    """How `emit_scalar` looks up a read."""
    return read.value, resolve(read.index)


def availability(before: ir.Operation, weights: Weights) -> Callable[[ir.Value], bool]:
    """Whether a value is there before an op, or comes from constants and parameters alone and can be moved there."""

    def available(value: ir.Value) -> bool:
        op = defining_op(value)
        # The order is asked for last: a block numbers its ops anew for it when some were moved.
        if op is None or weights.is_constant(value) or op.block != before.block or op.is_before_in_block(before):
            return True
        return op.name in _VIEWS_OF_CONSTANTS and all(map(available, op.operands))

    return available


def hoist(values: Iterable[ir.Value], before: ir.Operation) -> None:
    """Move what `availability` lets be moved among `values`, and what it reads, before an op."""
    # All are found before one is moved: a move makes a block number its ops anew when it is next asked for their order.
    for op in _ops_after(values, before):
        op.move_before(before)


def _ops_after(values: Iterable[ir.Value], before: ir.Operation) -> list[ir.Operation]:
    """What defines `values` and what that reads, as far as it is behind an op of the block, in order."""
    found: dict[ir.Operation, None] = {}
    for value in values:
        op = defining_op(value)
        if op is not None and op not in found and op.block == before.block and before.is_before_in_block(op):
            found.update(dict.fromkeys([*_ops_after(op.operands, before), op]))
    return list(found)


def _map(loops: Index, dims: Index) -> ir.AffineMap:
    return ir.AffineMap.get(len(loops), 0, [ir.AffineExpr.get_dim(loops.index(dim)) for dim in dims])

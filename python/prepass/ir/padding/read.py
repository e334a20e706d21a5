# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading a tensor as another one with a margin of one number, however that is written.

A filled tensor that another is inserted into, a concatenation with filled
tensors, pads, and any chain of these read alike.
"""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.exact import Number, same_number, scalar_constant, splat_constant
from prepass.ir.expressions import tensor_sizes
from prepass.ir.match import NoMatch, defining_op, yielded
from prepass.ir.padding.sizes import dim_size, excess


@dataclass(frozen=True)
class Splat:
    """A tensor of one number; None stands for any, the contents of `tensor.empty`."""

    number: Number | None


@dataclass(frozen=True)
class Padded:
    """`source` with `low` elements before it and `high` behind it in each dim, all of them `number`.

    A tensor as it is has no elements around it, and any number.
    """

    source: ir.Value
    low: tuple[int, ...]
    high: tuple[int, ...]
    number: Number | None

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing around the source."""
        return not any((*self.low, *self.high))


Reading = Splat | Padded


def read_padded(value: ir.Value) -> Reading:
    """What a tensor consists of. Raises NoMatch where it is padded in a way that is not understood."""
    op = defining_op(value)
    number = splat_constant(value)
    if number is not None:
        return Splat(number)
    match op.name if op is not None else "":
        case "tensor.empty":
            return Splat(None)
        case "linalg.fill":
            return _read_fill(op)
        case "tensor.pad":
            return _read_pad(op)
        case "tensor.insert_slice":
            return _read_insert(op)
        case "tensor.concat":
            return _read_concat(op)
    return _plain(value)


def _plain(value: ir.Value) -> Padded:
    none = (0,) * ir.RankedTensorType(value.type).rank
    return Padded(value, none, none, None)


def _read_fill(op: ir.Operation) -> Reading:
    number = scalar_constant(op.operands[0])
    if number is None:
        raise NoMatch("it is filled with a number that is not constant", op)
    return Splat(number)


def _read_pad(op: ir.Operation) -> Reading:
    number = pad_number(op)
    amounts = [ir.DenseI64ArrayAttr(op.attributes[name]) for name in ("static_low", "static_high")]
    if number is None or len(op.operands) > 1 or "nofold" in op.attributes:
        return _plain(op.results[0])
    low, high = (tuple(amount) for amount in amounts)
    if min(*low, *high, 0) < 0:
        return _plain(op.results[0])
    return _around(read_padded(op.operands[0]), low, high, number, op)


def pad_number(pad: ir.Operation) -> Number | None:
    """The constant that a `tensor.pad` pads with."""
    return scalar_constant(yielded(pad)[0])


def _read_insert(op: ir.Operation) -> Reading:
    target = read_padded(op.operands[1])
    if isinstance(target, Padded) and target.is_plain:
        return _plain(op.results[0])
    source = read_padded(op.operands[0])
    if isinstance(target, Splat) and isinstance(source, Splat):
        return Splat(_one_number(target.number, source.number, op))
    offsets, sizes, strides = (
        list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("offsets", "sizes", "strides")
    )
    if any(stride != 1 for stride in strides):
        raise NoMatch("the slice spreads its elements", op)
    if len(sizes) != ir.RankedTensorType(op.operands[0].type).rank:
        raise NoMatch("the slice has fewer dims than what it is inserted into", op)
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    if dynamic in offsets:
        raise NoMatch("where the slice goes is not known at compile time", op)
    values = iter(list(op.operands)[2:])
    spans = [next(values) if size == ir.ShapedType.get_dynamic_size() else size for size in sizes]
    high = tuple(_behind(op, dim, offset, span) for dim, (offset, span) in enumerate(zip(offsets, spans, strict=True)))
    return _insert(target, source, tuple(offsets), high, op)


def _behind(op: ir.Operation, dim: int, offset: int, span: ir.Value | int) -> int:
    more = excess(dim_size(op.operands[1], dim), span)
    if more is None:
        raise NoMatch("how much padding there is is not known at compile time", op)
    return more - offset


def _read_concat(op: ir.Operation) -> Reading:
    dim = ir.IntegerAttr(op.attributes["dim"]).value
    rank = ir.RankedTensorType(op.results[0].type).rank
    parts = [read_padded(operand) for operand in op.operands]
    if not any(isinstance(part, Splat) for part in parts):
        return _plain(op.results[0])
    sizes = [tensor_sizes(operand)[dim] for operand in op.operands]
    whole: Reading = Splat(None)
    for number, part in enumerate(parts):
        around = [sizes[:number], sizes[number + 1 :]]
        if isinstance(part, Splat):
            around.append([sizes[number]])
        if any(size is None for side in around for size in side):
            raise NoMatch("how much padding there is is not known at compile time", op)
        low, high = (
            tuple(sum(size or 0 for size in side) if d == dim else 0 for d in range(rank)) for side in around[:2]
        )
        whole = _insert(whole, part, low, high, op)
    return whole


def _insert(target: Reading, source: Reading, low: tuple[int, ...], high: tuple[int, ...], op: ir.Operation) -> Reading:
    """`source` written into `target`, with `low` and `high` elements of the target around it."""
    if isinstance(target, Splat):
        return _around(source, low, high, target.number, op)
    if isinstance(source, Padded):
        raise NoMatch("two tensors are put into it", op)
    if not _apart(target, low, high, op):
        raise NoMatch("what is inserted may cover a part of the tensor in it", op)
    return Padded(target.source, target.low, target.high, _one_number(target.number, source.number, op))


def _around(
    inner: Reading, low: tuple[int, ...], high: tuple[int, ...], number: Number | None, op: ir.Operation
) -> Reading:
    """More elements around what is read already."""
    if not any((*low, *high)):
        return inner
    common = _one_number(inner.number, number, op)
    if isinstance(inner, Splat):
        return Splat(common)
    return Padded(inner.source, _sums(inner.low, low), _sums(inner.high, high), common)


def _apart(target: Padded, low: tuple[int, ...], high: tuple[int, ...], op: ir.Operation) -> bool:
    """Whether a slice with these distances to the edges misses the source of `target` in some dim."""
    sizes = tensor_sizes(op.results[0])
    for dim, size in enumerate(sizes):
        if size is not None and (size - high[dim] <= target.low[dim] or low[dim] >= size - target.high[dim]):
            return True
    return False


def _one_number(a: Number | None, b: Number | None, op: ir.Operation) -> Number | None:
    if a is None or b is None:
        return b if a is None else a
    if not same_number(a, b):
        raise NoMatch("it is padded with more than one number", op)
    return a


def _sums(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(x + y for x, y in zip(a, b, strict=True))

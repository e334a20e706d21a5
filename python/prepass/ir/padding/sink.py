# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Moving padding behind elementwise ops and reshapes, towards the convolution that reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import linalg

from prepass.ir.elementwise import VIEWS, clone_body, has_plain_body, is_elementwise, tensor_inputs
from prepass.ir.emit import constant, dim_size, generic, pad
from prepass.ir.exact import Number, body_value, splat_constant
from prepass.ir.expressions import element_type, indexing_maps, reassociation, tensor_sizes
from prepass.ir.match import NoMatch, defining_op
from prepass.ir.padding.read import Padded, read_padded


@dataclass(frozen=True)
class Sinking:
    """Padding to be put behind `op`.

    Attributes:
      op: An elementwise linalg op, or a reshape.
      sources: What each input of `op` is padded from; a number for one that is of that number everywhere.
      low, high: The padding of the result.
      number: What the result is padded with.
    """

    op: ir.Operation
    sources: tuple[ir.Value | Number, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    number: Number


def slides(op: ir.Operation) -> bool:
    """Whether `op` is a convolution or a pooling, into which IREE fuses padding."""
    if not op.name.startswith("linalg.") or not len(op.regions) or not len(op.results):
        return False
    return op.name.startswith("linalg.pooling") or linalg.isa_convolution_op(op)


def reads_padding(op: ir.Operation) -> bool:
    """Whether an operand is padded."""
    return any(_is_pad(defining_op(operand)) for operand in op.operands)


def leads_to_window(value: ir.Value) -> bool:
    """Whether a convolution or a pooling reads `value`, directly or through what padding can move behind."""
    pending, seen = [value], set()
    while pending:
        for use in pending.pop().uses:
            user = use.owner.operation
            if user in seen:
                continue
            seen.add(user)
            if slides(user) and user.operands[0] == use.owner.operands[use.operand_number]:
                return True
            if user.name in VIEWS or is_elementwise(user):
                pending.append(user.results[0])
    return False


def match_sinking(op: ir.Operation) -> Sinking | None:
    """Read an op behind which padding can be put; None where it reads no padding. Raises NoMatch."""
    if op.name in ("tensor.expand_shape", "tensor.collapse_shape"):
        return _match_view(op)
    return _match_elementwise(op) if is_elementwise(op) else None


def _is_pad(op: ir.Operation | None) -> bool:
    return op is not None and op.name == "tensor.pad"


def _padding_of(value: ir.Value) -> Padded | None:
    if not _is_pad(defining_op(value)):
        return None
    reading = read_padded(value)
    return reading if isinstance(reading, Padded) and not reading.is_plain else None


def _match_view(op: ir.Operation) -> Sinking | None:
    padding = _padding_of(op.operands[0])
    if padding is None or padding.number is None:
        return None
    groups = reassociation(op)
    expands = op.name == "tensor.expand_shape"
    rank = ir.RankedTensorType(op.result.type).rank
    low, high = [0] * rank, [0] * rank
    for position, group in enumerate(groups):
        inner, outer = ([position], group) if expands else (group, [position])
        if any(padding.low[d] or padding.high[d] for d in inner):
            if len(group) > 1:
                raise NoMatch("a reshape splits or merges a dim that is padded", op)
            low[outer[0]], high[outer[0]] = padding.low[inner[0]], padding.high[inner[0]]
    return Sinking(op, (padding.source,), tuple(low), tuple(high), padding.number)


def _match_elementwise(op: ir.Operation) -> Sinking | None:
    inputs = tensor_inputs(op)
    paddings = [_padding_of(value) for value in inputs]
    if not any(paddings):
        return None
    if not has_plain_body(op) or any(inner.operation.name == "linalg.index" for inner in op.regions[0].blocks[0]):
        raise NoMatch("it computes with positions, which padding shifts", op)
    maps = indexing_maps(op) or []
    numbers: dict[int, Number] = {}
    amounts: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()
    for place, (value, padding) in enumerate(zip(inputs, paddings, strict=True)):
        number = padding.number if padding is not None else splat_constant(value)
        if number is not None:
            numbers[place] = number
        if padding is not None:
            amounts.add((_placed(padding.low, maps[place], op), _placed(padding.high, maps[place], op)))
    if len(amounts) != 1:
        raise NoMatch("its operands are padded differently", op)
    number = body_value(op, numbers)
    if number is None:
        raise NoMatch("what it makes of the padding is not one number that is known exactly", op)
    sources = [
        padding.source if padding is not None else numbers.get(place, value)
        for place, (value, padding) in enumerate(zip(inputs, paddings, strict=True))
    ]
    ((low, high),) = amounts
    return Sinking(op, tuple(sources), low, high, number)


def _placed(amounts: Sequence[int], map_: ir.AffineMap, op: ir.Operation) -> tuple[int, ...]:
    """Amounts of the dims of an operand, for the loops of an elementwise op."""
    placed = [0] * map_.n_dims
    for amount, expr in zip(amounts, map_.results, strict=True):
        if amount and not isinstance(expr, ir.AffineDimExpr):
            raise NoMatch("it reads a padded operand at one place", op)
        if amount:
            placed[expr.position] = amount
    return tuple(placed)


def build_sunk(sinking: Sinking) -> ir.Value:
    """The op on what was padded, and the padding behind it, at the current insertion point."""
    op = sinking.op
    inner = _build_view(sinking) if op.name in VIEWS else _build_elementwise(sinking)
    element = element_type(op.result)
    return pad(inner, sinking.low, sinking.high, constant(sinking.number, element), op.result.type)


def _unpadded(sinking: Sinking) -> list[int | None]:
    sizes = tensor_sizes(sinking.op.result)
    amounts = [low + high for low, high in zip(sinking.low, sinking.high, strict=True)]
    return [None if size is None else size - amount for size, amount in zip(sizes, amounts, strict=True)]


def _tensor_type(sizes: Sequence[int | None], element: ir.Type) -> ir.RankedTensorType:
    dynamic = ir.ShapedType.get_dynamic_size()
    return ir.RankedTensorType.get([dynamic if size is None else size for size in sizes], element)


def _build_view(sinking: Sinking) -> ir.Value:
    op, (source,) = sinking.op, sinking.sources
    sizes = _unpadded(sinking)
    attributes = {name: op.attributes[name] for name in op.attributes}
    operands = list(op.operands)[1:]
    if op.name == "tensor.expand_shape":
        type_ = _tensor_type(sizes, element_type(source))
        attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(type_.shape)
        dynamic = [dim for dim, size in enumerate(sizes) if size is None]
        groups = reassociation(op)
        for place, dim in enumerate(dynamic):
            if sinking.low[dim] or sinking.high[dim]:
                position = next(n for n, group in enumerate(groups) if dim in group)
                operands[place] = dim_size(source, position)
    return ir.Operation.create(
        op.name, [_tensor_type(sizes, element_type(source))], [source, *operands], attributes
    ).result


def _build_elementwise(sinking: Sinking) -> ir.Value:
    op = sinking.op
    maps = indexing_maps(op) or []
    places = [place for place, source in enumerate(sinking.sources) if isinstance(source, ir.Value)]
    inputs = [sinking.sources[place] for place in places]
    sizes = _unpadded(sinking)
    dynamic = [_loop_size(inputs, [maps[place] for place in places], dim) for dim, s in enumerate(sizes) if s is None]
    init = ir.Operation.create("tensor.empty", [_tensor_type(sizes, element_type(op.result))], dynamic).result
    arguments = op.regions[0].blocks[0].arguments

    def body(new: Sequence[ir.Value]) -> ir.Value:
        values = {arguments[place]: value for place, value in zip(places, new, strict=False)}
        for place, source in enumerate(sinking.sources):
            if not isinstance(source, ir.Value):
                values[arguments[place]] = constant(source, arguments[place].type)
        (result,) = clone_body(op, values)
        return result

    return generic(inputs, init, [*(maps[place] for place in places), maps[-1]], body)


def _loop_size(inputs: Sequence[ir.Value], maps: Sequence[ir.AffineMap], loop: int) -> ir.Value:
    for value, map_ in zip(inputs, maps, strict=True):
        for dim, expr in enumerate(map_.results):
            if expr == ir.AffineExpr.get_dim(loop):
                return dim_size(value, dim)
    raise ValueError("no operand has the size of the loop")

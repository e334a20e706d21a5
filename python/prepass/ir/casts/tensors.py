# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Casts of whole tensors: moving them to where they fuse, and data between in the narrow type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iree.compiler import ir

from prepass.ir.casts.widen import cast
from prepass.ir.elementwise import (
    VIEWS,
    cast_tensor,
    clone_body,
    empty_like,
    has_plain_body,
    is_elementwise,
    is_extension,
    is_truncation,
    moves_only,
    rebuild_view,
    tensor_inputs,
)
from prepass.ir.emit import generic
from prepass.ir.expressions import element_type, indexing_maps
from prepass.ir.match import NoMatch, defining_op, has_one_user, yielded
from prepass.ir.sums import Sum, build_like, match_sum, reduces


def extended_source(value: ir.Value) -> ir.Value | None:
    """The narrow tensor that an op of its own extends to `value`."""
    op = defining_op(value)
    return op.operands[0] if op is not None and is_extension(op) else None


def match_extended_inputs(found: Sum) -> list[ir.Value] | None:
    """The narrow inputs of a sum that are all extended to be added; products of f16 or bf16 are exact in f32."""
    inputs = tensor_inputs(found.op)
    sources = [source for value in inputs if (source := extended_source(value)) is not None]
    if not sources:
        return None
    if str(found.accumulator) != "f32":
        raise NoMatch(f"it accumulates in {found.accumulator}", found.op)
    types = {element_type(source) for source in sources}
    if len(sources) < len(inputs) or len(types) != 1 or str(*types) not in ("f16", "bf16"):
        raise NoMatch("its operands are not all extended from one of f16 and bf16", found.op)
    if not has_plain_body(found.op):
        raise NoMatch("its body is not scalar arithmetic", found.op)
    return sources


def build_extending(found: Sum, sources: Sequence[ir.Value]) -> ir.Value:
    """A sum that extends its inputs in its body."""
    op = found.op
    block = op.regions[0].blocks[0]

    def body(arguments: Sequence[ir.Value]) -> list[ir.Value]:
        values = [cast(new, old.type) for old, new in zip(block.arguments, arguments, strict=True)]
        return clone_body(op, dict(zip(block.arguments, values, strict=True)))

    return build_like(op, [*sources, op.operands[-1]], body)


def moves(op: ir.Operation | None) -> bool:
    """Whether an op is a reshape or a transpose: it has the elements of one tensor, in another layout."""
    if op is None:
        return False
    if op.name in VIEWS:
        return True
    if not is_elementwise(op) or not moves_only(op) or len(op.operands) != 2:
        return False
    source = (indexing_maps(op) or [])[0]
    dims = [expr.position for expr in source.results if isinstance(expr, ir.AffineDimExpr)]
    return len(dims) == source.n_dims == len(source.results)


def build_moved(op: ir.Operation, source: ir.Value) -> ir.Value:
    """The reshape or transpose `op` of a tensor of another type."""
    if op.name in VIEWS:
        return rebuild_view(op, source)
    init = empty_like(op.operands[-1], element_type(source))
    return generic([source], init, indexing_maps(op) or [], lambda arguments: arguments[0])


def match_hoistable(op: ir.Operation) -> list[ir.Operation]:
    """The reshapes and transposes between a linalg op and the truncation of what it computes, last first."""
    passed: list[ir.Operation] = []
    value = op.operands[0]
    while moves(producer := defining_op(value)):
        if not has_one_user(value):
            raise NoMatch("others read the tensor in its wide type", op)
        passed.append(producer)
        value = producer.operands[0]
    producer = defining_op(value)
    computed = producer is not None and producer.name.startswith("linalg.") and producer.name != "linalg.fill"
    return passed if computed and has_one_user(value) else []


def build_hoisted(op: ir.Operation, passed: Sequence[ir.Operation]) -> ir.Value:
    """The tensor that a truncation gives, truncated before the reshapes and transposes `passed`."""
    first = passed[-1]
    with ir.InsertionPoint(first), op.location:
        value = cast_tensor(first.operands[0], element_type(op.result))
    for move in reversed(passed):
        with ir.InsertionPoint(move), move.location:
            value = build_moved(move, value)
    return value


def match_sinkable(move: ir.Operation) -> ir.Value | None:
    """The narrow tensor whose extension a reshape or transpose alone reads, on the way to such contractions.

    Which contractions, `match_trailing_extension` says.
    """
    value = move.operands[0]
    source = extended_source(value) if has_one_user(value) else None
    return source if source is not None and _meets_extended(move.result, element_type(source)) else None


def build_sunk(move: ir.Operation, source: ir.Value) -> ir.Value:
    """What a reshape or transpose gives, extended after it."""
    return cast_tensor(build_moved(move, source), element_type(move.result))


def match_trailing_extension(op: ir.Operation) -> ir.Value | None:
    """The value in the body of an elementwise op that it extends only to yield it to contractions.

    Their other operands must be extended from the same type. With one operand narrow and the other wide, IREE uses no
    matrix instructions on gfx942.
    """
    if is_extension(op) or not has_plain_body(op):
        return None
    extension = defining_op(yielded(op)[0])
    if extension is None or extension.name != "arith.extf":
        return None
    value = extension.operands[0]
    return value if _meets_extended(op.result, value.type) else None


def match_trailing_truncation(op: ir.Operation) -> ir.Value | None:
    """The value in the body of an elementwise op that it truncates only to yield it."""
    if not is_elementwise(op) or not has_plain_body(op):
        return None
    truncation = defining_op(yielded(op)[0])
    return truncation.operands[0] if truncation is not None and truncation.name == "arith.truncf" else None


def build_yielding(op: ir.Operation, value: ir.Value) -> ir.Value:
    """An elementwise op that yields another value of its body."""
    if is_truncation(op):
        return op.operands[0]
    arguments = op.regions[0].blocks[0].arguments

    def body(new: Sequence[ir.Value]) -> ir.Value:
        (result,) = clone_body(op, dict(zip(arguments, new, strict=True)), [value])
        return result

    maps = indexing_maps(op) or []
    return generic(tensor_inputs(op), empty_like(op.operands[-1], value.type), maps, body)


def reads_extended(op: ir.Operation, number: int, wide: ir.Type) -> bool:
    """Whether an elementwise op or a reduction extends an operand to `wide` and has no other use for it."""
    if len(op.results) != 1 or len(op.regions) != 1 or not op.name.startswith("linalg.") or not has_plain_body(op):
        return False
    if not is_elementwise(op) and not _is_reduction(op):
        return False
    users = [use.owner.operation for use in op.regions[0].blocks[0].arguments[number].uses]
    return bool(users) and all(user.name == "arith.extf" and user.result.type == wide for user in users)


def build_reading(op: ir.Operation, wide: Mapping[int, ir.Value]) -> ir.Value:
    """An elementwise op or a reduction that reads, for some operands, what it had extended."""
    operands = [wide.get(number, operand) for number, operand in enumerate(op.operands)]
    arguments = op.regions[0].blocks[0].arguments

    def body(new: Sequence[ir.Value]) -> list[ir.Value]:
        known = dict(zip(arguments, new, strict=True))
        for number in wide:
            known.update((use.owner.operation.result, new[number]) for use in arguments[number].uses)
        return clone_body(op, known)

    return build_like(op, operands, body)


def _is_reduction(op: ir.Operation) -> bool:
    try:
        return reduces(op) and match_sum(op).kind == "reduction"
    except NoMatch:
        return True


def _meets_extended(value: ir.Value, narrow: ir.Type) -> bool:
    """Whether all that read a tensor, past reshapes, are contractions with other operands extended from a type."""
    users = [use.owner.operation for use in value.uses]
    return bool(users) and all(
        _meets_extended(user.result, narrow) if moves(user) else _extends_others(user, value, narrow) for user in users
    )


def _extends_others(op: ir.Operation, operand: ir.Value, narrow: ir.Type) -> bool:
    if not reduces(op) or _is_reduction(op):
        return False
    others = [value for value in tensor_inputs(op) if value != operand]
    return all(_is_extended_from(value, narrow) for value in others)


def _is_extended_from(value: ir.Value, narrow: ir.Type) -> bool:
    while moves(op := defining_op(value)) and has_one_user(value):
        value = op.operands[0]
    source = extended_source(value)
    return source is not None and element_type(source) == narrow

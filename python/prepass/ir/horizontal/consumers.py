# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How what reads a result lets it be laid out."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from prepass.ir.attention.build import OP_NAME as ATTENTION
from prepass.ir.attention.read import operand_maps
from prepass.ir.elementwise import VIEWS, is_elementwise, moves_only
from prepass.ir.expressions import indexing_maps

_TENSOR_DIALECTS = ("linalg", "tensor", "iree_linalg_ext")
_VALUE_OPERAND = 2
_OPERANDS = 3


def attention_use(value: ir.Value) -> tuple[ir.Operation, int] | None:
    """The attention op and the number of its operand, Q, K or V, if `value` is that and nothing else."""
    uses = list(value.uses)
    if len(uses) != 1:
        return None
    op, number = uses[0].owner.operation, uses[0].operand_number
    return (op, number) if op.name == ATTENTION and number < _OPERANDS else None


def preferred_order(value: ir.Value) -> tuple[int, ...]:
    """The dims of a result in the order in which its reader is best served.

    Attention reads heads one after another, Q and K with the channels innermost, and V with the keys innermost. IREE
    transposes V so for the same reason, and cannot fold that into an op with several results.
    """
    order = tuple(range(ir.RankedTensorType(value.type).rank))
    use = attention_use(value)
    if use is None:
        return order
    op, number = use
    maps = [set(map_.results) for map_ in operand_maps(op)]
    query, key, weighed, result = *maps[:_OPERANDS], maps[-1]
    channels = (query & key) - result - weighed if number != _VALUE_OPERAND else (weighed & result) - query - key
    rows = (query - key - weighed if number == 0 else key & weighed) - channels - (result if number else set())
    dims = operand_maps(op)[number].results
    heads = [dim for dim in order if dims[dim] not in channels | rows]
    inner = (rows, channels) if number != _VALUE_OPERAND else (channels, rows)
    return (*heads, *(dim for part in inner for dim in order if dims[dim] in part))


def is_transposed_later(value: ir.Value) -> bool:
    """Whether an op that only transposes reads `value`, directly or reshaped, or attention that IREE gives one."""
    pending = [value]
    while pending:
        for use in pending.pop().uses:
            user = use.owner.operation
            if user.name in VIEWS:
                pending.append(user.results[0])
            elif user.name == ATTENTION and use.operand_number == _VALUE_OPERAND:
                channels_last = operand_maps(user)[_VALUE_OPERAND].results[-1] in operand_maps(user)[-1].results
                if channels_last:
                    return True
            elif is_elementwise(user) and moves_only(user):
                read, written = (indexing_maps(user) or [])[0], (indexing_maps(user) or [])[-1]
                if read != written and len(read.results) == read.n_dims:
                    return True
    return False


def permute_operand(value: ir.Value, replacement: ir.Value, order: Sequence[int]) -> None:
    """Let the readers of `value` read `replacement`, whose dims are those of `value` in another order."""
    use = attention_use(value)
    if use is not None and list(order) != sorted(order):
        op, number = use
        maps = operand_maps(op)
        results = maps[number].results
        maps[number] = ir.AffineMap.get(maps[number].n_dims, 0, [results[dim] for dim in order])
        op.attributes["indexing_maps"] = ir.ArrayAttr.get([ir.AffineMapAttr.get(each) for each in maps])
        op.operands[number] = replacement
    else:
        value.replace_all_uses_with(replacement)


def leaves_tensor_ops(value: ir.Value) -> bool:
    """Whether an op that computes no tensor reads `value`, directly or reshaped: it is returned, or given away.

    Such a value has memory of its own, into which a slice would be copied.
    """
    pending = [value]
    while pending:
        for use in pending.pop().uses:
            user = use.owner.operation
            if user.name in VIEWS:
                pending.append(user.results[0])
            elif user.name.partition(".")[0] not in _TENSOR_DIALECTS:
                return True
    return False


def feeds_only_elementwise(value: ir.Value) -> bool:
    """Whether all that reads `value`, directly or reshaped, computes elementwise, and so takes any order of dims."""
    pending, found = [value], False
    while pending:
        for use in pending.pop().uses:
            user = use.owner.operation
            if user.name in VIEWS:
                pending.append(user.results[0])
            elif is_elementwise(user):
                found = True
            else:
                return False
    return found

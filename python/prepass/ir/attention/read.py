# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading the loops of an `iree_linalg_ext.attention` that is in the program already."""

from __future__ import annotations

import math
import re

from iree.compiler import ir

from prepass.ir.expressions import element_type, loop_positions, tensor_sizes
from prepass.ir.match import NoMatch
from prepass.ir.targets.attention_shape import AttentionShape

# A loop's kind by which of Q, K, V and the result have it.
_KINDS = {
    (True, True, True, True): "batch",
    (False, True, True, True): "batch",
    (True, False, True, True): "batch",
    (True, True, False, True): "batch",
    (True, False, False, True): "m",
    (False, False, True, True): "n",
    (True, True, False, False): "k1",
    (False, True, True, False): "k2",
}
_ATTENTION_KINDS = re.compile(r"(batch )*(m )*n k1( k1)?( k2)?")


def operand_maps(op: ir.Operation) -> list[ir.AffineMap]:
    """The indexing maps of an attention op: of its operands, and of its results."""
    return [ir.AffineMapAttr(attribute).value for attribute in ir.ArrayAttr(op.attributes["indexing_maps"])]


def loop_kinds(op: ir.Operation) -> tuple[list[str], list[list[int]]]:
    """What each loop of an attention op is, "" where it is nothing known, and the loops of each operand's dims."""
    maps = operand_maps(op)
    dims = [_positions(affine_map, op) for affine_map in maps]
    # Q, K, V and the scale, then a mask if there is one, and the result.
    query, key, value, result = dims[0], dims[1], dims[2], dims[-1]
    kinds = [_KINDS.get(tuple(loop in d for d in (query, key, value, result)), "") for loop in range(maps[0].n_dims)]
    return kinds, dims


def read_attention_shape(op: ir.Operation) -> AttentionShape:
    """The loops of an attention op.

    Of several loops over queries, all but the last count as batch. IREE drops
    loops of extent 1: one over queries or keys that is not there has that extent.
    Raises NoMatch when the loops are not those of attention, or not in its order.
    """
    kinds, dims = loop_kinds(op)
    if not _ATTENTION_KINDS.fullmatch(" ".join(kinds)):
        raise NoMatch("the loops are not those of attention, or not in its order", op)
    key, value = dims[1], dims[2]
    extents = _extents(list(op.operands), dims, len(kinds))
    channels = kinds.index("n")
    outer = extents[:channels]
    m = outer.pop() if "m" in kinds else 1
    head = [extent for kind, extent in zip(kinds, extents, strict=True) if kind == "k1"]
    return AttentionShape(
        batch=tuple(outer),
        m=m,
        n=extents[channels],
        k1=None if None in head else math.prod(extent for extent in head if extent is not None),
        k2=extents[-1] if "k2" in kinds else 1,
        element_type=str(element_type(op.operands[0])),
        value_transposed=kinds[value[-1]] == "k2",
        key_transposed=kinds[key[-1]] == "k2",
        masked=len(dims) == 6,
        k1_loops=len(head),
    )


def _positions(affine_map: ir.AffineMap, op: ir.Operation) -> list[int]:
    if not affine_map.is_projected_permutation:
        raise NoMatch("an indexing map is not a projected permutation", op)
    return loop_positions(affine_map)


def _extents(operands: list[ir.Value], dims: list[list[int]], loops: int) -> list[int | None]:
    extents: list[int | None] = [None] * loops
    for operand, positions in zip(operands, dims, strict=True):
        if not isinstance(operand.type, ir.RankedTensorType):
            continue
        for size, loop in zip(tensor_sizes(operand), positions, strict=True):
            extents[loop] = size if extents[loop] is None else extents[loop]
    return extents

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rotations as they stand in executables: what `prepass.ir.rope.build` makes, once dispatches are formed."""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.expressions import element_bytes, indexing_maps, loop_sizes
from prepass.ir.match import NoMatch, computes, find_ops

_PACKING = ("arith.shli", "arith.ori")


@dataclass(frozen=True)
class RotationKernel:
    """The loops of a rotation that is alone in its dispatch.

    Attributes:
      rows: The extents of the loops over rows, None where dynamic.
      blocks: The extent of the loop over the blocks of a row, such as its two halves. None where there is none, as
        pairs are neighbours.
      width: That of the innermost loop, over the pairs of a block.
      narrowest: Bytes of the narrowest element that is loaded along the innermost loop.
    """

    rows: tuple[int | None, ...]
    blocks: int | None
    width: int
    narrowest: int


def match_rotation_kernel(op: ir.Operation) -> RotationKernel | None:
    """The loops of a generic in an executable, None where it is no rotation that prepass has built.

    Raises NoMatch where it is one that is not alone in its dispatch.
    """
    maps = indexing_maps(op)
    if maps is None or len(op.results) != 1 or len(maps[-1].results) != maps[-1].n_dims:
        return None
    sizes = loop_sizes(op)
    has_blocks = _has_blocks(op, len(sizes))
    blocks, width = sizes[-2] if has_blocks else None, sizes[-1]
    rows = sizes[:-2] if has_blocks else sizes[:-1]
    inputs = [value for value, map_ in zip(op.operands, maps[:-1], strict=False) if _innermost(map_) == len(sizes) - 1]
    if has_blocks is None or width is None or (has_blocks and blocks is None) or not inputs:
        return None
    if find_ops(op.parent.operation, lambda other: other != op and computes(other)):
        raise NoMatch("the rotation is not alone in its dispatch", op)
    return RotationKernel(tuple(rows), blocks, width, min(map(element_bytes, inputs)))


def _has_blocks(op: ir.Operation, loops: int) -> bool | None:
    """Whether the body asks for the loop before the innermost one, None where it does not rotate."""
    body = [inner.operation for inner in op.regions[0].blocks[0].operations]
    names = [inner.name for inner in body]
    asked = {ir.IntegerAttr(inner.attributes["dim"]).value for inner in body if inner.name == "linalg.index"}
    if names.count("arith.mulf") < 2:
        return None
    if asked == {loops - 2}:
        return True
    return False if not asked and all(name in names for name in _PACKING) else None


def _innermost(map_: ir.AffineMap) -> int | None:
    last = map_.results[len(map_.results) - 1] if len(map_.results) else None
    return last.position if isinstance(last, ir.AffineDimExpr) else None

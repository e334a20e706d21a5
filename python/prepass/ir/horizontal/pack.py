# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packing tensors of several contractions into one, part by part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.axes import Group, Index, index_leaves
from prepass.ir.emit import Extents, relayout
from prepass.ir.expressions import Constant, Read, element_type
from prepass.ir.horizontal.alignment import Alignment
from prepass.ir.horizontal.build import Laid
from prepass.ir.horizontal.members import Member
from prepass.ir.horizontal.region import Output
from prepass.ir.horizontal.unify import Leaf
from prepass.ir.match import NoMatch


@dataclass(frozen=True)
class Part:
    """What a member is of the packed dim.

    Attributes:
      axes: The outermost axes of its columns, which the packed dim runs over; none where the member is one part.
      count: How many parts that are.
    """

    axes: Group
    count: int


def cut_columns(members: Sequence[Member], alignment: Alignment, op: ir.Operation) -> tuple[tuple[Part, ...], Group]:
    """The part of each member, and the axes inside of a part: all columns where they are equally many, else a head."""
    columns = [member.n for member in members]
    extents = [[axis.extent for axis in group] for group in columns]
    if any(None in each for each in extents):
        raise NoMatch("a weight has a dynamic shape", op)
    if len({math.prod(each) for each in extents}) == 1:
        inner = alignment.align(columns, op)
        return (Part((), 1),) * len(columns), inner
    common = 0
    while common < min(map(len, extents)) and len({each[-1 - common] for each in extents}) == 1:
        common += 1
    # Some axis must be left to tell a part by.
    common = min(common, min(map(len, extents)) - 1)
    inner = alignment.align([group[len(group) - common :] for group in columns], op)
    outer = [group[: len(group) - common] for group in columns]
    return tuple(Part(group, math.prod(axis.extent for axis in group)) for group in outer), inner


def check_extra(
    leaves: Sequence[Leaf], outputs: Sequence[Output], parts: Sequence[Part], alignment: Alignment
) -> Group:
    """The axes inside of a part that leaves of several expressions vary along; raises NoMatch when they differ."""
    op = outputs[0].members[0].op
    found: list[Group] = []
    for leaf, part in zip(leaves, parts, strict=True):
        if isinstance(leaf, Constant):
            continue
        axes = index_leaves(alignment.index(leaf.index))
        if not set(part.axes) <= set(axes):
            raise NoMatch("a bias is the same for several parts", op)
        found.append(tuple(axis for axis in axes if axis not in part.axes))
    if any(set(axes) != set(found[0]) for axes in found):
        raise NoMatch("biases vary along different dims", op)
    return found[0] if found else ()


def build_pack(
    leaves: Sequence[Leaf], parts: Sequence[Part], pack: Group, dims: Index, position: int, extents: Extents
) -> Laid:
    """The tensors one after another along `pack`, which becomes dim `position` of `dims`; numbers are repeated."""
    element = next((element_type(leaf.value) for leaf in leaves if isinstance(leaf, Read)), None)
    pieces = []
    for leaf, part in zip(leaves, parts, strict=True):
        target = (*dims[:position], part.axes, *dims[position:])
        if isinstance(leaf, Read):
            pieces.append(relayout(leaf.value, leaf.index, target, extents))
        else:
            pieces.append(_splat(leaf, element or leaf.type, part.count, dims, position))
    return Laid(_concatenate(pieces, position), (*dims[:position], pack, *dims[position:]))


def _splat(number: Constant, element: ir.Type, count: int, dims: Index, position: int) -> ir.Value:
    sizes = [math.prod(axis.extent or 1 for axis in group) for group in dims]
    type_ = ir.RankedTensorType.get([*sizes[:position], count, *sizes[position:]], element)
    value = ir.DenseElementsAttr.get_splat(type_, ir.FloatAttr.get(element, number.value))
    return ir.Operation.create("arith.constant", [type_], attributes={"value": value}).result


def _concatenate(pieces: Sequence[ir.Value], dim: int) -> ir.Value:
    types = [ir.RankedTensorType(piece.type) for piece in pieces]
    shape = list(types[0].shape)
    shape[dim] = sum(type_.shape[dim] for type_ in types)
    type_ = ir.RankedTensorType.get(shape, types[0].element_type)
    attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dim)
    return ir.Operation.create("tensor.concat", [type_], list(pieces), {"dim": attribute}).result

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Horizontal fusion as one contraction with one result, by weights that are packed when the program is loaded.

The packed dim is the outermost of weight and result, so each member's part is a slice that costs nothing. Members of
equal width are one part each, and members of different widths as many parts as they have heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.axes import Axis, Group, Index, index_leaves, static_extent
from prepass.ir.barriers import opaque_index
from prepass.ir.elementwise import meet
from prepass.ir.emit import Extents, relayout, slice_dim
from prepass.ir.expressions import Read, element_type
from prepass.ir.horizontal.alignment import Alignment, merge_loops, present
from prepass.ir.horizontal.build import Computed, Laid, build_contraction, build_elementwise, hoist, read_key
from prepass.ir.horizontal.consumers import (
    attention_use,
    feeds_only_elementwise,
    leaves_tensor_ops,
    permute_operand,
)
from prepass.ir.horizontal.members import Member, common_read
from prepass.ir.horizontal.pack import Part, build_pack, check_extra, cut_columns
from prepass.ir.horizontal.region import Output, extras, values_read
from prepass.ir.horizontal.unify import Leaf, unify
from prepass.ir.horizontal.weights import Weights
from prepass.ir.match import NoMatch

# What reads so few may read them across: they are in one cache line.
_FEW_ROWS = 16
# Q, K and V: what reads more has equal ops in several layers.
_ONE_LAYER = 3
_COPY = "a slice would have to be copied for what reads it"


@dataclass(frozen=True)
class PackedPlan:
    """What `build_packed` builds.

    Attributes:
      parts: What each output is of the packed dim.
      inner: The axes of the columns inside of a part.
      loops: Of the contraction, without the packed one.
      layout: The axes of the result, without the packed one.
      orders: For each output the dims of its value in the order in which the slice has them.
    """

    outputs: tuple[Output, ...]
    members: tuple[Member, ...]
    alignment: Alignment
    parts: tuple[Part, ...]
    inner: Group
    contracted: Group
    loops: Index
    layout: Group
    orders: tuple[tuple[int, ...], ...]


def plan_packed(outputs: Sequence[Output], weights: Weights) -> PackedPlan:
    """Find the loops of one op for all outputs; raises NoMatch when there are none."""
    members = tuple(output.members[0] for output in outputs)
    first = members[0].op
    _check_constant(outputs, weights)
    if meet([output.value for output in outputs]):
        raise NoMatch(
            "an elementwise op reads several of them, and fuses with a contraction but not with slices", first
        )
    alignment = Alignment()
    alignment.align([member.m for member in members], first)
    contracted = alignment.align([member.k for member in members], first)
    parts, inner = cut_columns(members, alignment, first)
    layout = tuple(axis for axis in index_leaves(alignment.index(outputs[0].index)) if axis not in parts[0].axes)
    orders = tuple(_order(output, part, alignment, layout, first) for output, part in zip(outputs, parts, strict=True))
    tensors = [layout, index_leaves(alignment.index(common_read(members).index)), (*inner, *contracted)]
    unify(outputs, lambda leaves: tensors.append(check_extra(leaves, outputs, parts, alignment)))
    if any(leaves_tensor_ops(output.value) for output in outputs):
        raise NoMatch(_COPY, first)
    loops = merge_loops((*layout, *contracted), tensors)
    return PackedPlan(tuple(outputs), members, alignment, parts, inner, contracted, loops, layout, orders)


def _check_constant(outputs: Sequence[Output], weights: Weights) -> None:
    first = outputs[0].members[0]
    ops = [output.members[0].op for output in outputs]
    for output in outputs:
        for member in output.members:
            if not weights.is_constant(member.weight.value):
                raise NoMatch("packing weights that are no constants or parameters would copy them", member.op)
            if not weights.only_by(member.weight.value, ops):
                raise NoMatch("its weight is read elsewhere too, and packing would copy it", member.op)
            if element_type(member.weight.value) != element_type(first.weight.value):
                raise NoMatch("the weights are of several types", member.op)
        if any(not weights.is_constant(read.value) for read in extras(output)):
            raise NoMatch("packing a bias that is no constant or parameter would copy it", output.members[0].op)
        if element_type(output.value) != element_type(outputs[0].value):
            raise NoMatch("the results are of several types", output.members[0].op)


def _order(output: Output, part: Part, alignment: Alignment, layout: Group, op: ir.Operation) -> tuple[int, ...]:
    """The dims of an output in the order of its slice; raises NoMatch when a copy would have to bring them there."""
    index = alignment.index(output.index)
    place = {axis: number for number, axis in enumerate((*part.axes, *layout))}
    if set(place) != set(index_leaves(index)):
        raise NoMatch("their results are cut in different ways", op)
    rank = len(index)
    few_rows = (static_extent(output.members[0].m) or _FEW_ROWS) < _FEW_ROWS
    if index_leaves(index) == tuple(place) or (few_rows and feeds_only_elementwise(output.value)):
        return tuple(range(rank))
    places = [[place[axis] for axis in group] for group in index]
    whole = all(there == list(range(there[0], there[0] + len(there))) for there in places if there)
    if attention_use(output.value) is None or not whole:
        raise NoMatch(_COPY, op)
    return tuple(sorted(range(rank), key=lambda dim: places[dim] or [-1]))


def build_packed(plan: PackedPlan) -> list[ir.Value]:
    """Build the op before the first member; returns what stands in the place of each output, in its planned order."""
    before = plan.members[0].op
    others = (value for output in plan.outputs for value in values_read(output))
    hoist([*(member.weight.value for member in plan.members), *others], before)
    alignment, pack = plan.alignment, (Axis(sum(part.count for part in plan.parts)),)
    common = common_read(plan.members)
    shared_index = alignment.index(common.index)
    extents = Extents([Read(common.value, shared_index)])
    loops = (pack, *plan.loops)
    with ir.InsertionPoint(before), before.location:
        dims = present(plan.loops, index_leaves(shared_index))
        shared = Laid(relayout(common.value, shared_index, dims, extents), dims)
        result = (pack, *present(plan.loops, plan.layout))
        weight = _build_weight(plan, pack, extents)
        (total,) = build_contraction(loops, shared, [weight], [result], element_type(before.results[0]), extents)
        total = _build_elements(plan, pack, total, extents)
        return _build_slices(plan, total, extents)


def _build_weight(plan: PackedPlan, pack: Group, extents: Extents) -> Laid:
    """The packed weight, with the contracted dims where the first one has them."""
    reads = [Read(member.weight.value, plan.alignment.index(member.weight.index)) for member in plan.members]
    first = index_leaves(reads[0].index)
    order = tuple(axis for axis in first if axis not in plan.parts[0].axes)
    dims = present(plan.loops, order)
    contracted_first = bool(plan.parts[0].axes) and first[0] in plan.contracted
    position = len([dim for dim in dims if dim[0] in plan.contracted]) if contracted_first else 0
    return build_pack(reads, plan.parts, pack, dims, position, extents)


def _build_elements(plan: PackedPlan, pack: Group, total: Laid, extents: Extents) -> Laid:
    if not any(output.computes for output in plan.outputs):
        return total
    reads: dict[tuple[ir.Value, Index], Laid] = {read_key(plan.members[0].result): total}

    def make(leaves: Sequence[Leaf]) -> Read:
        axes = check_extra(leaves, plan.outputs, plan.parts, plan.alignment)
        aligned = [
            Read(leaf.value, plan.alignment.index(leaf.index)) if isinstance(leaf, Read) else leaf for leaf in leaves
        ]
        laid = build_pack(
            aligned, plan.parts, pack, present(plan.loops, [a for a in plan.layout if a in axes]), 0, extents
        )
        read = Read(laid.value, laid.dims)
        reads[read_key(read)] = laid
        return read

    expr = unify(plan.outputs, make)
    loops = (pack, *(loop for loop in plan.loops if loop[0] not in plan.contracted))
    computed = Computed(expr, element_type(plan.outputs[0].value), total.dims)
    return build_elementwise(loops, reads, [computed], extents)[0]


def _build_slices(plan: PackedPlan, total: Laid, extents: Extents) -> list[ir.Value]:
    values, offset = [], 0
    block = plan.members[0].op.block
    for output, part, order in zip(plan.outputs, plan.parts, plan.orders, strict=True):
        # Else the attention of each of many equal layers would be compiled anew, for its offset alone.
        hidden = len(plan.outputs) > _ONE_LAYER and attention_use(output.value) is not None
        value = slice_dim(total.value, 0, opaque_index(offset, block) if hidden else offset, part.count)
        offset += part.count
        index = plan.alignment.index(output.index)
        wanted = tuple(index[dim] for dim in order)
        values.append(relayout(value, (part.axes, *total.dims[1:]), wanted, extents))
    return values


def replace_packed(plan: PackedPlan, values: Sequence[ir.Value]) -> None:
    """Let the program read the built values."""
    for output, value, order in zip(plan.outputs, values, plan.orders, strict=True):
        permute_operand(output.value, value, order)

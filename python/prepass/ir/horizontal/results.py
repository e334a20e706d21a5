# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Horizontal fusion as one contraction with a result for each member.

The members read their weights as they are stored, and each result has a layout of its own. All of them have the
loops of the contraction, so the members must have equally many columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.axes import Group, Index, index_leaves, static_extent
from prepass.ir.emit import Extents, relayout
from prepass.ir.expressions import Read, element_type
from prepass.ir.horizontal.alignment import Alignment, merge_loops, present
from prepass.ir.horizontal.build import (
    Computed,
    Laid,
    build_contraction,
    build_elementwise,
    hoist,
    read_key,
)
from prepass.ir.horizontal.consumers import is_transposed_later, permute_operand, preferred_order
from prepass.ir.horizontal.members import Member, common_read
from prepass.ir.horizontal.region import Output, extras, values_read
from prepass.ir.match import NoMatch


@dataclass(frozen=True)
class ResultsPlan:
    """What `build_results` builds.

    Attributes:
      loops: Of the contraction, the contracted ones last.
      layouts: For each output its dims as they are to be written, and which dim of the value each is.
    """

    outputs: tuple[Output, ...]
    members: tuple[Member, ...]
    alignment: Alignment
    loops: Index
    contracted: Index
    layouts: tuple[tuple[Index, tuple[int, ...]], ...]


def plan_results(outputs: Sequence[Output]) -> ResultsPlan:
    """Find the loops of one op for all outputs; raises NoMatch when there are none."""
    members = tuple(member for output in outputs for member in output.members)
    first = members[0].op
    alignment = Alignment()
    alignment.align([member.m for member in members], first)
    contracted = alignment.align([member.k for member in members], first)
    if any(static_extent(member.n) is None for member in members):
        raise NoMatch("a weight has a dynamic shape", first)
    if len({static_extent(member.n) for member in members}) > 1:
        raise NoMatch("they have different numbers of columns", first)
    alignment.align([member.n for member in members], first)
    layouts = []
    for output in outputs:
        order = preferred_order(output.value)
        index = alignment.index(output.index)
        layouts.append((tuple(index[dim] for dim in order), order))
        if len(members) > 1 and order == tuple(sorted(order)) and is_transposed_later(output.value):
            raise NoMatch(
                "a result is transposed in several places, which IREE does not fold into an op with several", first
            )
    written = [index_leaves(index) for index, _ in layouts]
    tensors: list[Group] = [*written, index_leaves(alignment.index(common_read(members).index))]
    tensors += [index_leaves(alignment.index(member.weight.index)) for member in members]
    for output in outputs:
        tensors += [index_leaves(alignment.index(read.index)) for read in extras(output)]
    loops = merge_loops((*written[0], *contracted), tensors)
    return ResultsPlan(
        tuple(outputs),
        members,
        alignment,
        loops,
        tuple(loop for loop in loops if loop[0] in contracted),
        tuple(layouts),
    )


def innermost(plan: ResultsPlan) -> tuple[int, int | None, int | None, int | None, str]:
    """How many results there are, the extents of the innermost loop over rows, columns and terms, and the type."""
    rows, columns = (
        {axis for member in plan.members for axis in plan.alignment.group(group(member))}
        for group in (lambda member: member.m, lambda member: member.n)
    )
    of_rows = [loop for loop in plan.loops if loop[0] in rows]
    of_columns = [loop for loop in plan.loops if loop[0] in columns]
    last = (group[-1] if group else () for group in (of_rows, of_columns, plan.contracted))
    row, column, depth = (static_extent(loop) for loop in last)
    return len(plan.members), row, column, depth, str(element_type(plan.members[0].shared[0].value))


def build_results(plan: ResultsPlan) -> list[ir.Value]:
    """Build the op before the first member; returns what stands in the place of each output, laid out as planned."""
    before = plan.members[0].op
    common = common_read(plan.members)
    extents = Extents([Read(common.value, plan.alignment.index(common.index))])
    others = (value for output in plan.outputs for value in values_read(output))
    hoist([*(member.weight.value for member in plan.members), *others], before)
    kept = tuple(loop for loop in plan.loops if loop not in plan.contracted)
    with ir.InsertionPoint(before), before.location:
        shared = _lay(plan, common, plan.loops, extents)
        weights = [_lay(plan, member.weight, plan.loops, extents) for member in plan.members]
        dims = {
            member.op: present(plan.loops, index_leaves(index))
            for output, (index, _) in zip(plan.outputs, plan.layouts, strict=True)
            for member in output.members
        }
        accumulator = element_type(before.results[0])
        layouts = [dims[member.op] for member in plan.members]
        sums = build_contraction(plan.loops, shared, weights, layouts, accumulator, extents)
        values = _build_elements(plan, kept, sums, extents)
        return [
            relayout(laid.value, laid.dims, index, extents)
            for laid, (index, _) in zip(values, plan.layouts, strict=True)
        ]


def _build_elements(plan: ResultsPlan, kept: Index, sums: Sequence[Laid], extents: Extents) -> list[Laid]:
    if not any(output.computes for output in plan.outputs):
        return list(sums)
    reads = {read_key(member.result): laid for member, laid in zip(plan.members, sums, strict=True)}
    for output in plan.outputs:
        for read in extras(output):
            reads[read_key(read)] = _lay(plan, read, kept, extents)
    outputs = [
        Computed(output.expr, element_type(output.value), present(kept, index_leaves(index)))
        for output, (index, _) in zip(plan.outputs, plan.layouts, strict=True)
    ]
    return build_elementwise(kept, reads, outputs, extents)


def _lay(plan: ResultsPlan, read: Read, loops: Index, extents: Extents) -> Laid:
    index = plan.alignment.index(read.index)
    dims = present(loops, index_leaves(index))
    return Laid(relayout(read.value, index, dims, extents), dims)


def replace_results(plan: ResultsPlan, values: Sequence[ir.Value]) -> None:
    """Let the program read the built values."""
    for output, value, (_, order) in zip(plan.outputs, values, plan.layouts, strict=True):
        permute_operand(output.value, value, order)

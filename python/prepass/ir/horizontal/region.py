# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What follows a contraction and can be computed with it: casts, biases, activations, reshapes and transposes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from iree.compiler import ir

from prepass.ir.axes import Axis, Index, index_leaves, resolve
from prepass.ir.elementwise import has_plain_body, is_elementwise, tensor_inputs
from prepass.ir.expressions import (
    Apply,
    Constant,
    Expr,
    Position,
    Read,
    Scalar,
    expand,
    subexpressions,
    tensor_sizes,
)
from prepass.ir.horizontal.members import Member, read_member
from prepass.ir.match import NoMatch, defining_op

_RESHAPES = ("tensor.collapse_shape", "tensor.expand_shape")

Available = Callable[[ir.Value], bool]


@dataclass(frozen=True)
class Output:
    """A value that is computed from the results of contractions, element by element.

    Attributes:
      index: Its dims, over the axes of the members.
      expr: Its element, over reads of the contractions' results and of tensors that vary along their columns.
      members: The contractions it is computed from.
    """

    value: ir.Value
    index: Index
    expr: Expr
    members: tuple[Member, ...]

    @property
    def computes(self) -> bool:
        """Whether it is more than the result of a contraction, moved."""
        return not isinstance(self.expr, Read)


def find_outputs(ops: Sequence[ir.Operation], source: ir.Value, available: Available, *, join: bool) -> list[Output]:
    """What is to be computed with the contractions `ops` of `source`.

    Goes on from each result while one op reads it and computes elementwise, from it and from what is
    `available`, or moves it. With `join`, an op may read several of the results, as a gate does.
    """
    steps = _grow(ops, join)
    region = {*ops, *steps}
    grown = {operand for inputs in steps.values() for operand in inputs}
    pending = [op.results[0] for op in (*ops, *steps) if op.results[0] not in grown]
    outputs = []
    # What cannot be computed as a whole is computed as far as it can be.
    while pending:
        value = pending.pop(0)
        try:
            outputs.append(_read_output(value, region, ops, source, available))
        except NoMatch:
            step = steps.get(value.owner.operation)
            if step is None:
                raise
            pending.extend(step)
    places = {op: place for place, op in enumerate(ops)}
    return sorted(outputs, key=lambda output: min(places[member.op] for member in output.members))


def _grow(ops: Sequence[ir.Operation], join: bool) -> dict[ir.Operation, list[ir.Value]]:
    """The elementwise ops and reshapes that follow, each with those of its operands that it goes on from."""
    steps: dict[ir.Operation, list[ir.Value]] = {}
    reached = _reached(ops)
    pending = [op.results[0] for op in ops]
    ends = set(pending)
    while pending:
        user = reached.get(pending.pop())
        if user is None:
            continue
        inputs = [operand for operand in dict.fromkeys(tensor_inputs_of(user)) if operand in reached]
        # One that is not there yet brings the user up again.
        if not ends.issuperset(inputs) or any(reached[operand] != user for operand in inputs):
            continue
        if len(inputs) > 1 and not join:
            continue
        steps[user] = inputs
        ends.difference_update(inputs)
        ends.add(user.results[0])
        pending.append(user.results[0])
    return steps


def _reached(ops: Sequence[ir.Operation]) -> dict[ir.Value, ir.Operation | None]:
    """The results of `ops` and all that is computed from them, with the one op that can go on from each."""
    reached: dict[ir.Value, ir.Operation | None] = {}
    pending = [op.results[0] for op in ops]
    while pending:
        value = pending.pop()
        if value in reached:
            continue
        users = {use.owner.operation for use in value.uses}
        user = users.pop() if len(users) == 1 else None
        reached[value] = user if user is not None and _computes_elements(user) else None
        if reached[value] is not None:
            pending.append(reached[value].results[0])
    return reached


def extras(output: Output) -> list[Read]:
    """The tensors that an output is computed from besides results of members."""
    results = [member.op.results[0] for member in output.members]
    reads = dict.fromkeys(part for part in subexpressions(output.expr) if isinstance(part, Read))
    return [read for read in reads if read.value not in results]


def values_read(output: Output) -> list[ir.Value]:
    """The tensors of `extras`, and the scalars."""
    scalars = [part.value for part in subexpressions(output.expr) if isinstance(part, Scalar)]
    return [*(read.value for read in extras(output)), *scalars]


def tensor_inputs_of(op: ir.Operation) -> list[ir.Value]:
    """What a reshape or a linalg op reads."""
    return list(op.operands)[:1] if op.name in _RESHAPES else tensor_inputs(op)


def _computes_elements(op: ir.Operation) -> bool:
    return op.name in _RESHAPES or (is_elementwise(op) and has_plain_body(op))


def _read_output(
    value: ir.Value, region: set[ir.Operation], ops: Sequence[ir.Operation], source: ir.Value, available: Available
) -> Output:
    """The expression of `value` over results of `ops`; raises NoMatch when it has none that is wanted."""
    index = tuple((Axis(size),) for size in tensor_sizes(value))
    roots = set(ops)
    expr = _Inlining(region, roots).inline(Read(value, index))
    op = defining_op(value)
    reads = {part: None for part in subexpressions(expr) if isinstance(part, Read)}
    results = {defining_op(read.value): read for read in reads if defining_op(read.value) in roots}
    members = tuple(read_member(root, read.index, source) for root, read in results.items())
    if any(resolve(results.get(defining_op(read.value), read).index) != resolve(read.index) for read in reads):
        raise NoMatch("it reads a result in two places", op)
    axes = index_leaves(index)
    for member in members:
        if set(index_leaves(member.result.index)) != set(axes):
            raise NoMatch("its result is broadcast", op)
    columns = {axis for member in members for axis in member.n}
    for part in subexpressions(expr):
        if isinstance(part, Position) or (isinstance(part, Scalar) and not available(part.value)):
            raise NoMatch("it computes with what is not there yet", op)
        if isinstance(part, Read) and defining_op(part.value) not in roots:
            if not available(part.value) or not columns.issuperset(index_leaves(part.index)):
                raise NoMatch("it reads another tensor", op)
    return Output(value, index, expr, members)


class _Inlining:
    """Expressions over the results of `roots` in the place of reads of what the ops of a region compute."""

    def __init__(self, region: set[ir.Operation], roots: set[ir.Operation]) -> None:
        self._region = region
        self._roots = roots
        # By identity for ops, whose hash would be that of all below; kept alive, so that none is reused.
        self._done: dict[Expr | int, tuple[Expr, Expr]] = {}

    def inline(self, expr: Expr) -> Expr:
        """`expr`, down to the roots and to tensors from elsewhere."""
        key = id(expr) if isinstance(expr, Apply) else expr
        if key not in self._done:
            self._done[key] = expr, self._make(expr)
        return self._done[key][1]

    def _make(self, expr: Expr) -> Expr:
        if isinstance(expr, Apply):
            return replace(expr, operands=tuple(self.inline(operand) for operand in expr.operands))
        if not isinstance(expr, Read):
            return expr
        op = defining_op(expr.value)
        if op in self._roots:
            return expr
        if op in self._region:
            expanded = expand(expr)
            if expanded is None:
                raise NoMatch("it is not understood", op)
            return self.inline(expanded)
        # What is behind a broadcast or a transpose is read as it is stored.
        while isinstance(further := expand(expr), Read):
            expr = further
        return further if isinstance(further, Constant) else expr

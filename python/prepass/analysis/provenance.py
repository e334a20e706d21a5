# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Following the ops of a program through passes and phases, by numbers in their locations.

A pass gives what it builds the location of what it replaces, and the compiler keeps locations when it fuses and
outlines. So an op that is numbered before preprocessing is found again in the dispatch that it ends up in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from iree.compiler import ir

from prepass.analysis.dispatches import kind_of
from prepass.ir.locations import describe_source
from prepass.ir.match import find_ops

ASSERTION = "cf.assert"
_PREFIX = "prepass.op."
# What many ops share, and what is no work.
_SHARED = ("arith.constant", "tensor.empty", "linalg.fill", "tensor.dim", "util.global.load")


@dataclass(frozen=True)
class SourceOp:
    """An op of the program before preprocessing.

    Attributes:
      location: `file:line:column`, or `<unknown>`.
      kind: What it would be as a dispatch; one of `dispatches.KINDS`.
      type: Of its first result, or "".
    """

    name: str
    location: str
    kind: str
    type: str


@dataclass(frozen=True)
class Snapshot:
    """The numbered ops that a module has at some point.

    Attributes:
      operands: For each number, the numbers of what the ops with it read, in their bodies too.
    """

    operands: Mapping[int, frozenset[int]]

    def closure(self, roots: Iterable[int], within: frozenset[int]) -> frozenset[int]:
        """`roots`, and all of `within` that they read, directly or through others of `within`."""
        found = set(roots)
        pending = list(found)
        while pending:
            for number in self.operands.get(pending.pop(), frozenset()) & within:
                if number not in found:
                    found.add(number)
                    pending.append(number)
        return frozenset(found)


def number_ops(module: ir.Operation) -> dict[int, SourceOp]:
    """Give each op a number in its location; returns the ops by their numbers.

    The body of an op on tensors has the number of that op.
    """
    sources: dict[int, SourceOp] = {}
    with module.context:
        for number, op in enumerate(find_ops(module, _is_outer, ir.WalkOrder.PRE_ORDER)):
            sources[number] = SourceOp(op.name, describe_source(op.location), kind_of([op]), _type(op))
            inner = find_ops(op, lambda _: True) if is_on_tensors(op) else [op]
            for each in inner:
                each.location = ir.Location.name(f"{_PREFIX}{number}", each.location)
    return sources


def numbers_of(location: ir.Location) -> frozenset[int]:
    """The numbers in a location, those of fused ops included."""
    return frozenset(_numbers(location))


def work_in(op: ir.Operation) -> frozenset[int]:
    """The numbers of the ops in `op` that do work, other than what many ops share."""
    found: set[int] = set()
    for inner in find_ops(op, lambda inner: inner.name not in _SHARED):
        found |= numbers_of(inner.location)
    return frozenset(found)


def snapshot(module: ir.Operation) -> Snapshot:
    """The numbered ops of a module now, without what many ops share."""
    operands: dict[int, set[int]] = {}
    by_value: dict[ir.Value, frozenset[int]] = {}
    for op in find_ops(module, lambda op: op.name not in _SHARED, ir.WalkOrder.PRE_ORDER):
        own = numbers_of(op.location)
        read = frozenset[int]().union(*(by_value.get(value, frozenset()) for value in op.operands))
        by_value |= dict.fromkeys(op.results, own)
        for number in own:
            operands.setdefault(number, set()).update(read - {number})
    return Snapshot({number: frozenset(read) for number, read in operands.items()})


def is_on_tensors(op: ir.Operation) -> bool:
    """Whether an op on tensors has a body of scalars."""
    return op.name.startswith(("linalg.", "iree_linalg_ext.", "tensor.pad", "tensor.generate"))


def _is_outer(op: ir.Operation) -> bool:
    """Whether an op is in no body of an op on tensors, or is to be known by itself there."""
    if op.name == ASSERTION:
        return True
    parent = op.parent
    while parent is not None:
        if is_on_tensors(parent.operation):
            return False
        parent = parent.operation.parent
    return True


def _type(op: ir.Operation) -> str:
    return str(op.results[0].type) if len(op.results) else ""


def _numbers(location: ir.Location) -> Iterator[int]:
    if isinstance(location, ir.NameLoc):
        if location.name_str.startswith(_PREFIX):
            yield int(location.name_str.removeprefix(_PREFIX))
        else:
            yield from _numbers(location.child_loc)
    elif isinstance(location, ir.FusedLoc):
        for part in location.locations:
            yield from _numbers(part)
    elif isinstance(location, ir.CallSiteLoc):
        yield from _numbers(location.callee)

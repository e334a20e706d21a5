# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Contractions that share an operand: reading them, and finding which ones do."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.axes import Axis, Group, Index, index_leaves, leaves, resolve
from prepass.ir.contraction import Contraction, contraction_result, read_contraction
from prepass.ir.expressions import Read, as_constant, descend, element_type, type_of
from prepass.ir.horizontal.weights import Weights
from prepass.ir.match import NoMatch
from prepass.ir.sums import reduces


@dataclass(frozen=True)
class Member:
    """A contraction of the shared operand with a weight.

    Attributes:
      result: The contraction's result, over the axes that all else is read along.
      shared: The shared operand, in the type in which it is multiplied, as what it is moved from, nearest first.
      source: The same, as far up as it only moves and is cast.
      weight: The other operand.
      k: The contracted axes.
    """

    op: ir.Operation
    result: Read
    shared: tuple[Read, ...]
    source: Read
    weight: Read
    axes: Group

    @property
    def k(self) -> Group:
        """The contracted axes, in the order of the shared operand."""
        contracted = leaves(self.axes)
        return tuple(axis for axis in index_leaves(self.source.index) if axis in contracted)

    @property
    def m(self) -> Group:
        """The axes of the shared operand that the result has, in the order of the shared operand."""
        contracted = leaves(self.axes)
        return tuple(axis for axis in index_leaves(self.source.index) if axis not in contracted)

    @property
    def n(self) -> Group:
        """The axes of the weight that the result has, in the order of the contraction's result."""
        rows = self.m
        return tuple(axis for axis in index_leaves(self.result.index) if axis not in rows)


@dataclass(frozen=True)
class _Operand:
    """An operand of a contraction: what is multiplied, and where it comes from, nearest first; see `Member`."""

    reads: tuple[Read, ...]
    source: Read
    types: tuple[str, ...]


def common_read(members: Sequence[Member]) -> Read:
    """The shared operand of the first member, as near to all of them as they have it in common.

    Further up it may be laid out less well.
    """
    others = [{read.value for read in member.shared} for member in members[1:]]
    first = members[0].shared
    return next((read for read in first if all(read.value in values for values in others)), first[-1])


def find_groups(ops: Iterable[ir.Operation], weights: Weights) -> list[list[ir.Operation]]:
    """The contractions that share an operand with an earlier or later one, in order, each in one group."""
    groups: dict[Hashable, list[ir.Operation]] = {}
    for op in ops:
        found = contraction_result(op) if reduces(op) else None
        if found is None:
            continue
        result, contraction = found
        for key in dict.fromkeys(_key(operand, contraction, op) for operand in _operands(result, contraction, weights)):
            groups.setdefault(key, []).append(op)
    taken: set[ir.Operation] = set()
    found_groups = []
    for group in sorted(groups.values(), key=len, reverse=True):
        rest = [op for op in group if op not in taken]
        if len(rest) > 1:
            taken.update(rest)
            found_groups.append(rest)
    return found_groups


def shared_source(ops: Sequence[ir.Operation], weights: Weights) -> ir.Value:
    """The tensor that all contractions of a group read."""
    sources = []
    for op in ops:
        result, contraction = contraction_result(op) or (None, None)
        if result is None or contraction is None:
            raise NoMatch("it is no contraction", op)
        sources.append([operand.source.value for operand in _operands(result, contraction, weights)])
    return next(value for value in sources[0] if all(value in others for others in sources))


def lone_source(op: ir.Operation, weights: Weights) -> ir.Value | None:
    """The tensor that `op` contracts with a constant or parameter, None when it is no such contraction."""
    result, contraction = contraction_result(op) or (None, None)
    if result is None or contraction is None:
        return None
    operands = _both_operands(result, contraction)
    if None in operands:
        return None
    sources = [operand.source.value for operand in operands if not weights.is_constant(operand.source.value)]
    return sources[0] if len(sources) == 1 else None


def read_member(op: ir.Operation, index: Index, source: ir.Value) -> Member:
    """The contraction `op` at `index` of its result, as one of `source` with a weight.

    Raises NoMatch when it is not the plain contraction of two tensors that share no axis but the contracted ones.
    """
    result = Read(op.results[0], index)
    contraction = read_contraction(result)
    if contraction is None or as_constant(contraction.init) != 0:
        raise NoMatch("it accumulates onto a tensor", op)
    accumulator = element_type(op.results[0])
    if any(type_of(expr) != accumulator for expr in (contraction.lhs, contraction.rhs)):
        raise NoMatch("its products are rounded before they are added", op)
    operands = _both_operands(result, contraction)
    shared, weight = operands if operands[0] and operands[0].source.value == source else operands[::-1]
    if shared is None or weight is None or shared.source.value != source:
        raise NoMatch("an operand is computed inside the contraction", op)
    member = Member(op, result, shared.reads, shared.source, weight.reads[-1], contraction.axes)
    _check_axes(member)
    return member


def _check_axes(member: Member) -> None:
    m, k = member.m, set(member.k)
    rows = set(m)
    columns = set(index_leaves(member.weight.index))
    result = index_leaves(member.result.index)
    if k != set(leaves(member.axes)) or not k <= columns:
        raise NoMatch("a dim is summed over one operand only", member.op)
    if rows & columns:
        raise NoMatch("both operands have a batch dim", member.op)
    if set(result) != rows | (columns - k) or len(result) != len(set(result)):
        raise NoMatch("the dims of the result are not those of the operands", member.op)


def _operands(result: Read, contraction: Contraction, weights: Weights) -> list[_Operand]:
    """The operands that a call can change; those that are computed inside the contraction are left out."""
    found = _both_operands(result, contraction)
    return [operand for operand in found if operand is not None and not weights.is_constant(operand.source.value)]


def _both_operands(result: Read, contraction: Contraction) -> tuple[_Operand | None, _Operand | None]:
    """The operands; None for one that is computed."""
    left, right = (
        [part for part in descend(expr) if isinstance(part, Read)] for expr in (contraction.lhs, contraction.rhs)
    )
    if not left or not right:
        return None, None
    everywhere = {*index_leaves(result.index), *leaves(contraction.axes)}
    return _operand(left, right, everywhere), _operand(right, left, everywhere)


def _operand(reads: Sequence[Read], others: Sequence[Read], everywhere: set[Axis]) -> _Operand:
    """An operand as far up as the axes of the contraction, `everywhere`, are still in one of the two."""
    missing = everywhere.difference(index_leaves(reads[-1].index), index_leaves(others[-1].index))
    needed = missing.intersection(index_leaves(reads[0].index)) | set(index_leaves(reads[-1].index))
    source = [read for read in reads if needed.issubset(index_leaves(read.index))][-1]
    types = [str(element_type(read.value)) for read in reads[: reads.index(source) + 1]]
    same = [read for read, type_ in zip(reads, itertools.takewhile(types[0].__eq__, types), strict=False)]
    changed = tuple(type_ for type_, _ in itertools.groupby(types))
    return _Operand(tuple(same), source, changed)


def _key(operand: _Operand, contraction: Contraction, op: ir.Operation) -> Hashable:
    """What is equal for contractions that read one operand alike."""
    contracted = set(leaves(contraction.axes))
    roles = _roles(operand.source.index, contracted)
    return operand.source.value, operand.types, roles, element_type(op.results[0]), op.block


def _roles(index: Index, contracted: set[Axis]) -> Hashable:
    """For each dim the runs of kept and of contracted axes."""
    dims = []
    for group in resolve(index):
        runs: list[tuple[bool, list[int | None]]] = []
        for axis in group:
            if runs and runs[-1][0] == (axis in contracted):
                runs[-1][1].append(axis.extent)
            else:
                runs.append((axis in contracted, [axis.extent]))
        dims.append(tuple((role, None if None in sizes else math.prod(filter(None, sizes))) for role, sizes in runs))
    return tuple(dims)

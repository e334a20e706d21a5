# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Truncations on the way from a wide sum to its readers, and carrying the wide value past them.

The mean and the variance of a norm are sums that are divided, offset and rooted, and then combined with the tensor
they are of. Truncated in between they overflow or lose what the wide sum had gained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from iree.compiler import ir

from prepass.ir.casts.widen import is_float, match_widenable, widen_body
from prepass.ir.elementwise import (
    VIEWS,
    Fusion,
    empty_like,
    is_broadcast,
    is_elementwise,
    keeps_dims,
    moves_only,
    rebuild_view,
    tensor_inputs,
)
from prepass.ir.emit import constant, erase_dead_producers, generic
from prepass.ir.expressions import element_type, indexing_maps
from prepass.ir.match import NoMatch, defining_op
from prepass.ir.sums import match_sum, reduces

Role = Literal["statistic", "normalized"]
Reach = Literal["none", "statistics", "norms"]


@dataclass
class WideValue:
    """What a narrow tensor is the truncation of.

    Attributes:
      role: A statistic is computed from sums alone. A normalized tensor has been combined with one.
      value: The wide tensor; None for a reshape that is yet to be built.
      count: How many terms the sum has, when it is the sum itself.
    """

    role: Role
    value: ir.Value | None = None
    count: int | None = None


class WideValues:
    """The narrow tensors of a program that are known to be truncations of wide ones.

    Give it the ops of a program in order, for it knows only what it has seen.
    """

    def __init__(self, reach: Reach, wide: ir.Type) -> None:
        self._reach = reach
        self._wide = wide
        self._known: dict[ir.Value, WideValue] = {}
        self._statistics: dict[ir.Value, bool] = {}

    def add(self, narrow: ir.Value, wide: WideValue) -> None:
        """Remember what `narrow` is the truncation of."""
        if self._reach != "none":
            self._known[narrow] = wide

    def wide(self, value: ir.Value, *roles: Role) -> ir.Value:
        """The wide tensor that `value` is the truncation of when it has one of the roles, or itself."""
        known = self._known.get(value)
        if known is None or known.role not in roles:
            return value
        if known.value is None:
            view = defining_op(value)
            with ir.InsertionPoint(view), view.location:
                known.value = rebuild_view(view, self.wide(view.operands[0], *roles))
        return known.value

    def see_view(self, view: ir.Operation) -> None:
        """Remember that a reshape of a truncation is one.

        Ops before and after a reshape that splits or joins dims are not fused, and the tensor between them is stored,
        which is to be in the narrow type.
        """
        known = self._known.get(view.operands[0])
        if known is not None and (known.role == "statistic" or keeps_dims(view)):
            self._known[view.result] = WideValue(known.role, count=known.count)

    def match_role(self, op: ir.Operation) -> Role | None:
        """What an elementwise op makes of a wide value when it computes in the wide type too.

        None when it reads no such value or is to truncate it, a `NoMatch` when its body cannot be widened.
        """
        role = self._role(op)
        if role is not None:
            match_widenable(op, element_type(op.result))
        return role

    def match_extended(self, op: ir.Operation) -> ir.Type | None:
        """The type from which an elementwise op that computes wide extends a statistic that was truncated to it."""
        if self._reach == "none" or element_type(op.result) != self._wide:
            return None
        known = {element_type(v) for v in tensor_inputs(op) if v in self._known and self._role_of(v) == "statistic"}
        if len(known) != 1:
            return None
        (narrow,) = known
        match_widenable(op, narrow)
        return narrow

    def build_wide(self, op: ir.Operation, narrow: ir.Type) -> ir.Value:
        """An elementwise op that computes in the wide type, from wide values where they are known."""
        roles = ("statistic",) if element_type(op.result) == self._wide else ("statistic", "normalized")
        return self._build(op, [self.wide(value, *roles) for value in tensor_inputs(op)], narrow)

    def count_of(self, op: ir.Operation) -> int | None:
        """How many terms the sum has that `op` moves without computing."""
        known = self._known.get(op.operands[0])
        return known.count if known is not None and moves_only(op) else None

    def _build(self, op: ir.Operation, inputs: Sequence[ir.Value], narrow: ir.Type) -> ir.Value:
        counts = [known.count if (known := self._known.get(v)) else None for v in tensor_inputs(op)]
        fused = Fusion()
        elements = [
            fused.element(value, map_, fuse=value != old and self._recomputes(value))
            for value, old, map_ in zip(inputs, tensor_inputs(op), indexing_maps(op) or [], strict=False)
        ]

        def body(arguments: Sequence[ir.Value]) -> ir.Value:
            values = [element(arguments) for element in elements]
            init = arguments[-1]
            (result,) = widen_body(op, [*values, init], narrow, self._wide)
            for value, count in zip(values, counts, strict=True):
                if count is not None:
                    _restore_count(value, count, narrow)
            return result

        maps = [*fused.maps, (indexing_maps(op) or [])[-1]]
        return generic(fused.inputs, empty_like(op.operands[-1], self._wide), maps, body)

    def _recomputes(self, value: ir.Value) -> bool:
        """Whether a wide value is computed again where it is read, so that no wide tensor of full size is stored."""
        op = defining_op(value)
        if op is None or op.name != "linalg.generic" or not is_elementwise(op):
            return False
        inputs = range(len(tensor_inputs(op)))
        return not self._is_wide_statistic(value) or all(is_broadcast(op, number) for number in inputs)

    def _role(self, op: ir.Operation) -> Role | None:
        if self._reach == "none" or not is_float(element_type(op.result)):
            return None
        inputs = [value for value in tensor_inputs(op) if not _is_uniform(value)]
        if not inputs:
            return None
        roles = [self._role_of(value) for value in inputs]
        if all(role == "statistic" for role in roles):
            return "statistic"
        known = [self._known.get(value) for value in inputs]
        if self._reach != "norms" or not any(known):
            return None
        if any(found and found.role == "statistic" for found in known):
            return "normalized"
        others = [n for n, v in enumerate(tensor_inputs(op)) if not _is_uniform(v) and v not in self._known]
        return "normalized" if others and all(is_broadcast(op, n) for n in others) else None

    def _role_of(self, value: ir.Value) -> Role | None:
        known = self._known.get(value)
        if known is not None:
            return known.role
        return "statistic" if self._is_wide_statistic(value) else None

    def _is_wide_statistic(self, value: ir.Value) -> bool:
        if element_type(value) != self._wide:
            return False
        if value not in self._statistics:
            self._statistics[value] = self._computes_statistic(value)
        return self._statistics[value]

    def _computes_statistic(self, value: ir.Value) -> bool:
        op = defining_op(value)
        if op is None:
            return False
        if op.name in VIEWS:
            return self._is_wide_statistic(op.operands[0])
        if reduces(op):
            try:
                return match_sum(op).is_of_one_tensor
            except NoMatch:
                return False
        if not is_elementwise(op):
            return False
        inputs = [operand for operand in tensor_inputs(op) if not _is_uniform(operand)]
        return bool(inputs) and all(self._is_wide_statistic(operand) for operand in inputs)


def _is_uniform(value: ir.Value) -> bool:
    """Whether all elements of a tensor are one number, which tells nothing of where a value comes from."""
    op = defining_op(value)
    if op is None:
        return False
    if op.name == "arith.constant":
        attribute = op.attributes["value"]
        return isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat
    return op.name in ("linalg.fill", "tensor.splat", "tensor.empty")


def _restore_count(argument: ir.Value, count: int, narrow: ir.Type) -> None:
    """Divide a sum by the number of its terms where the program divides by what is left of that in the narrow type.

    So a mean of 2^18 numbers is one, although that is infinity in f16.
    """
    for use in argument.uses:
        op = use.owner.operation
        exact = {"arith.divf": float(count), "arith.mulf": 1.0 / count}.get(op.name)
        if exact is None or op.operands[0] != argument:
            continue
        divisor = defining_op(op.operands[1])
        if divisor is None or divisor.name != "arith.constant":
            continue
        if ir.FloatAttr(divisor.attributes["value"]).value == ir.FloatAttr.get(narrow, exact).value:
            with ir.InsertionPoint(op), op.location:
                op.operands[1] = constant(exact, argument.type)
            erase_dead_producers([divisor.result])

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recognizing attention in a program: its operands, loops, scale and mask."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

from iree.compiler import ir

from prepass.ir.attention.loops import Loops, find_loops
from prepass.ir.attention.operands import Source, sources
from prepass.ir.attention.scores import Factor, Scores, match_scores
from prepass.ir.attention.softmax import Softmax, activation_in, computes_softmax, match_softmax
from prepass.ir.axes import Group, Index, index_leaves, leaves
from prepass.ir.contraction import Contraction, contraction_result
from prepass.ir.emit import Extents
from prepass.ir.expressions import Expr, Read, as_constant, axes_of
from prepass.ir.match import NoMatch

_SEARCH_LIMIT = 1000


@dataclass(frozen=True)
class Attention:
    """softmax(function(scale · Q Kᵀ) + mask) V.

    Attributes:
      query, key, value: What the operands are read from, and the dims they are brought to.
      loops: The loops of the op.
      scale: The product of these factors.
      function: Applied to the scaled scores, None for the identity.
      mask: Added to the scores, f32, or None.
      zero_if_masked: Whether rows that the mask makes -inf are 0, not NaN.
      result: The result of the program's contraction, read along `loops`.
      element_type: Of Q, K and V.
    """

    query: tuple[Source, Index]
    key: tuple[Source, Index]
    value: tuple[Source, Index]
    loops: Loops
    scale: tuple[Factor, ...]
    function: Expr | None
    mask: Expr | None
    zero_if_masked: bool
    result: Read
    element_type: ir.Type

    @property
    def extents(self) -> Extents:
        """Where the extents of the loops are found."""
        return Extents([source.read for source, _ in (self.query, self.key, self.value)])


def match_attention(op: ir.Operation, fill_limit: float) -> Attention | None:
    """The attention whose weighted sum of values `op` computes.

    None when no softmax feeds `op`. Raises NoMatch when one does, or when
    something alike does, and it cannot be raised.
    """
    found = contraction_result(op)
    if found is None:
        return None
    result, contraction = found
    softmax, values = _probabilities(contraction)
    if softmax is None or values is None:
        return None
    if as_constant(contraction.init) != 0:
        raise NoMatch("the contraction with the values accumulates onto a tensor", op)
    scores = match_scores(softmax.scores, contraction.axes, fill_limit, softmax.op)
    if not leads_only_to(softmax.op, op):
        raise NoMatch("the probabilities have another use", softmax.op)
    if not leads_only_to(scores.contraction.op, op):
        raise NoMatch("the scores have another use", scores.contraction.op)
    if scores.mask is not None and not axes_of(scores.mask):
        raise NoMatch("the mask is one number for all scores", softmax.op)
    attention = _arrange(result, values, scores, contraction.axes, op)
    # Without a mask no score is -inf.
    return replace(attention, zero_if_masked=softmax.zero_if_masked and scores.mask is not None)


def _probabilities(contraction: Contraction) -> tuple[Softmax | None, Expr | None]:
    """The softmax that feeds a contraction and the operand it weighs."""
    operands = (contraction.lhs, contraction.rhs)
    for expr, values in (operands, operands[::-1]):
        softmax = match_softmax(expr, contraction.axes, contraction.op)
        if softmax is not None:
            return softmax, values
    for expr in operands:
        activation = activation_in(expr)
        if activation is not None:
            raise NoMatch(f"an activation ({activation}), not a softmax, feeds the contraction", contraction.op)
    return None, None


def leads_only_to(op: ir.Operation, root: ir.Operation) -> bool:
    """Whether everything computed from `op` is for `root`, or only asks for a size."""
    pending, seen = [op], {op}
    while pending:
        for result in pending.pop().results:
            for use in result.uses:
                user = use.owner.operation
                if user == root or user in seen or user.name == "tensor.dim":
                    continue
                if not len(user.results) or len(seen) > _SEARCH_LIMIT:
                    return False
                seen.add(user)
                pending.append(user)
    return True


def unweighted_softmaxes(ops: list[ir.Operation], roots: list[ir.Operation]) -> list[ir.Operation]:
    """The ops among `ops` that compute a softmax none of the contractions `roots` reads."""
    return [op for op in ops if computes_softmax(op) and not any(root in roots for root in _users(op))]


def _users(op: ir.Operation) -> set[ir.Operation]:
    """What is computed from `op`, near it."""
    pending, seen = [op], {op}
    while pending and len(seen) < _SEARCH_LIMIT:
        users = {use.owner.operation for result in pending.pop().results for use in result.uses} - seen
        seen |= users
        pending.extend(users)
    return seen


def _arrange(result: Read, values: Expr, scores: Scores, keys: Group, op: ir.Operation) -> Attention:
    """Choose which tensors to read, so that nothing is expanded and as little as possible is transposed."""
    candidates = [
        sources(scores.contraction.lhs, scaled=True),
        sources(scores.contraction.rhs, scaled=True),
        sources(values, scaled=False),
    ]
    if not all(candidates):
        raise NoMatch("Q, K or V is computed inside the contraction", op)
    element = _common_type(candidates)
    if not isinstance(element, (ir.F16Type, ir.BF16Type, ir.F32Type)):
        raise NoMatch(f"attention does not compute in {element}", op)
    chosen = [[s for s in found if s.element_type == element] or found[-1:] for found in candidates]
    mask_axes = axes_of(scores.mask) if scores.mask is not None else set()
    best: tuple[tuple[float, ...], Attention] | None = None
    for query, key, value in itertools.product(*chosen):
        loops = find_loops(query.read, key.read, value.read, result, mask_axes)
        if loops is None or set(leaves(loops.k2)) != set(leaves(keys)):
            continue
        if set(leaves(loops.k1)) != set(leaves(scores.contraction.axes)):
            continue
        attention = _attention((query, key, value), loops, element, scores, result)
        cost = _cost(attention)
        if best is None or cost < best[0]:
            best = cost, attention
    if best is None:
        raise NoMatch("the dims of Q, K, V and the result do not line up as attention", op)
    attention = best[1]
    if not all(attention.extents.known(axis) for axis in _all_axes(attention)):
        raise NoMatch("a dynamic size cannot be computed from Q, K and V", op)
    return attention


def _common_type(candidates: list[list[Source]]) -> ir.Type:
    """The narrowest type all operands can be read in without rounding."""
    common = set.intersection(*({source.element_type for source in found} for found in candidates))
    if common:
        return min(common, key=lambda type_: ir.FloatType(type_).width)
    return max((found[-1].element_type for found in candidates), key=lambda type_: ir.FloatType(type_).width)


def _attention(
    operands: tuple[Source, Source, Source], loops: Loops, element: ir.Type, scores: Scores, result: Read
) -> Attention:
    query, key, value = operands
    return Attention(
        query=(query, loops.query_dims(query.read)),
        key=(key, loops.key_dims(key.read)),
        value=(value, loops.value_dims(value.read)),
        loops=loops,
        scale=(*scores.scale, *query.factors, *key.factors),
        function=scores.function,
        mask=scores.mask,
        zero_if_masked=False,
        result=result,
        element_type=element,
    )


def _cost(attention: Attention) -> tuple[float, ...]:
    """Elements read, then copies made; the tensors furthest up, so that what only moves data drops out, come first."""
    operands = (attention.query, attention.key, attention.value)
    elements = sum(math.prod(a.extent or 64 for a in index_leaves(source.read.index)) for source, _ in operands)
    copies = sum(index_leaves(source.read.index) != index_leaves(dims) for source, dims in operands)
    return elements, copies, -sum(source.depth for source, _ in operands)


def _all_axes(attention: Attention) -> Group:
    return tuple(axis for loop in attention.loops.all for axis in loop)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arithmetic of one channel: a sum of two products, each of a channel and an entry of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from iree.compiler import ir

from prepass.ir.elementwise import VIEWS
from prepass.ir.expressions import FLOAT_CASTS, Apply
from prepass.ir.match import defining_op, yielded
from prepass.ir.rope.elements import READERS, Element, Node, expand
from prepass.ir.sums import reduces

_LONGEST_CHAIN = 64
_SUMS = ("arith.addf", "arith.subf")
_AROUND_PRODUCTS = (*FLOAT_CASTS, "arith.negf")


class _Any(Enum):
    ANY = "any op"


_ANY = _Any.ANY
_Found = tuple[ir.Operation, ir.Operation] | _Any | None


@dataclass(frozen=True)
class Factor:
    """A value seen through what moves it, extends it and negates it.

    Attributes:
      node: As the program has it.
      views: What it is a view of, nearest first: the node there, and the ops to apply to it.
    """

    node: Node
    views: tuple[tuple[Node, tuple[Apply, ...]], ...]

    def rebuilt(self, depth: int, leaf: Node | None = None) -> Node:
        """The value, read at one of the views, or from `leaf` in its place."""
        node, wrappers = self.views[depth]
        return _wrap(node if leaf is None else leaf, wrappers)

    def negations(self, depth: int) -> int:
        """How often the value is negated above a view."""
        return sum(wrapper.name == "arith.negf" for wrapper in self.views[depth][1])


@dataclass(frozen=True)
class Product:
    """A term of the sum.

    Attributes:
      wrappers: Applied to the product: casts and negations, outermost first.
      op: The multiplication.
    """

    wrappers: tuple[Apply, ...]
    op: Apply
    factors: tuple[Factor, Factor]
    negated: bool

    def rebuilt(self, factors: tuple[Node, Node]) -> Node:
        """The product of other factors."""
        return _wrap(Apply(self.op.name, factors, self.op.type, self.op.attributes), self.wrappers)


@dataclass(frozen=True)
class Sum:
    """A channel of the result.

    Attributes:
      wrappers: Casts of the sum, outermost first.
      op: The addition or subtraction.
      ops: What was read through on the way from the result to the sum, the defining op of the result first.
    """

    wrappers: tuple[Apply, ...]
    op: Apply
    products: tuple[Product, Product]
    ops: tuple[ir.Operation, ...] = field(default=())

    def rebuilt(self, products: tuple[Node, Node]) -> Node:
        """The sum of other products."""
        return _wrap(Apply(self.op.name, products, self.op.type, self.op.attributes), self.wrappers)


def may_be_sum(value: ir.Value) -> bool:
    """Whether `match_sum` may find an element of a tensor to be one. It is quicker: it does not ask which element."""
    found = _computed_by(value, FLOAT_CASTS)
    if found is None or found is _ANY:
        return found is _ANY
    op, computed = found
    if computed.name not in _SUMS:
        return _may_choose(computed)
    return not reduces(op) and all(_may_be_product(op, operand) for operand in computed.operands)


def _may_be_product(op: ir.Operation, value: ir.Value) -> bool:
    found = _computed_in(op, value, _AROUND_PRODUCTS)
    if found is None or found is _ANY:
        return found is _ANY
    return found[1].name == "arith.mulf" or _may_choose(found[1])


def _may_choose(computed: ir.Operation) -> bool:
    return computed.name == "arith.select" or not computed.name.startswith(("arith.", "math."))


def _computed_by(value: ir.Value, through: Sequence[str]) -> _Found:
    """The linalg op and the op of its body that compute the elements of a tensor, below casts and moves.

    None where nothing does, and _ANY where it is not the same for all elements.
    """
    op = defining_op(value)
    while op is not None and op.name in VIEWS:
        op = defining_op(op.operands[0])
    if op is None or not isinstance(value.type, ir.RankedTensorType):
        return None
    if op.name.startswith("linalg.") and len(op.regions) == 1 and len(op.results) == 1:
        return _computed_in(op, yielded(op)[0], through)
    return _ANY if op.name in READERS else None


def _computed_in(op: ir.Operation, value: ir.Value, through: Sequence[str]) -> _Found:
    """The same for a value of the body of a linalg op."""
    while (computed := defining_op(value)) is not None and computed.block == op.regions[0].blocks[0]:
        if computed.name not in through:
            return op, computed
        value = computed.operands[0]
    return _computed_by(op.operands[value.arg_number], through) if isinstance(value, ir.BlockArgument) else None


def match_sum(element: Element) -> Sum | None:
    """The sum of two products that an element is, up to casts."""
    ops: list[ir.Operation] = []

    def note(op: ir.Operation) -> None:
        ops.append(op)

    node, wrappers = _descend(element, FLOAT_CASTS, note)
    if not isinstance(node, Apply) or node.name not in _SUMS:
        return None
    products = tuple(_match_product(operand) for operand in node.operands)
    first, second = products
    if first is None or second is None:
        return None
    return Sum(wrappers, node, (first, second), tuple(ops))


def _match_product(node: Node) -> Product | None:
    node, wrappers = _descend(node, _AROUND_PRODUCTS)
    if not isinstance(node, Apply) or node.name != "arith.mulf":
        return None
    negated = sum(wrapper.name == "arith.negf" for wrapper in wrappers) % 2 == 1
    left, right = (_factor(operand) for operand in node.operands)
    return Product(wrappers, node, (left, right), negated)


def _factor(node: Node) -> Factor:
    views: list[tuple[Node, tuple[Apply, ...]]] = [(node, ())]
    wrappers: list[Apply] = []
    while len(views) < _LONGEST_CHAIN:
        if isinstance(node, Apply) and node.name in ("arith.extf", "arith.negf"):
            wrappers.append(node)
            node = node.operands[0]
        elif isinstance(node, Element) and (expanded := expand(node)) is not None:
            node = expanded
        else:
            break
        views.append((node, tuple(wrappers)))
    return Factor(views[0][0], tuple(views))


def _descend(
    node: Node, names: tuple[str, ...], note: Callable[[ir.Operation], None] | None = None
) -> tuple[Node, tuple[Apply, ...]]:
    wrappers: list[Apply] = []
    for _ in range(_LONGEST_CHAIN):
        if isinstance(node, Apply) and node.name in names:
            wrappers.append(node)
            node = node.operands[0]
        elif isinstance(node, Element) and (expanded := expand(node)) is not None:
            op = defining_op(node.value)
            if note is not None and op is not None:
                note(op)
            node = expanded
        else:
            break
    return node, tuple(wrappers)


def _wrap(node: Node, wrappers: tuple[Apply, ...]) -> Node:
    for wrapper in reversed(wrappers):
        node = Apply(wrapper.name, (node,), wrapper.type, wrapper.attributes)
    return node

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conditions over the figures of a kernel, for `--fail-if`.

    condition  ::= conjunction (`or` conjunction)*
    conjunction::= negation (`and` negation)*
    negation   ::= `not` negation | comparison
    comparison ::= sum ((`>` | `>=` | `<` | `<=` | `==` | `!=`) sum)?
    sum        ::= product ((`+` | `-`) product)*
    product    ::= factor ((`*` | `/`) factor)*
    factor     ::= number | metric | `-` factor | `(` condition `)`
    metric     ::= [`old.`] [`loop.`] name

Without a comparison, a value counts as true when it is not 0. `old.` is the kernel that a
kernel is compared with. A division by 0 is infinite, or no number for 0 / 0, which is in
every comparison but `!=` false.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from prepass.amdgpu.metrics import METRIC_NAMES
from prepass.errors import PrepassError, did_you_mean

OLD_PREFIX = "old."

_TOKEN = re.compile(r"\s*(?:(\d+\.?\d*|\.\d+)|([A-Za-z_][\w.]*)|(>=|<=|==|!=|[-+*/()<>]))")
_DEEPEST = 50
_COMPARISONS = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
_Values = Mapping[str, float]
_Node = Callable[[_Values], float]


@dataclass(frozen=True)
class Condition:
    """A condition.

    Attributes:
      metrics: The names it uses, those with `old.` included.
    """

    text: str
    metrics: frozenset[str]
    _evaluate: _Node

    @property
    def compares(self) -> bool:
        """Whether it speaks of the kernel that a kernel is compared with."""
        return any(name.startswith(OLD_PREFIX) for name in self.metrics)

    def holds(self, values: _Values) -> bool:
        """Whether the condition is true of a kernel's metrics.

        Raises PrepassError when a metric is not among them, as those of the cost model
        for a GPU that is not known.
        """
        for name in sorted(self.metrics):
            if name not in values:
                raise PrepassError(f"condition '{self.text}': '{name}' is not known for the kernel's GPU")
        return bool(self._evaluate(values))


def parse_condition(text: str) -> Condition:
    """Parse a condition. Raises PrepassError with the column of what is wrong."""
    parser = _Parser(text)
    node = parser.condition()
    parser.expect_end()
    return Condition(text, frozenset(parser.metrics), node)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.metrics: set[str] = set()

    def condition(self) -> _Node:
        node = self.conjunction()
        while self.take("or"):
            node = _either(node, self.conjunction())
        return node

    def conjunction(self) -> _Node:
        node = self.negation()
        while self.take("and"):
            node = _both(node, self.negation())
        return node

    def negation(self) -> _Node:
        if self.take("not"):
            inner = self.nested(self.negation)
            return lambda values: not inner(values)
        return self.comparison()

    def comparison(self) -> _Node:
        left = self.sum()
        if symbol := self.take(*_COMPARISONS):
            node = _binary(_COMPARISONS[symbol], left, self.sum())
            if self.peek() in _COMPARISONS:
                raise self.error("comparisons cannot be chained; join them with 'and'")
            return node
        return left

    def sum(self) -> _Node:
        node = self.product()
        while symbol := self.take("+", "-"):
            node = _binary(operator.add if symbol == "+" else operator.sub, node, self.product())
        return node

    def product(self) -> _Node:
        node = self.factor()
        while symbol := self.take("*", "/"):
            node = _binary(operator.mul if symbol == "*" else _divide, node, self.factor())
        return node

    def factor(self) -> _Node:
        if self.take("-"):
            inner = self.nested(self.factor)
            return lambda values: -inner(values)
        if self.take("("):
            node = self.nested(self.condition)
            if not self.take(")"):
                raise self.error("expected ')'")
            return node
        token = self.peek()
        if token is None or token in ("and", "or", "not") or not re.match(r"[\w.]", token):
            raise self.error("expected a metric or a number")
        if token[0].isdigit() or token[0] == ".":
            self.take(token)
            number = float(token)
            return lambda _: number
        if token.removeprefix(OLD_PREFIX) not in METRIC_NAMES:
            near = did_you_mean(token.removeprefix(OLD_PREFIX), METRIC_NAMES)
            raise self.error(f"unknown metric '{token}'{near}")
        self.take(token)
        self.metrics.add(token)
        return lambda values: values[token]

    def nested(self, parse: Callable[[], _Node]) -> _Node:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error("too deeply nested")
        node = parse()
        self.depth -= 1
        return node

    def expect_end(self) -> None:
        if self.peek() is not None or self.text[self.at :].strip():
            raise self.error("expected an operator or the end")

    def peek(self) -> str | None:
        match = _TOKEN.match(self.text, self.at)
        return match[0].strip() if match else None

    def take(self, *tokens: str) -> str | None:
        match = _TOKEN.match(self.text, self.at)
        if match is None or match[0].strip() not in tokens:
            return None
        self.at = match.end()
        return match[0].strip()

    def error(self, message: str) -> PrepassError:
        column = self.at + len(self.text[self.at :]) - len(self.text[self.at :].lstrip()) + 1
        return PrepassError(f"condition '{self.text}', column {column}: {message}")


def _either(left: _Node, right: _Node) -> _Node:
    return lambda values: bool(left(values)) or bool(right(values))


def _both(left: _Node, right: _Node) -> _Node:
    return lambda values: bool(left(values)) and bool(right(values))


def _binary(apply: Callable[[float, float], float], left: _Node, right: _Node) -> _Node:
    return lambda values: apply(left(values), right(values))


def _divide(a: float, b: float) -> float:
    if b:
        return a / b
    return math.copysign(math.inf, a) if a else math.nan

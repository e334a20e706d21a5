# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar arithmetic on numbers known at compile time, done only where every step of it is exact.

So the number is the one that any target computes, whatever way it rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from iree.compiler import ir

from prepass.ir.match import defining_op

Number = float | int


def scalar_constant(value: ir.Value) -> Number | None:
    """The number of a scalar constant."""
    op = defining_op(value)
    if op is None or op.name != "arith.constant":
        return None
    return _number(op.attributes["value"])


def splat_constant(value: ir.Value) -> Number | None:
    """The number that all elements of a constant tensor are."""
    op = defining_op(value)
    if op is None or op.name != "arith.constant":
        return None
    attribute = op.attributes["value"]
    if not isinstance(attribute, ir.DenseElementsAttr) or not attribute.is_splat:
        return None
    return _number(attribute.get_splat_value())


def filled_number(value: ir.Value) -> Number | None:
    """The number that a tensor is filled with, as the sums of a contraction are before it."""
    op = defining_op(value)
    return scalar_constant(op.operands[0]) if op is not None and op.name == "linalg.fill" else None


def same_number(a: Number, b: Number) -> bool:
    """Whether two numbers are the same one; zeros of different sign are not."""
    return a == b and math.copysign(1, a) == math.copysign(1, b)


def body_value(op: ir.Operation, arguments: Mapping[int, Number]) -> Number | None:
    """What the body of an elementwise linalg op yields where its block arguments are these numbers.

    None when that depends on another argument or on the position, or when a
    step would be rounded.
    """
    block = op.regions[0].blocks[0]
    known: dict[ir.Value, Number] = {block.arguments[number]: value for number, value in arguments.items()}
    *body, terminator = block.operations
    for inner in (view.operation for view in body):
        value = _apply(inner, known)
        if value is not None:
            known[inner.result] = value
    return _operand(terminator.operands[0], known)


def _apply(op: ir.Operation, known: Mapping[ir.Value, Number]) -> Number | None:
    if len(op.results) != 1 or op.name not in _EXACT:
        return None
    operands = [_operand(operand, known) for operand in op.operands]
    numbers = [operand for operand in operands if operand is not None]
    if len(numbers) != len(operands):
        return None
    try:
        value = _EXACT[op.name](*numbers)
    except (ArithmeticError, ValueError):
        return None
    return value if _fits(value, op.result.type) else None


def _operand(value: ir.Value, known: Mapping[ir.Value, Number]) -> Number | None:
    return known[value] if value in known else scalar_constant(value)


def _fits(value: Number, type_: ir.Type) -> bool:
    if isinstance(type_, ir.IntegerType):
        half = 1 << (type_.width - 1)
        return isinstance(value, int) and -half <= value < half
    if not isinstance(type_, ir.FloatType):
        return False
    return same_number(ir.FloatAttr.get(type_, float(value)).value, float(value))


def _number(attribute: ir.Attribute) -> Number | None:
    if isinstance(attribute, ir.BoolAttr):
        return -int(attribute.value)
    return attribute.value if isinstance(attribute, (ir.FloatAttr, ir.IntegerAttr)) else None


def _at(point: float, value: float) -> Callable[[float], float]:
    """A function of which one value is known exactly."""

    def function(argument: float) -> float:
        if argument != point:
            raise ValueError("rounded")
        return value

    return function


def _odd(argument: float) -> float:
    """An odd function at zero, whose sign it keeps."""
    if argument != 0:
        raise ValueError("rounded")
    return argument


def _exp(argument: float) -> float:
    return 0.0 if argument == -math.inf else _at(0, 1.0)(argument)


_EXACT: dict[str, Callable[..., Number]] = {
    "arith.addf": lambda a, b: a + b,
    "arith.subf": lambda a, b: a - b,
    "arith.mulf": lambda a, b: a * b,
    "arith.divf": lambda a, b: a / b,
    "arith.negf": lambda a: -a,
    "arith.maximumf": max,
    "arith.minimumf": min,
    "arith.extf": lambda a: a,
    "arith.truncf": lambda a: a,
    "arith.sitofp": float,
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.extsi": lambda a: a,
    "arith.trunci": lambda a: a,
    "math.absf": abs,
    "math.exp": _exp,
    "math.sin": _odd,
    "math.cos": _at(0, 1.0),
    "math.tanh": _odd,
    "math.erf": _odd,
}

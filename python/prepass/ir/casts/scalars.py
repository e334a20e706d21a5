# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar casts and constants, as they stand in the bodies of linalg ops."""

from __future__ import annotations

import math

from iree.compiler import ir

from prepass.ir.casts.widen import cast, width
from prepass.ir.emit import constant
from prepass.ir.match import NoMatch, defining_op

SCALAR_OPS = {"arith.truncf", "arith.extf", "math.sqrt", "math.rsqrt", "arith.divf"}


def simplified(op: ir.Operation, *, exact: bool) -> ir.Value | None:
    """What computes the same as a scalar op of SCALAR_OPS with less, at the current insertion point.

    None where there is nothing to simplify. Raises NoMatch where it would change a rounding and `exact` forbids it.
    """
    if not isinstance(op.result.type, ir.FloatType):
        return None
    if op.name == "arith.divf":
        return _multiplied(op, exact)
    value = constant_float(op.operands[0])
    if value is not None:
        return _folded(op, value, exact)
    return _joined(op, exact) if op.name.startswith("arith.") else None


def constant_float(value: ir.Value) -> float | None:
    """The number of a scalar float constant."""
    op = defining_op(value)
    if op is None or op.name != "arith.constant" or not isinstance(value.type, ir.FloatType):
        return None
    return ir.FloatAttr(op.attributes["value"]).value


def _folded(op: ir.Operation, value: float, exact: bool) -> ir.Value | None:
    # A root of a double, rounded to f32 or less, is the correctly rounded root.
    if op.name in ("math.sqrt", "math.rsqrt"):
        if width(op.result.type) > 32 or value < 0 or (op.name == "math.rsqrt" and value == 0):
            return None
        value = math.sqrt(value)
    if op.name == "math.rsqrt":
        if exact:
            raise NoMatch("how a target rounds math.rsqrt is not known", op)
        value = 1 / value
    rounds = ir.FloatAttr.get(op.result.type, value).value != value
    if exact and rounds and str(op.result.type) == "bf16":
        # llvm-cpu computes bf16 in f32, and drops this rounding when the operation that reads it is in the same body.
        raise NoMatch("whether a target rounds to bf16 in between is not known", op)
    return constant(value, op.result.type)


def _joined(op: ir.Operation, exact: bool) -> ir.Value | None:
    """A cast of a cast as one, or none."""
    inner = defining_op(op.operands[0])
    if inner is None or inner.name not in ("arith.extf", "arith.truncf"):
        return None
    if inner.name == "arith.truncf" and exact:
        raise NoMatch("it would drop a rounding, which mode=exact keeps", op)
    source = inner.operands[0]
    if source.type != op.result.type and width(source.type) == width(op.result.type):
        return None  # f16 to bf16 is no cast of its own.
    if inner.name == "arith.truncf" and op.name == "arith.extf" and width(source.type) < width(op.result.type):
        return None
    return cast(source, op.result.type)


def _multiplied(op: ir.Operation, exact: bool) -> ir.Value | None:
    """Division by a constant as multiplication."""
    divisor = constant_float(op.operands[1])
    if divisor is None or constant_float(op.operands[0]) is not None or divisor == 0 or not math.isfinite(divisor):
        return None
    type_ = op.result.type
    reciprocal = ir.FloatAttr.get(type_, 1 / divisor).value
    if reciprocal == 0 or math.isinf(reciprocal):
        return None
    if reciprocal * divisor != 1 or abs(math.frexp(divisor)[0]) != 0.5:
        if exact:
            raise NoMatch("the divisor is no power of two", op)
        if abs(reciprocal) < _SMALLEST_NORMAL.get(str(type_), 0.0):
            raise NoMatch("the reciprocal of the divisor is too small to have all its digits", op)
    attributes = {name: op.attributes[name] for name in op.attributes}
    operands = [op.operands[0], constant(reciprocal, type_)]
    return ir.Operation.create("arith.mulf", [type_], operands, attributes).result


_SMALLEST_NORMAL = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126}

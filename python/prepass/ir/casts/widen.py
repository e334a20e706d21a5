# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Computing the body of a linalg op in a wider type than it is written in.

Integers are widened only where wrapping around commutes with it, so that the low bits are those of the narrow
computation. Floats lose the roundings between their ops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iree.compiler import ir

from prepass.ir.emit import constant
from prepass.ir.match import NoMatch, defining_op

_SAME_TYPE = {
    f"arith.{name}"
    for name in ("addf", "subf", "mulf", "divf", "negf", "maximumf", "minimumf", "maxnumf", "minnumf", "select")
}
_RING = {"arith.addi", "arith.subi", "arith.muli"}
_NARROWING = {"arith.truncf", "arith.trunci"}
_WIDENING = {"arith.extf", "arith.extsi", "arith.extui"}
_FROM_INTEGER = {"arith.sitofp", "arith.uitofp"}
# These read a narrow float and yield something else, at least as well from a wide one.
_PREDICATES = {"arith.cmpf"}


def is_float(type_: ir.Type) -> bool:
    """Whether a type is a float type, of any width."""
    return isinstance(type_, ir.FloatType)


def width(type_: ir.Type) -> int:
    """The bits of a float or integer type."""
    return type_.width


def cast(value: ir.Value, type_: ir.Type) -> ir.Value:
    """`value` in a wider or narrower float or integer type, at the current insertion point."""
    if value.type == type_:
        return value
    wider = width(type_) > width(value.type)
    if is_float(type_):
        name = "arith.extf" if wider else "arith.truncf"
    else:
        name = "arith.extsi" if wider else "arith.trunci"
    return ir.Operation.create(name, [type_], [value]).result


def match_widenable(op: ir.Operation, narrow: ir.Type) -> None:
    """Raise NoMatch when `widen_body` cannot compute the body of a linalg op in a type wider than `narrow`."""
    *body, _ = op.regions[0].blocks[0].operations
    for inner in (view.operation for view in body):
        if not _is_widenable(inner, narrow):
            raise NoMatch(f"{inner.name} in the body is not known to compute the same in a wider type", op)


def _is_widenable(op: ir.Operation, narrow: ir.Type) -> bool:
    if len(op.regions) or len(op.results) != 1:
        return False
    reads = [operand.type == narrow for operand in op.operands]
    yields = op.result.type == narrow
    if not any(reads):
        return True  # Cloned, or cast; what it yields is extended.
    if not is_float(narrow):
        # The high bits are not those of the narrow computation, so nothing but the low ones may be looked at.
        return (op.name in _RING and yields) or op.name in _NARROWING
    if op.name in _PREDICATES or op.name in _WIDENING or op.name in _NARROWING:
        return True
    same_type = op.name in _SAME_TYPE or op.name.startswith("math.")
    return same_type and yields


def widen_body(op: ir.Operation, arguments: Sequence[ir.Value], narrow: ir.Type, wide: ir.Type) -> list[ir.Value]:
    """Compute the body of `op` at the current insertion point.

    `arguments` stand for its block arguments, in the type that they had or wide. What the op yields as `narrow`
    is returned wide.
    """
    block = op.regions[0].blocks[0]
    values: dict[ir.Value, ir.Value] = {}

    def widened(value: ir.Value) -> ir.Value:
        if value not in values:
            values[value] = _widen_captured(value, narrow, wide)
        return values[value]

    for old, new in zip(block.arguments, arguments, strict=True):
        values[old] = cast(new, wide) if old.type == narrow else new
    *body, terminator = block.operations
    for inner in (view.operation for view in body):
        values[inner.result] = _widen_op(inner, widened, narrow, wide)
    return [widened(operand) for operand in terminator.operands]


def _widen_op(op: ir.Operation, widened: Callable[[ir.Value], ir.Value], narrow: ir.Type, wide: ir.Type) -> ir.Value:
    operands = [widened(operand) for operand in op.operands]
    reads = any(operand.type == narrow for operand in op.operands)
    result = op.result.type
    if op.name == "arith.constant" and result == narrow:
        return _widen_constant(op, wide)
    if op.name in _NARROWING and result == narrow:
        return cast(operands[0], wide)
    if op.name in _WIDENING and reads:
        return cast(operands[0], result)
    if result == narrow and (reads or op.name in _WIDENING or op.name in _FROM_INTEGER):
        return _recreate(op, operands, wide)
    made = _recreate(op, operands, result)
    return cast(made, wide) if result == narrow else made


def _recreate(op: ir.Operation, operands: Sequence[ir.Value], type_: ir.Type) -> ir.Value:
    attributes = {name: op.attributes[name] for name in op.attributes}
    return ir.Operation.create(op.name, [type_], operands, attributes, loc=op.location).result


def _widen_constant(op: ir.Operation, wide: ir.Type) -> ir.Value:
    attribute = op.attributes["value"]
    kind = ir.FloatAttr if is_float(wide) else ir.IntegerAttr
    return constant(kind(attribute).value, wide)


def _widen_captured(value: ir.Value, narrow: ir.Type, wide: ir.Type) -> ir.Value:
    """A value from outside of the body; roundings to `narrow` there are undone as well."""
    if value.type != narrow:
        return value
    op = defining_op(value)
    if op is not None and op.name == "arith.constant":
        return _widen_constant(op, wide)
    if op is not None and op.name in _FROM_INTEGER:
        return _recreate(op, list(op.operands), wide)
    if op is not None and op.name in _NARROWING:
        return cast(op.operands[0], wide)
    return cast(value, wide)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bodies of linalg ops, copied to other loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from iree.compiler import ir

BodyOp = Callable[[ir.Operation, Mapping[ir.Value, ir.Value]], "Sequence[ir.Value] | None"]


def copy_op(op: ir.Operation, values: Mapping[ir.Value, ir.Value]) -> None:
    """Says that an op of a body is to be copied."""


def body_ops(op: ir.Operation) -> list[ir.Operation]:
    """The ops of the body of a linalg op, the terminator last."""
    return [inner.operation for inner in op.regions[0].blocks[0].operations]


def window_attributes(op: ir.Operation) -> dict[str, ir.Attribute]:
    """The strides and dilations of a named op, as far as it does not leave them to default to one."""
    return {name: op.attributes[name] for name in ("strides", "dilations") if name in op.attributes}


def structured_op(
    name: str,
    operands: Sequence[ir.Value],
    inits: int,
    attributes: Mapping[str, ir.Attribute],
    source: ir.Operation,
    special: BodyOp = copy_op,
) -> ir.Operation:
    """A linalg op whose body is a copy of that of `source`.

    `special` may give the results of an op of the body, where a copy will not do.
    """
    segments = ir.DenseI32ArrayAttr.get([len(operands) - inits, inits])
    results = [value.type for value in operands[len(operands) - inits :]]
    made = ir.Operation.create(
        name, results, operands, {**attributes, "operandSegmentSizes": segments}, regions=1, loc=source.location
    )
    arguments = source.regions[0].blocks[0].arguments
    types = [argument.type for argument in arguments]
    block = made.regions[0].blocks.append(*types, arg_locs=[source.location] * len(types))
    values = dict(zip(arguments, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        for inner in body_ops(source):
            results = special(inner, values)
            if results is None:
                copy = inner.clone()
                for number, operand in enumerate(inner.operands):
                    copy.operands[number] = values.get(operand, operand)
                results = copy.operation.results
            values.update(zip(inner.results, results, strict=True))
    return made

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Give constants with equal contents one attribute, whatever their resources are called.

Exporters name a resource after the tensor it came from, so that one table of position ids arrives under several names.
The compiler compares attributes, and a name is part of one: equal lookups stay apart in CSE, and hoisting makes a
global of each.

Before:

    %0 = arith.constant dense_resource<torch_tensor_1_77> : tensor<1x77xi64>
    %1 = arith.constant dense_resource<torch_tensor_1_77_1> : tensor<1x77xi64>
    ...
    {-# dialect_resources: { builtin: { torch_tensor_1_77: "0x0800…", torch_tensor_1_77_1: "0x0800…" } } #-}

After:

    %0 = arith.constant dense_resource<torch_tensor_1_77> : tensor<1x77xi64>
    %1 = arith.constant dense_resource<torch_tensor_1_77> : tensor<1x77xi64>

The constants are as many as before: `cse` makes one value of equal ones, and the compiler one global of equal globals
that are private and immutable. Names in the program stay, and a global that is written keeps storage of its own: only
what it is initialized with is shared.

Contents are read only of constants that share a type, shape included, with a `dense_resource` of another name, and once
each. Up to 1 KiB are compared byte by byte, more by a 256-bit hash. Memory is bounded by one copy of the largest.

Left alone when

- the contents of a resource are not in the module, as after printing with elided resources.

Source: https://mlir.llvm.org/docs/LangRef/#dialect-resources
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.constant_contents import Contents, contents_of, is_resource
from prepass.ir.match import NoMatch
from prepass.pipeline.base import Pass, PassContext

# The attribute that holds the data, by op.
_DATA = {"arith.constant": "value", "flow.tensor.constant": "value", "util.global": "initial_value"}


@dataclass(frozen=True)
class _Constant:
    """An op and the tensor it holds."""

    op: ir.Operation
    data: ir.Attribute

    def set(self, data: ir.Attribute) -> None:
        self.op.attributes[_DATA[self.op.name]] = data


def _constants(root: ir.Operation) -> list[_Constant]:
    found: list[_Constant] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        name = _DATA.get(op.name)
        if name is not None and name in op.attributes:
            data = op.attributes[name]
            if isinstance(data, ir.DenseElementsAttr) or is_resource(data):
                found.append(_Constant(op.operation, data))
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    return found


def _comparable(constants: list[_Constant]) -> Iterator[dict[ir.Attribute, list[_Constant]]]:
    """The constants of each type that has a resource and another attribute, by attribute."""
    by_type: dict[ir.Type, dict[ir.Attribute, list[_Constant]]] = {}
    for constant in constants:
        by_type.setdefault(constant.data.type, {}).setdefault(constant.data, []).append(constant)
    for by_attribute in by_type.values():
        if len(by_attribute) > 1 and any(is_resource(attribute) for attribute in by_attribute):
            yield by_attribute


def _match_contents(data: ir.Attribute, op: ir.Operation) -> Contents | None:
    contents = contents_of(data)
    if contents is None and is_resource(data):
        raise NoMatch("the contents of the resource are not in the module", op)
    return contents


@dataclass(frozen=True)
class MergeConstantsPass(Pass):
    """Give constants with equal contents one attribute, whatever their resources are called."""

    name = "prepass-merge-constants"

    def run(self, op: ir.Operation, context: PassContext) -> None:
        for by_attribute in _comparable(_constants(op)):
            kept: dict[Contents, ir.Attribute] = {}
            for data, constants in by_attribute.items():
                try:
                    contents = _match_contents(data, constants[0].op)
                except NoMatch as miss:
                    context.missed_match(miss)
                    continue
                if contents is None:
                    continue
                first = kept.setdefault(contents, data)
                if first != data:
                    self._merge(constants, first, contents, context)

    def _merge(self, constants: list[_Constant], first: ir.Attribute, contents: Contents, context: PassContext) -> None:
        context.count("merged")
        context.count("bytes", contents.size)
        for constant in constants:
            context.applied(constant.op, f"made one with an equal constant of {contents.size} bytes")
            constant.set(first)

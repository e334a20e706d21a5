# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A copy of the host's code that outlives the compiler's module.

It is taken after the phase `executable-targets`: dispatches, ranges of buffers and workgroup counts are all there,
and the kernels have the names that their assembly has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from iree.compiler import ir

from prepass.errors import PrepassError
from prepass.ir.constant_contents import read_resources


@dataclass(frozen=True)
class HostBlock:
    """A block: the numbers of its arguments, and its operations."""

    arguments: tuple[int, ...]
    operations: tuple[HostOperation, ...]


@dataclass(frozen=True)
class HostOperation:
    """An operation. Values have numbers.

    Attributes:
      attributes: Integers, strings, lists and bytes where they are those, text otherwise.
      successors: Positions of blocks in the region around it.
    """

    name: str
    operands: tuple[int, ...]
    operand_types: tuple[str, ...]
    results: tuple[int, ...]
    result_types: tuple[str, ...]
    attributes: dict[str, object] = field(hash=False)
    regions: tuple[tuple[HostBlock, ...], ...]
    successors: tuple[int, ...]

    def segment(self, number: int) -> tuple[int, ...]:
        """The operands of one of the groups that the operation has."""
        sizes = self.attributes["operandSegmentSizes"]
        start = sum(sizes[:number])
        return self.operands[start : start + sizes[number]]


@dataclass(frozen=True)
class Export:
    """A kernel as the host sees it.

    Attributes:
      count: Computes the workgroups in x, y and z from the device and the workload.
      workgroup_size: Work items in x, y and z.
      subgroup_size: Lanes of a wave; 0 when it is not said.
    """

    name: str
    count: tuple[HostBlock, ...]
    workgroup_size: tuple[int, ...]
    subgroup_size: int


@dataclass(frozen=True)
class HostProgram:
    """The host's code.

    Attributes:
      functions: By name; `public` names those that a user calls.
      initializers: In order.
      exports: By executable and name.
    """

    functions: dict[str, tuple[HostBlock, ...]]
    public: tuple[str, ...]
    initializers: tuple[tuple[HostBlock, ...], ...]
    globals: dict[str, object]
    exports: dict[tuple[str, str], Export]


def read_host(module: ir.Operation) -> HostProgram:
    """Copy the host's code out of a module that has been through `executable-targets`."""
    reader = _Reader()
    program = HostProgram({}, (), (), {}, {})
    public, initializers = [], []
    for operation in module.regions[0].blocks[0].operations:
        name = operation.operation.name
        attributes = operation.operation.attributes
        if name == "util.func":
            symbol = attributes["sym_name"].value
            program.functions[symbol] = reader.region(operation.operation.regions[0])
            # A function that says nothing of its visibility is public.
            if "sym_visibility" not in attributes or attributes["sym_visibility"].value == "public":
                public.append(symbol)
        elif name == "util.initializer":
            initializers.append(reader.region(operation.operation.regions[0]))
        elif name == "util.global":
            initial = attributes.get("initial_value")
            program.globals[attributes["sym_name"].value] = initial and _attribute(initial)
        elif name == "hal.executable":
            reader.exports(operation.operation, program.exports)
        else:
            raise PrepassError(f"simulator: unknown operation '{name}' in the host's module")
    return HostProgram(program.functions, tuple(public), tuple(initializers), program.globals, program.exports)


class _Reader:
    def __init__(self) -> None:
        self._numbers: dict[ir.Value, int] = {}

    def exports(self, executable: ir.Operation, found: dict[tuple[str, str], Export]) -> None:
        name = executable.attributes["sym_name"].value
        for variant in executable.regions[0].blocks[0].operations:
            if variant.operation.name != "hal.executable.variant":
                continue
            for operation in variant.operation.regions[0].blocks[0].operations:
                if operation.operation.name == "hal.executable.export":
                    export = self._export(operation.operation)
                    found[name, export.name] = export

    def _export(self, operation: ir.Operation) -> Export:
        attributes = operation.attributes
        size = _attribute(attributes["workgroup_size"]) if "workgroup_size" in attributes else ()
        subgroup = _attribute(attributes["subgroup_size"]) if "subgroup_size" in attributes else 0
        count = self.region(operation.regions[0]) if len(operation.regions) else ()
        return Export(attributes["sym_name"].value, count, tuple(size), subgroup)

    def region(self, region: ir.Region) -> tuple[HostBlock, ...]:
        blocks = list(region.blocks)
        return tuple(
            HostBlock(
                tuple(self._number(argument) for argument in block.arguments),
                tuple(self._operation(operation.operation, blocks) for operation in block.operations),
            )
            for block in blocks
        )

    def _operation(self, operation: ir.Operation, blocks: Sequence[ir.Block]) -> HostOperation:
        return HostOperation(
            operation.name,
            tuple(self._number(value) for value in operation.operands),
            tuple(str(value.type) for value in operation.operands),
            tuple(self._number(value) for value in operation.results),
            tuple(str(value.type) for value in operation.results),
            {name: _attribute(operation.attributes[name]) for name in operation.attributes},
            tuple(self.region(region) for region in operation.regions),
            tuple(blocks.index(successor) for successor in operation.successors),
        )

    def _number(self, value: ir.Value) -> int:
        return self._numbers.setdefault(value, len(self._numbers))


def _attribute(attribute: ir.Attribute) -> object:
    """The attribute as a Python value, or its text."""
    if isinstance(attribute, (ir.IntegerAttr, ir.FloatAttr, ir.StringAttr, ir.BoolAttr, ir.FlatSymbolRefAttr)):
        return attribute.value
    if isinstance(attribute, ir.SymbolRefAttr):
        return list(attribute.value)
    if isinstance(attribute, ir.ArrayAttr):
        return [_attribute(element) for element in attribute]
    if isinstance(attribute, ir.DenseI32ArrayAttr):
        return list(attribute)
    if isinstance(attribute, ir.AffineMapAttr):
        return [_affine(result, attribute.value.n_dims) for result in attribute.value.results]
    if str(attribute).startswith(("#util.composite<", "dense")):
        return constant_bytes(attribute)
    return str(attribute)


# The operations of affine expressions, as `scalars.affine` knows them.
_AFFINE = (
    (ir.AffineAddExpr, "+"),
    (ir.AffineMulExpr, "*"),
    (ir.AffineModExpr, "mod"),
    (ir.AffineFloorDivExpr, "floordiv"),
    (ir.AffineCeilDivExpr, "ceildiv"),
)


def _affine(expression: ir.AffineExpr, dimensions: int) -> tuple[object, ...]:
    """An affine expression as a tuple: an operation and two of these, a constant, or the position of an operand."""
    if isinstance(expression, ir.AffineConstantExpr):
        return "constant", expression.value
    if isinstance(expression, ir.AffineDimExpr):
        return "operand", expression.position
    if isinstance(expression, ir.AffineSymbolExpr):
        return "operand", dimensions + expression.position
    (name,) = (name for kind, name in _AFFINE if isinstance(expression, kind))
    return name, _affine(expression.lhs, dimensions), _affine(expression.rhs, dimensions)


def constant_bytes(attribute: ir.Attribute) -> bytes:
    """The bytes of a constant, as they lie in memory. Raises PrepassError when they are not in the module."""
    text = str(attribute)
    if text.startswith("#util.composite<"):
        # The bindings know nothing of it, but it prints one element on a line.
        elements = [line.strip().removesuffix(",") for line in text.splitlines()[1:-1]]
    else:
        elements = [text]
    # By name a resource cannot be had again: it would be another one, without data.
    names = list(dict.fromkeys(element for element in elements if element.startswith("dense_resource<")))
    blobs = read_resources(attribute) if names else []
    if len(blobs) != len(names):
        raise PrepassError(f"simulator: the data of {text[:60]} is not in the module")
    resources = dict(zip(names, blobs, strict=True))
    return b"".join(
        resources[element] if element in resources else _dense_bytes(ir.Attribute.parse(element, attribute.context))
        for element in elements
    )


def _dense_bytes(attribute: ir.Attribute) -> bytes:
    match = re.search(r"(?:tensor|vector)<(?:\d+x)*(\w+)>$", str(ir.DenseElementsAttr(attribute).type))
    if not match:
        raise PrepassError(f"simulator: a constant of type {ir.DenseElementsAttr(attribute).type} is not supported")
    if match[1] == "bf16":
        elements = ir.DenseElementsAttr(attribute)
        return _bf16_bytes(elements)
    values = np.array(attribute)
    return np.ascontiguousarray(values).tobytes()


def _bf16_bytes(elements: ir.DenseElementsAttr) -> bytes:
    # The bindings have no buffer of this type; as text every element is exact.
    if elements.is_splat:
        count = int(np.prod(ir.ShapedType(elements.type).shape))
        value = ir.FloatAttr(elements.get_splat_value()).value
        bits = int(np.array(value, np.float32).view(np.uint32)) >> 16
        return np.full(count, bits, np.uint16).tobytes()
    text = str(elements)
    hexadecimal = re.match(r'dense<"0x([0-9A-Fa-f]*)">', text)
    if hexadecimal:
        return bytes.fromhex(hexadecimal[1])
    numbers = re.findall(r"0x[0-9A-Fa-f]+|-?\d[\d.]*(?:[eE][-+]?\d+)?", text[: text.rindex(":")])
    bits = [
        int(number, 16) if number.startswith("0x") else int(np.array(float(number), np.float32).view(np.uint32)) >> 16
        for number in numbers
    ]
    return np.array(bits, np.uint16).tobytes()

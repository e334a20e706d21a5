# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a program is called with: arguments, external parameters, and the numbers that lookups allow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np
from iree.compiler import ir

from prepass.compiler.runtime import find_function
from prepass.errors import PrepassError
from prepass.ir.elementwise import is_elementwise
from prepass.ir.match import defining_op, find_ops, walk_ops
from prepass.ir.ranges import Interval, facts

_ASYNC = "$async"
_SHAPE_OPS = ("tensor.expand_shape", "tensor.collapse_shape", "tensor.cast", "tensor.extract_slice")
_INTEGER_CASTS = ("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "arith.index_castui")
# The attribute of an op that may name a parameter.
_HOLDERS = {"util.global": "initial_value", "flow.tensor.constant": "value"}
_PARAMETER = re.compile(
    r'#(?:flow\.parameter|stream\.parameter)\.named<(?:"(?P<scope>[^"]*)"::)?"(?P<key>[^"]*)"[^>]*> : '
    r"(?P<type>tensor<[^>]*>)"
)
_TENSOR = re.compile(r"tensor<((?:(?:\d+|\?)x)*)([^x>,]+)")


DTYPES: Mapping[str, np.dtype] = {
    **{f"i{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    "i1": np.dtype(np.bool_),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}


@dataclass(frozen=True)
class TensorType:
    """A shape, None where dynamic, and an element type as MLIR spells it; a scalar has no shape."""

    shape: tuple[int | None, ...]
    element: str
    is_scalar: bool = False

    @classmethod
    def parse(cls, text: str) -> TensorType:
        """Read `tensor<2x?xf16>` or a scalar type."""
        match = _TENSOR.match(text)
        if match is None:
            return cls((), text, True)
        sizes = match[1].split("x")[:-1]
        return cls(tuple(None if size == "?" else int(size) for size in sizes), match[2])

    @property
    def dtype(self) -> np.dtype:
        """The type of numpy arrays for it. Raises PrepassError for one that arrays do not have."""
        if self.element not in DTYPES:
            raise PrepassError(f"no arrays are made with elements of type {self.element}")
        return DTYPES[self.element]

    def __str__(self) -> str:
        sizes = "".join(f"{'?' if size is None else size}x" for size in self.shape)
        return self.element if self.is_scalar else f"tensor<{sizes}{self.element}>"


# For an argument that is not read and of which no type is known.
_ANYTHING = TensorType((1,), "f32")


@dataclass(frozen=True)
class Argument:
    """An argument of a function; the program says that it lies in `range`, where that is not None."""

    type: TensorType
    range: Interval | None = None


@dataclass(frozen=True)
class Parameter:
    """An external parameter."""

    scope: str
    key: str
    type: TensorType


@dataclass(frozen=True)
class Signature:
    """A function and what it needs.

    Attributes:
      elements: The element types of all its tensors.
    """

    function: str
    arguments: tuple[Argument, ...]
    parameters: tuple[Parameter, ...]
    elements: frozenset[str]


def read_signature(module: ir.Operation, function: str | None = None) -> Signature:
    """The signature of a public function of a module at a phase from `abi` to `preprocessing`.

    Raises PrepassError when the function is not there, or an argument is neither a tensor nor a number.
    """
    functions = {
        ir.StringAttr(op.attributes["sym_name"]).value: op.operation
        for op in module.regions[0].blocks[0].operations
        if op.operation.name == "util.func" and len(op.regions[0].blocks)
    }
    public = [name for name, op in functions.items() if _is_public(op)]
    name = find_function(public, function)
    implementation = functions.get(name + _ASYNC, functions[name])
    values = list(implementation.regions[0].blocks[0].arguments)
    # Fences come last.
    values = values[:-2] if name + _ASYNC in functions else values
    declared = _declared(functions[name])
    declared += [_ANYTHING] * (len(values) - len(declared))
    arguments = [_argument(value, type_) for value, type_ in zip(values, declared, strict=False)]
    with module.context, ir.Location.unknown():
        ranges = _ranges(implementation)
    return Signature(
        name,
        tuple(replace(argument, range=ranges.get(number)) for number, argument in enumerate(arguments)),
        tuple(_parameters(module)),
        _elements(implementation),
    )


def _elements(function: ir.Operation) -> frozenset[str]:
    types = {result.type for op in find_ops(function, lambda _: True) for result in op.results}
    return frozenset(str(type_.element_type) for type_ in types if isinstance(type_, ir.RankedTensorType))


def _is_public(op: ir.Operation) -> bool:
    return "sym_visibility" not in op.attributes or ir.StringAttr(op.attributes["sym_visibility"]).value == "public"


def _declared(function: ir.Operation) -> list[TensorType]:
    """The types of arguments that the function declares for its callers, or none."""
    reflection = str(function.attributes["iree.reflection"]) if "iree.reflection" in function.attributes else ""
    found = re.findall(r"%input\d+: (tensor<[^>]*>|\w+)", reflection)
    return list(map(TensorType.parse, found))


def _argument(value: ir.Value, declared: TensorType) -> Argument:
    """The type that an argument is imported as; of one that is not read, or handed on as it is, the `declared` one."""
    text, what = str(value.type), f"argument {ir.BlockArgument(value).arg_number}"
    if text != "!hal.buffer_view":
        if not re.fullmatch(r"[if]\d+|bf16|index", text):
            raise PrepassError(f"{what} is of type {text}; nothing is made for it")
        return Argument(TensorType.parse(text))
    for use in value.uses:
        if use.owner.operation.name == "hal.tensor.import":
            return Argument(TensorType.parse(str(use.owner.operation.results[0].type)))
    if declared != _ANYTHING or next(iter(value.uses), None) is None:
        return Argument(declared)
    raise PrepassError(f"{what} is not read as a tensor; nothing is made for it")


def _parameters(module: ir.Operation) -> Iterator[Parameter]:
    seen: set[Parameter] = set()
    for op in find_ops(module, lambda op: op.name in _HOLDERS and _HOLDERS[op.name] in op.attributes):
        attribute = op.attributes[_HOLDERS[op.name]]
        # Printing the contents of other constants would take long.
        if isinstance(attribute, (ir.DenseElementsAttr, ir.DenseResourceElementsAttr)):
            continue
        if match := _PARAMETER.match(str(attribute)):
            parameter = Parameter(match["scope"] or "", match["key"], TensorType.parse(match["type"]))
            if parameter not in seen:
                seen.add(parameter)
                yield parameter


def _ranges(function: ir.Operation) -> dict[int, Interval]:
    """The signed intervals that assertions and lookups leave to each argument, by its number."""
    found: dict[int, Interval] = {}
    for value, interval in _uses_as_index(function):
        number = _argument_number(value)
        if number is not None:
            known = found.get(number)
            found[number] = interval if known is None else known & interval
    return found


def _uses_as_index(function: ir.Operation) -> Iterator[tuple[ir.Value, Interval]]:
    for assertion in walk_ops(function, "cf.assert"):
        for value, known in facts(assertion.operands[0]):
            yield value, known.signed
    for extract in walk_ops(function, "tensor.extract"):
        table = ir.RankedTensorType(extract.operands[0].type)
        for dim, index in enumerate(list(extract.operands)[1:]):
            if not table.is_dynamic_dim(dim):
                yield index, Interval(0, table.get_dim_size(dim) - 1)
    for gather in walk_ops(function, "iree_linalg_ext.gather"):
        table = ir.RankedTensorType(gather.operands[0].type)
        dims = [int(n) for n in re.findall(r"\d+", str(gather.attributes["dimension_map"]).partition(":")[2])]
        if len(dims) == 1 and not table.is_dynamic_dim(dims[0]):
            yield gather.operands[1], Interval(0, table.get_dim_size(dims[0]) - 1)


def _argument_number(value: ir.Value) -> int | None:
    """The argument of the function that a value is, or is an element of; None for what is computed."""
    while True:
        op = defining_op(value)
        if op is None:
            owner = value.owner.owner.operation
            if owner.name == "util.func":
                return ir.BlockArgument(value).arg_number
            if owner.name != "linalg.generic":
                return None
            value = owner.operands[ir.BlockArgument(value).arg_number]
        elif op.name in (*_INTEGER_CASTS, *_SHAPE_OPS, "util.assume.int"):
            value = op.operands[0]
        elif op.name == "hal.tensor.import":
            return ir.BlockArgument(op.operands[0]).arg_number if defining_op(op.operands[0]) is None else None
        elif op.name == "linalg.generic" and is_elementwise(op) and _only_casts(op):
            value = op.operands[0]
        else:
            return None


def _only_casts(op: ir.Operation) -> bool:
    *body, _ = op.regions[0].blocks[0].operations
    return len(op.operands) == 2 and all(inner.operation.name in _INTEGER_CASTS for inner in body)

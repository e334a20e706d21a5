# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An op in a few words, in the place of a program: `attention:batch=20,m=4096,n=64,k1=64,k2=4096,element_type=f16`."""

from __future__ import annotations

import dataclasses
from typing import Any

from iree.compiler import ir
from iree.compiler.api import Session
from iree.compiler.dialects import arith, func, tensor

from prepass.errors import PrepassError, did_you_mean
from prepass.ir.attention.build import OP_NAME
from prepass.ir.targets.attention_shape import AttentionShape, load_dialects
from prepass.ir.targets.tuning_table import ATTENTION, KINDS

_DEFAULTS: dict[str, Any] = {"batch": (1,), "element_type": "f16", "value_transposed": True}
_ELEMENTS = ("f16", "bf16", "f32")
_SWITCHES = {"true": True, "false": False}
_LOOPS = ("b", "m", "n", "k1", "k2")


def is_op_text(text: str) -> bool:
    """Whether a text is an op, and not the path of a program."""
    return text.partition(":")[0] in KINDS and ":" in text


def op_module(text: str) -> str:
    """The text of a module whose one function is the op. Raises PrepassError."""
    kind, _, fields = text.partition(":")
    try:
        return _attention_module(_attention_shape(fields))
    except PrepassError as error:
        raise PrepassError(f"{kind}: {error}") from None


def _attention_shape(text: str) -> AttentionShape:
    known = [field.name for field in dataclasses.fields(AttentionShape) if field.name != "k1_loops"]
    values = dict(_DEFAULTS)
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name not in known:
            raise PrepassError(f"unknown size '{name}'{did_you_mean(name, known)}")
        values[name] = _value(name, value)
    missing = [name for name in ("m", "k1", "k2") if name not in values]
    if missing:
        raise PrepassError(f"'{missing[0]}' is missing; expected {ATTENTION}:m=4096,k1=64,k2=4096,…")
    return AttentionShape(**{"n": values["k1"], **values})


def _value(name: str, text: str) -> Any:
    if name == "element_type":
        if text not in _ELEMENTS:
            raise PrepassError(f"'{name}' takes one of {', '.join(_ELEMENTS)}, not '{text}'")
        return text
    if name in ("value_transposed", "key_transposed", "masked"):
        if text not in _SWITCHES:
            raise PrepassError(f"'{name}' takes true or false, not '{text}'")
        return _SWITCHES[text]
    if not text.isdecimal() or int(text) < 1:
        raise PrepassError(f"'{name}' takes a whole number from 1, not '{text}'")
    return (int(text),) if name == "batch" else int(text)


def _attention_module(shape: AttentionShape) -> str:
    """A function `main` of Q, K, V and, where there is one, a mask that all heads share."""
    key = ("b", "k1", "k2") if shape.key_transposed else ("b", "k2", "k1")
    value = ("b", "n", "k2") if shape.value_transposed else ("b", "k2", "n")
    operands = [("b", "m", "k1"), key, value, *([("m", "k2")] if shape.masked else [])]
    result = ("b", "m", "n")
    with Session().context, ir.Location.unknown():
        load_dialects("arith", "func", "iree_linalg_ext", "tensor")
        element = ir.Type.parse(shape.element_type)
        types = [_type(loops, shape, element) for loops in operands]
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("main", ir.FunctionType.get(types, [_type(result, shape, element)]))
        with ir.InsertionPoint(function.add_entry_block()):
            inputs = list(function.arguments)
            inputs.insert(3, arith.constant(ir.F32Type.get(), (shape.k1 or 1) ** -0.5))
            maps = [_map(loops) for loops in [*operands[:3], (), *operands[3:], result]]
            func.ReturnOp([_attention(inputs, maps, _type(result, shape, element))])
        return str(module)


def _attention(inputs: list[ir.Value], maps: list[ir.Attribute], type_: ir.RankedTensorType) -> ir.Value:
    init = tensor.empty(list(type_.shape), type_.element_type)
    attributes = {"indexing_maps": ir.ArrayAttr.get(maps)}
    op = ir.Operation.create(OP_NAME, [type_], [*inputs, init], attributes, regions=1)
    block = op.regions[0].blocks.append(ir.F32Type.get(), arg_locs=[op.location])
    with ir.InsertionPoint(block):
        ir.Operation.create("iree_linalg_ext.yield", [], [block.arguments[0]])
    return op.result


def _type(loops: tuple[str, ...], shape: AttentionShape, element: ir.Type) -> ir.RankedTensorType:
    extents = {"b": shape.batch[0], "m": shape.m, "n": shape.n, "k1": shape.k1, "k2": shape.k2}
    return ir.RankedTensorType.get([extents[loop] or 1 for loop in loops], element)


def _map(loops: tuple[str, ...]) -> ir.Attribute:
    exprs = [ir.AffineExpr.get_dim(_LOOPS.index(loop)) for loop in loops]
    return ir.AffineMapAttr.get(ir.AffineMap.get(len(_LOOPS), 0, exprs))

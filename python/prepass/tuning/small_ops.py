# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of one op."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir
from iree.compiler.api import Session
from iree.compiler.dialects import arith, func, linalg, tensor

from prepass.ir.attention.build import OP_NAME
from prepass.ir.targets.attention_shape import AttentionShape, load_dialects
from prepass.ir.targets.linalg_shape import LinalgShape

_LOOPS = ("b", "m", "n", "k1", "k2")
_FUNCTION = "main"


def attention_module(shape: AttentionShape) -> str:
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
            function = func.FuncOp(_FUNCTION, ir.FunctionType.get(types, [_type(result, shape, element)]))
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


def contraction_module(shape: LinalgShape) -> str:
    """A function `main` of one operand and several that are each contracted with it; sums are f32."""
    count = len(shape.maps) - shape.results
    with Session().context, ir.Location.unknown():
        load_dialects("arith", "func", "linalg", "tensor")
        maps = [
            ir.AffineMap.get(len(shape.sizes), 0, [ir.AffineExpr.get_dim(dim) for dim in _dims(map_)])
            for map_ in shape.maps
        ]
        types = [
            ir.RankedTensorType.get([shape.sizes[dim] or 1 for dim in _dims(map_)], ir.Type.parse(element))
            for map_, element in zip(shape.maps, shape.element_types, strict=True)
        ]
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function = func.FuncOp(_FUNCTION, ir.FunctionType.get(types[:count], types[count:]))
        with ir.InsertionPoint(function.add_entry_block()):
            zero = arith.constant(ir.F32Type.get(), 0.0)
            inits = [linalg.fill(zero, outs=[tensor.empty(list(t.shape), t.element_type)]) for t in types[count:]]
            func.ReturnOp(_contraction(list(function.arguments), inits, maps, shape))
        return str(module)


def _contraction(
    inputs: list[ir.Value], inits: list[ir.Value], maps: Sequence[ir.AffineMap], shape: LinalgShape
) -> list[ir.Value]:
    written = set(_dims(shape.maps[-1]))
    kinds = ["parallel" if loop in written else "reduction" for loop in range(len(shape.sizes))]
    iterators = [ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds]
    op = linalg.GenericOp(
        [init.type for init in inits], inputs, inits, ir.ArrayAttr.get(list(map(ir.AffineMapAttr.get, maps))),
        ir.ArrayAttr.get(iterators),
    )  # fmt: skip
    elements = [ir.RankedTensorType(value.type).element_type for value in (*inputs, *inits)]
    block = op.regions[0].blocks.append(*elements, arg_locs=[op.location] * len(elements))
    f32 = ir.F32Type.get()
    with ir.InsertionPoint(block):
        wide = [arith.extf(f32, argument) for argument in block.arguments[: len(inputs)]]
        sums = list(block.arguments)[len(inputs) :]
        products = [arith.mulf(wide[0], other) for other in wide[1:]]
        linalg.YieldOp([arith.addf(acc, product) for acc, product in zip(sums, products, strict=True)])
    return list(op.results)


def _dims(map_: str) -> list[int]:
    return [int(dim[1:]) for dim in map_.split(", ")]

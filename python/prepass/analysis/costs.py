# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bytes and floating-point operations of tensor ops, from their shapes.

All figures are static. A dynamic dim counts as one element, and the cost says that it is not exact then.
Operations are counted as in the field: a multiplication and an addition are two, an `exp` is one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.attention.read import operand_maps
from prepass.ir.elementwise import CASTS
from prepass.ir.expressions import indexing_maps, loop_sizes

ATTENTION = ("iree_linalg_ext.attention", "iree_linalg_ext.online_attention")
GATHER = "iree_linalg_ext.gather"
# The maximum, the subtraction, the exponential, the sum and the division.
_SOFTMAX_FLOPS = 5
_PRODUCTS, _SUMS = {"arith.mulf", "arith.muli"}, {"arith.addf", "arith.addi"}
_NOT_ARITHMETIC = ("arith.constant", "arith.cmpf", "arith.select", "arith.bitcast", *CASTS)


@dataclass(frozen=True)
class Cost:
    """What an op, a dispatch or a program costs.

    Attributes:
      read_bytes, written_bytes: Of tensors in memory, each element once.
      matrix_flops: Operations of contractions, convolutions and attention, which matrix units can do.
      vector_flops: All others.
      exact: Whether all sizes are static.
    """

    read_bytes: int = 0
    written_bytes: int = 0
    matrix_flops: int = 0
    vector_flops: int = 0
    exact: bool = True

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return self.read_bytes + self.written_bytes

    @property
    def flops(self) -> int:
        """Operations of both kinds."""
        return self.matrix_flops + self.vector_flops

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.read_bytes + other.read_bytes,
            self.written_bytes + other.written_bytes,
            self.matrix_flops + other.matrix_flops,
            self.vector_flops + other.vector_flops,
            self.exact and other.exact,
        )


def total(costs: Iterable[Cost]) -> Cost:
    """The sum of costs."""
    return sum(costs, Cost())


def element_count(shaped: ir.Type) -> tuple[int, bool]:
    """The number of elements of a tensor type, dynamic dims as one, and whether it is exact; other types have none."""
    if not isinstance(shaped, ir.RankedTensorType):
        return 0, True
    sizes = [None if shaped.is_dynamic_dim(d) else shaped.get_dim_size(d) for d in range(shaped.rank)]
    return math.prod(size for size in sizes if size is not None), None not in sizes


def element_bits(element: ir.Type) -> int:
    """The bits that an element takes in memory: a byte for i1, 64 for an index."""
    if isinstance(element, ir.IndexType):
        return 64
    if isinstance(element, ir.ComplexType):
        return 2 * element_bits(element.element_type)
    width = getattr(element, "width", 0)
    return 8 if width == 1 else width


def tensor_bytes(shaped: ir.Type) -> int:
    """The bytes of a tensor type, dynamic dims as one; 0 for other types."""
    if not isinstance(shaped, ir.RankedTensorType):
        return 0
    return (element_count(shaped)[0] * element_bits(shaped.element_type) + 7) // 8


def op_flops(op: ir.Operation) -> tuple[int, int]:
    """The operations of an op: those that matrix units can do, and others."""
    if op.name in ATTENTION:
        return _attention_flops(op)
    if op.name == "linalg.softmax":
        return 0, _SOFTMAX_FLOPS * element_count(op.results[0].type)[0]
    if not is_structured(op):
        return 0, 0
    points = iteration_points(op)
    if is_matrix_op(op):
        return 2 * points * len(op.results), 0
    return 0, points * sum(_is_arithmetic(inner) for inner in _body(op))


def is_structured(op: ir.Operation) -> bool:
    """Whether `op` is a linalg op on tensors with loops and a body."""
    return op.name.startswith("linalg.") and len(op.regions) == 1 and len(op.results) > 0 and bool(indexing_maps(op))


def is_matrix_op(op: ir.Operation) -> bool:
    """Whether a linalg op only adds up products of different operands: a contraction or a convolution.

    One with several results, as contractions of one operand that are computed at once, is one too.
    """
    if not is_structured(op) or not reduction_loops(op):
        return False
    body = [inner for inner in _body(op) if _is_arithmetic(inner)]
    inputs = set(list(op.operands)[: -len(op.results)])
    products = sum(inner.name in _PRODUCTS for inner in body)
    sums = sum(inner.name in _SUMS for inner in body)
    return len(inputs) > 1 and products == sums == len(op.results) and len(body) == products + sums


def is_convolution(op: ir.Operation) -> bool:
    """Whether a matrix op reads an operand at sums of its loops."""
    maps = indexing_maps(op) or []
    return is_matrix_op(op) and any(isinstance(e, ir.AffineAddExpr) for map_ in maps[:-1] for e in map_.results)


def iteration_points(op: ir.Operation) -> int:
    """The product of the loop sizes of a linalg op, dynamic ones as one."""
    return math.prod(size for size in loop_sizes(op) if size is not None)


def reduction_loops(op: ir.Operation) -> list[int]:
    """The loops of a linalg op that its first result does not vary along."""
    result_map = (indexing_maps(op) or [])[-len(op.results)]
    kept = {expr.position for expr in result_map.results if isinstance(expr, ir.AffineDimExpr)}
    return [loop for loop in range(result_map.n_dims) if loop not in kept]


def captured_bytes(op: ir.Operation) -> int:
    """What the body of a linalg op reads of tensors that are no operands, element by element, at most all of them."""
    if not is_structured(op):
        return 0
    points = iteration_points(op)
    extracts = [inner for inner in _body(op) if inner.name == "tensor.extract"]
    return sum(_read_elements(extract.operands[0].type, points) for extract in extracts)


def _read_elements(table: ir.Type, count: int) -> int:
    return min(tensor_bytes(table), count * element_bits(ir.RankedTensorType(table).element_type) // 8)


def _attention_flops(op: ir.Operation) -> tuple[int, int]:
    """Of both products, and of the softmax between."""
    maps = operand_maps(op)
    query, key, value = (_dims(map_) for map_ in maps[:3])
    sizes: dict[int, int] = {}
    for map_, operand in zip(maps[:3], list(op.operands)[:3], strict=True):
        shaped = ir.RankedTensorType(operand.type)
        for place, dim in enumerate(_dims(map_)):
            sizes[dim] = 1 if shaped.is_dynamic_dim(place) else shaped.get_dim_size(place)
    summed = {dim for dim in query if dim in key and dim not in value and dim not in _dims(maps[-1])}
    scores = {dim for dim in (*query, *key) if dim not in summed}
    first, second = _points(sizes, {*query, *key}), _points(sizes, {*scores, *value})
    return 2 * (first + second), _SOFTMAX_FLOPS * _points(sizes, scores)


def _points(sizes: dict[int, int], dims: Iterable[int]) -> int:
    return math.prod(sizes[dim] for dim in dims)


def _dims(map_: ir.AffineMap) -> list[int]:
    return [expr.position for expr in map_.results if isinstance(expr, ir.AffineDimExpr)]


def _body(op: ir.Operation) -> Sequence[ir.Operation]:
    *body, _ = op.regions[0].blocks[0].operations
    return [inner.operation for inner in body]


def _is_arithmetic(inner: ir.Operation) -> bool:
    """Whether an op of a body computes; positions and conversions do not."""
    if inner.name in _NOT_ARITHMETIC or not inner.name.startswith(("arith.", "math.", "complex.")):
        return False
    return not isinstance(inner.results[0].type, ir.IndexType)

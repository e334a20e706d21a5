# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A matrix product straight from global memory: no LDS, 64x64 a workgroup, each wave 16 rows of it.

It is the smallest whole kernel, to read first; IREE's own code, which goes through LDS, reads each element four times
less often, so it is not selected by default.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.kernels import CONTRACTION, Example, ExpectedFigures, Kernel, KernelDescription, KernelUse
from prepass.ir.kernels.builders import (
    Insertion,
    apply,
    collapse,
    constant,
    delinearize,
    dim,
    f32,
    insert,
    load,
    loop,
    mfma,
    tensor_empty,
    tensor_type,
    tensor_ukernel,
    threads,
    vector_type,
)
from prepass.ir.kernels.conditions import check_matmul
from prepass.ir.kernels.config import compilation_info
from prepass.ir.targets import Target

_WAVES, _LANES = 4, 64
_TILE = 64
# The matrix instruction: 16×16 results, 16 terms, of which each lane holds 4.
_ROWS, _TERMS, _PER_LANE = 16, 16, 4
_COLUMN_BLOCKS = _TILE // _ROWS

_TYPES = {"f16": ir.F16Type, "bf16": ir.BF16Type}


@dataclass(frozen=True)
class DirectMatmul(Kernel):
    """M×K by N×K, both with K innermost, with sums in f32."""

    kind = CONTRACTION

    @property
    def description(self) -> KernelDescription:
        """See `Kernel.description`."""
        return KernelDescription(
            summary="A matrix product straight from global memory; the kernel to read first.",
            targets=("gfx942",),
            element_types=("f16", "bf16"),
            conditions=(
                "the loops are M, N and K, and K is innermost in both operands",
                "the sums are f32 and start from zero",
                "the operands are in memory, not computed in the same dispatch",
                f"M and N are multiples of {_TILE}",
                f"K is a multiple of {_TERMS}",
            ),
            tile={"M": _TILE, "N": _TILE},
            step={"K": _TERMS},
            workgroup_size=_WAVES * _LANES,
            lds_bytes=0,
            figures=ExpectedFigures(per="2^20 operations", mfma=2048, valu=112, lds=0, vgprs=40),
            reason="IREE's own code reads each operand from global memory less often.",
        )

    def match(self, op: ir.Operation, target: Target) -> KernelUse:
        """See `Kernel.match`."""
        element = check_matmul(op, tuple(_TYPES), (_TILE, _TILE, _TERMS))
        function = f"prepass_direct_matmul_{element}"
        info = compilation_info([_TILE, _TILE, 0], _WAVES * _LANES)
        return KernelUse(function, info, functools.partial(_build, function, element))

    def examples(self) -> tuple[Example, ...]:
        """See `Kernel.examples`."""
        return tuple(Example(f"1024x1024x1024 {element}", _example(1024, 1024, 1024, element)) for element in _TYPES)


def _build(name: str, element: str) -> None:
    type_ = _TYPES[element].get()
    operand, result = tensor_type((_TILE, None), type_), tensor_type((_TILE, _TILE), f32())
    tensor_ukernel(name, [operand, operand, result], [result], _body)


def _body(lhs: ir.Value, rhs: ir.Value, _: ir.Value) -> list[ir.Value]:
    # The tile of the sums as the threads hold it: each has 4 rows of a column in each of 4 blocks of columns.
    out = tensor_empty((_WAVES, _ROWS, _COLUMN_BLOCKS, _ROWS), f32())
    (tiles,) = threads(_WAVES * _LANES, [out], lambda thread: [_thread(thread, lhs, rhs)])
    return [collapse(tiles, [[0, 1], [2, 3]])]


def _thread(thread: ir.Value, lhs: ir.Value, rhs: ir.Value) -> Insertion:
    wave, group, lane = delinearize(thread, (_WAVES, _LANES // _ROWS, _ROWS))
    row = apply(lambda wave, lane: wave * _ROWS + lane, wave, lane)
    first = apply(lambda group: group * _PER_LANE, group)

    def step(k: ir.Value, *sums: ir.Value) -> list[ir.Value]:
        term = apply(lambda k, first: k + first, k, first)
        a = load(lhs, [row, term], _PER_LANE)
        columns = [apply(lambda lane, block=block: lane + block * _ROWS, lane) for block in range(_COLUMN_BLOCKS)]
        # B·Aᵀ: each lane gets four columns of one row, which it writes as one vector.
        return [
            mfma(load(rhs, [column, term], _PER_LANE), a, acc, (_ROWS, _ROWS, _TERMS))
            for column, acc in zip(columns, sums, strict=True)
        ]

    zeros = [constant(0, vector_type(_PER_LANE, f32()))] * _COLUMN_BLOCKS
    sums = loop(0, dim(lhs, 1), _TERMS, zeros, step)
    tile = tensor_empty((1, 1, _COLUMN_BLOCKS, _PER_LANE), f32())
    for block, values in enumerate(sums):
        tile = insert(values, tile, [0, 0, block, 0])
    return Insertion(tile, (wave, lane, 0, first), (1, 1, _COLUMN_BLOCKS, _PER_LANE))


def _example(rows: int, columns: int, terms: int, element: str) -> str:
    a, b, c = (
        f"tensor<{rows}x{terms}x{element}>",
        f"tensor<{columns}x{terms}x{element}>",
        f"tensor<{rows}x{columns}xf32>",
    )
    return f"""\
func.func @main(%a: {a}, %b: {b}) -> {c} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {c}
  %fill = linalg.fill ins(%zero : f32) outs(%empty : {c}) -> {c}
  %product = linalg.matmul indexing_maps = [
      affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : {a}, {b}) outs(%fill : {c}) -> {c}
  return %product : {c}
}}
"""


MATMUL = DirectMatmul("direct-matmul")

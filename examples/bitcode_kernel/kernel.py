# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel whose work item is written in C: a matrix product in f16.

    cmake -S . -B build && cmake --build build --target bitcode_kernel
    prepass-compile model.mlir --prepass-load=build/bitcode_kernel/kernel.py --prepass-kernels=bitcode-matmul …

The MLIR cuts the product into tiles, spreads a tile over the work items, and calls the C function for each; the
bitcode travels in the executable. See docs/kernels.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from iree.compiler import ir

from prepass import PrepassError
from prepass.ir.kernels import CONTRACTION, Example, Kernel, KernelDescription, KernelUse
from prepass.ir.kernels.builders import (
    Insertion,
    apply,
    call_bitcode,
    collapse,
    delinearize,
    dim,
    f16,
    f32,
    tensor_empty,
    tensor_type,
    tensor_ukernel,
    threads,
)
from prepass.ir.kernels.conditions import check_matmul
from prepass.ir.kernels.config import bitcode, compilation_info
from prepass.ir.targets import Target

BITCODE = Path(__file__).with_name("matmul.bc")
FUNCTION = "example_bitcode_matmul_f16"
TILE, TERMS, WORK_ITEMS = 64, 16, 256

EXAMPLE = """\
func.func @main(%a: tensor<128x64xf16>, %b: tensor<64x64xf16>) -> tensor<128x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128x64xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x64xf32>) -> tensor<128x64xf32>
  %product = linalg.matmul indexing_maps = [
      affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : tensor<128x64xf16>, tensor<64x64xf16>) outs(%fill : tensor<128x64xf32>) -> tensor<128x64xf32>
  return %product : tensor<128x64xf32>
}
"""


@dataclass(frozen=True)
class BitcodeMatmul(Kernel):
    """M×K by N×K, both with K innermost, with sums in f32."""

    kind = CONTRACTION

    @property
    def description(self) -> KernelDescription:
        """The facts."""
        return KernelDescription(
            summary="A matrix product whose work item is written in C.",
            targets=("gfx942",),
            element_types=("f16",),
            conditions=(
                "the loops are M, N and K, and K is innermost in both operands",
                "the sums are f32 and start from zero",
                f"M and N are multiples of {TILE}, K is one of {TERMS}",
            ),
            tile={"M": TILE, "N": TILE},
            step={"K": TERMS},
            workgroup_size=WORK_ITEMS,
            lds_bytes=0,
            reason="It is an example.",
        )

    def match(self, op: ir.Operation, target: Target) -> KernelUse:
        """The conditions of the description."""
        check_matmul(op, ("f16",), (TILE, TILE, TERMS))
        objects = (bitcode(BITCODE.name, _contents()),)
        return KernelUse(FUNCTION, compilation_info([TILE, TILE, 0], WORK_ITEMS), build, objects=objects)

    def examples(self) -> tuple[Example, ...]:
        """One product."""
        return (Example("128x64x64 f16", EXAMPLE),)


def build() -> None:
    """The function of the kernel."""
    operand, result = tensor_type((TILE, None), f16()), tensor_type((TILE, TILE), f32())
    tensor_ukernel(FUNCTION, [operand, operand, result], [result], _tile)


def _tile(lhs: ir.Value, rhs: ir.Value, _: ir.Value) -> list[ir.Value]:
    def work_item(number: ir.Value) -> list[Insertion]:
        wave, group, lane = delinearize(number, (4, 4, 16))
        first = apply(lambda group: group * 4, group)
        sums = tensor_empty((1, 1, 4, 4), f32())
        # The C function wants the stride of a row, of a column, and of a block of the sums.
        (sums,) = call_bitcode("example_matmul_f16", [lhs, rhs], [sums], [dim(lhs, 1)], strides=[[0], [0], [2]])
        return [Insertion(sums, (wave, lane, 0, first), (1, 1, 4, 4))]

    (sums,) = threads(WORK_ITEMS, [tensor_empty((4, 16, 4, 16), f32())], work_item)
    return [collapse(sums, [[0, 1], [2, 3]])]


def _contents() -> bytes:
    try:
        return BITCODE.read_bytes()
    except OSError as error:
        raise PrepassError(
            f"{BITCODE}: {error.strerror}: build it, cmake --build build --target bitcode_kernel"
        ) from None


BITCODE_MATMUL = BitcodeMatmul("bitcode-matmul")

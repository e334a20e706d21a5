# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix instructions: D = A · B + C over a wave.

Lane l holds row l mod M of A (column of B), and `per_lane` consecutive k from `per_lane · (l div M)`. In D and C
lane l holds column l mod N; register i of a 32x32 result holds row 8 · (i div 4) + 4 · (l div 32) + i mod 4, of a
16x16 result row 4 · (l div 16) + i.

The sum over k is exact to float64 and rounded once; the order in which the hardware rounds is not documented.
EXEC and MODE have no influence. Sources: "AMD Instinct MI300 Instruction Set Architecture Reference Guide" (CDNA3),
chapter 7; AMD matrix instruction calculator, https://github.com/ROCm/amd_matrix_instruction_calculator
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prepass.amdgpu.assembly import Instruction
from prepass.simulator.errors import Fault
from prepass.simulator.modifiers import Step
from prepass.simulator.operands import Constant, Limits, expect_register, parse_source
from prepass.simulator.waves import LANES, Waves


@dataclass(frozen=True)
class Mfma:
    """A matrix instruction.

    Attributes:
      size: M and N.
      k: How many products each element of the result sums.
      kind: Of A and B: f16, bf16, f32, i8.
    """

    size: int
    k: int
    kind: str

    @property
    def per_lane(self) -> int:
        """Elements of A, or of B, in a lane."""
        return self.size * self.k // LANES

    @property
    def source_registers(self) -> int:
        """Registers of A, and of B."""
        return self.per_lane * {"f16": 2, "bf16": 2, "f32": 4, "i8": 1}[self.kind] // 4

    @property
    def result_registers(self) -> int:
        """Registers of D, and of C."""
        return self.size * self.size // LANES


MFMA: dict[str, Mfma] = {
    "v_mfma_f32_32x32x8_f16": Mfma(32, 8, "f16"),
    "v_mfma_f32_16x16x16_f16": Mfma(16, 16, "f16"),
    "v_mfma_f32_32x32x8_bf16": Mfma(32, 8, "bf16"),
    "v_mfma_f32_16x16x16_bf16": Mfma(16, 16, "bf16"),
    "v_mfma_f32_32x32x2_f32": Mfma(32, 2, "f32"),
    "v_mfma_f32_16x16x4_f32": Mfma(16, 4, "f32"),
    "v_mfma_i32_32x32x16_i8": Mfma(32, 16, "i8"),
    "v_mfma_i32_16x16x32_i8": Mfma(16, 32, "i8"),
}


def translate_mfma(instruction: Instruction, operation: Mfma, limits: Limits) -> Step:
    """The instruction as a function of the waves. Raises Fault for what it does not know."""
    for name in instruction.modifiers:
        raise Fault(f"unknown modifier '{name}'")
    if len(instruction.operands) != 4:
        raise Fault(f"expected 4 operands, not {len(instruction.operands)}")
    result = expect_register(instruction.operands[0], limits, "v", operation.result_registers)
    a, b = (expect_register(text, limits, "v", operation.source_registers) for text in instruction.operands[1:3])
    addend = parse_source(instruction.operands[3], limits)
    integer = operation.kind == "i8"
    constant = None
    if isinstance(addend.place, Constant):
        bits = np.array(addend.place.bits("i32" if integer else "f32"), np.uint32)
        constant = bits.view(np.int32 if integer else np.float32).astype(np.float64)
        first = 0
    else:
        first = expect_register(instruction.operands[3], limits, "v", operation.result_registers).index
    if addend.negate or addend.absolute:
        raise Fault("the addend takes no sign modifiers")
    count = operation.result_registers

    def step(waves: Waves) -> None:
        left = unpack(waves.vector[a.index : a.index + a.count], operation)
        right = unpack(waves.vector[b.index : b.index + b.count], operation)
        product = to_registers(np.matmul(left, right.transpose(0, 2, 1)), operation.size)
        if constant is None:
            held = waves.vector[first : first + count]
            product += held.view(np.int32 if integer else np.float32)
        else:
            product += constant
        # Integers are exact in float64; sums beyond 32 bits wrap around.
        total = product.astype(np.int64).astype(np.uint32) if integer else product.astype(np.float32).view(np.uint32)
        waves.vector[result.index : result.index + count] = total

    return step


def unpack(registers: np.ndarray, operation: Mfma) -> np.ndarray:
    """The matrix in the registers of A or B: uint32[registers, waves, 64] to float64[waves, M, K]."""
    words = np.ascontiguousarray(registers.transpose(1, 2, 0))
    if operation.kind == "bf16":
        halves = words.view(np.uint16).astype(np.uint32) << np.uint32(16)
        values = halves.view(np.float32)
    else:
        values = words.view({"f16": np.float16, "f32": np.float32, "i8": np.int8}[operation.kind])
    waves, groups, size = len(words), LANES // operation.size, operation.size
    spread = values.astype(np.float64).reshape(waves, groups, size, operation.per_lane)
    return spread.transpose(0, 2, 1, 3).reshape(waves, size, operation.k)


def to_registers(matrix: np.ndarray, size: int) -> np.ndarray:
    """The registers of a result: [waves, M, N] to [registers, waves, 64]."""
    waves, groups = len(matrix), LANES // size
    blocks = matrix.reshape(waves, size // (4 * groups), groups, 4, size)
    return np.ascontiguousarray(blocks.transpose(1, 3, 0, 2, 4)).reshape(-1, waves, LANES)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""V_DOT2_F32_F16 and V_DOT2C_F32_F16: two products of halves, and a sum in f32; the latter adds to its result.

It is rounded once; how the hardware rounds in between is not documented. The result is flushed whatever the mode.
Source: "AMD Instinct MI300 Instruction Set Architecture Reference Guide" (CDNA3), section 12.11 (VOP3P), and LLVM,
`SIISelLowering.cpp`, on denormals.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prepass.amdgpu.assembly import Instruction
from prepass.simulator import floats
from prepass.simulator.errors import Fault
from prepass.simulator.modifiers import Step
from prepass.simulator.operands import Limits, expect_register, parse_source, vector_word
from prepass.simulator.packed import half_of_source, modifier_bits
from prepass.simulator.vector import to_bits
from prepass.simulator.waves import Waves

_MODIFIERS = ("op_sel", "op_sel_hi", "neg_lo", "neg_hi")


def _translate(instruction: Instruction, limits: Limits) -> Step:
    modifiers = instruction.modifiers
    operands = list(instruction.operands)
    if instruction.name.startswith("v_dot2c"):
        operands.append(operands[0])
    if (
        any(name not in _MODIFIERS for name in modifiers)
        or instruction.encoding in ("dpp", "sdwa")
        or len(operands) != 4
    ):
        raise Fault("expected operands for two products and a sum, and no modifiers but those of halves")
    place = expect_register(operands[0], limits, "v", 1)
    a, b, c = (parse_source(text, limits) for text in operands[1:])
    if c.absolute or c.negate or any(modifier_bits(modifiers, name, 3, 0)[2] for name in ("neg_lo", "neg_hi")):
        raise Fault("a modifier of the sum is not supported")
    chosen = [modifier_bits(modifiers, "op_sel", 3, 0), modifier_bits(modifiers, "op_sel_hi", 3, 1)]
    negated = [modifier_bits(modifiers, "neg_lo", 3, 0), modifier_bits(modifiers, "neg_hi", 3, 0)]
    factors = [
        tuple(half_of_source(source, high[at], negate[at], "f16") for at, source in enumerate((a, b)))
        for high, negate in zip(chosen, negated, strict=True)
    ]
    addend = vector_word(c.place, "f32")

    def step(waves: Waves) -> None:
        start = floats.flush(addend(waves).view(np.float32)).astype(np.float64)
        products = [x(waves).astype(np.float64) * y(waves).astype(np.float64) for x, y in factors]
        waves.write(place.index, to_bits(floats.flush((products[0] + products[1] + start).astype(np.float32))))

    return step


DOT: dict[str, Callable[[Instruction, Limits], Step]] = {
    "v_dot2_f32_f16": _translate,
    "v_dot2c_f32_f16": _translate,
}

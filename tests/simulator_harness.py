# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single instructions on registers that a test fills."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from prepass.amdgpu.assembly import read_instruction
from prepass.simulator.instructions import translate
from prepass.simulator.lds import Lds
from prepass.simulator.memory import Memory
from prepass.simulator.operands import Limits
from prepass.simulator.waves import EXEC, LANES, POISON, SCALAR_REGISTERS, VCC, Waves

VECTOR_REGISTERS, ACCUMULATION_REGISTERS = 48, 16
LIMITS = Limits(VECTOR_REGISTERS, ACCUMULATION_REGISTERS, 102)
ALL_LANES = (1 << LANES) - 1

_INTEGERS = (0, 1, 2, 3, 7, 31, 32, 63, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFF, 0x800000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
_HALF = (0, 0x8000, 0x3C00, 0xBC00, 1, 0x8001, 0x03FF, 0x0400, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0x3800, 0x3801)
_SINGLE = (
    0, 0x80000000, 0x3F800000, 0xBF800000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000,
    0xFF800000, 0x7FC00000, 0x3F000000, 0x4B000001, 0x3FC00000, 0x40200000, 0xC0200000, 0x477FF000, 0x33800000,
)  # fmt: skip
_DOUBLE = (
    0,
    1 << 63,
    0x3FF << 52,
    0xBFF << 52,
    1,
    0x7FF << 52,
    0xFFF << 52,
    0x7FF8 << 48,
    0x3FE << 52,
    0x41DFFFFFFFC00000,
)


def samples(kind: str, random: np.random.Generator, count: int = LANES) -> list[int]:
    """Bits of a type: corner cases in random places among random numbers of all sizes."""
    bits = int(kind[1:])
    corners = {"f16": _HALF, "f32": _SINGLE, "f64": _DOUBLE}.get(kind, _INTEGERS)
    values = [int.from_bytes(random.bytes(8), "little") & ((1 << bits) - 1) for _ in range(count)]
    if kind[0] == "f":
        # Numbers of one magnitude meet rounding and cancellation more often than any bits do.
        real, whole = {"f16": ("f2", "u2"), "f32": ("f4", "u4"), "f64": ("f8", "u8")}[kind]
        near = (random.standard_normal(count) * 4).astype(real).view(whole)
        values = [int(near[at]) if random.random() < 0.5 else value for at, value in enumerate(values)]
    for at in range(count):
        if random.random() < 0.4:
            values[at] = corners[random.integers(len(corners))] & ((1 << bits) - 1)
    return values


def make_waves(
    vector: Mapping[int, Sequence[int]] | None = None,
    scalar: Mapping[int, int] | None = None,
    *,
    active: int = ALL_LANES,
    vcc: int = 0,
    scc: bool = False,
    denormals: int = 15,
    lds_bytes: int = 0,
    grain: int = 1,
    scratch_words: int = 0,
    waves: int = 1,
) -> Waves:
    """Waves with some registers filled, alike in each wave."""
    registers = np.full((VECTOR_REGISTERS + ACCUMULATION_REGISTERS, waves, LANES), POISON, np.uint32)
    for number, values in (vector or {}).items():
        registers[number] = np.array(values, np.uint64).astype(np.uint32)
    scalars = np.full((SCALAR_REGISTERS, waves), POISON, np.uint32)
    for number, value in {**(scalar or {}), EXEC: active & 0xFFFFFFFF, EXEC + 1: active >> 32}.items():
        scalars[number] = value & 0xFFFFFFFF
    scalars[VCC], scalars[VCC + 1] = vcc & 0xFFFFFFFF, vcc >> 32
    scratch = np.full((scratch_words, waves, LANES), POISON, np.uint32)
    return Waves(
        registers,
        scalars,
        np.full(waves, scc),
        scratch,
        np.zeros(waves, np.int64),
        np.arange(waves),
        Lds(1, lds_bytes, grain),
        Memory(),
        denormals,
    )


def execute(text: str, waves: Waves) -> Waves:
    """Run instructions, one a line."""
    with np.errstate(all="ignore"):
        for number, line in enumerate(text.strip().splitlines(), 1):
            translate(read_instruction(line, number), LIMITS)(waves)
    return waves


def pair(waves: Waves, register: int, lane: int) -> int:
    """64 bits from two vector registers."""
    return int(waves.vector[register, 0, lane]) | int(waves.vector[register + 1, 0, lane]) << 32


def scalar_pair(waves: Waves, register: int) -> int:
    """64 bits from two scalar registers."""
    return int(waves.scalar[register, 0]) | int(waves.scalar[register + 1, 0]) << 32

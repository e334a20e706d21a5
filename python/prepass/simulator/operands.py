# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands as functions of the waves' registers.

Source: "AMD Instinct MI300 Instruction Set Architecture Reference Guide" (CDNA3), sections 5.1 and 6.1, and
"AMDGPU Instruction Modifiers and Operands", https://llvm.org/docs/AMDGPUOperandSyntax.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from prepass.simulator.errors import Fault
from prepass.simulator.waves import EXEC, M0, VCC, Waves, bits_of

Getter = Callable[[Waves], np.ndarray]
Setter = Callable[[Waves, np.ndarray], None]

_REGISTER = re.compile(r"([vas])(?:(\d+)|\[(\d+)(?::(\d+))?\])")
_SPECIAL = {
    "vcc": (VCC, 2),
    "vcc_lo": (VCC, 1),
    "vcc_hi": (VCC + 1, 1),
    "exec": (EXEC, 2),
    "exec_lo": (EXEC, 1),
    "exec_hi": (EXEC + 1, 1),
    "m0": (M0, 1),
}
_INTEGER = re.compile(r"-?(0x[0-9a-fA-F]+|\d+)")
_FLOAT = re.compile(r"-?\d+\.\d*(e[-+]?\d+)?")
# 1/(2π) as the ISA encodes it.
_INVERSE_TWO_PI = {"f16": 0x3118, "f32": 0x3E22F983, "f64": 0x3FC45F306DC9C882}
# The address of a constant, relative to what S_GETPC_B64 gives in the instruction before.
_SYMBOL = re.compile(r"(.+)@rel32@(lo\+4|hi\+12)")
PROGRAM_COUNTER = 0x7D0000000000
_FLOAT_TYPES = {"f16": (np.float16, np.uint16), "f32": (np.float32, np.uint32), "f64": (np.float64, np.uint64)}


@dataclass(frozen=True)
class Limits:
    """What the operands of a kernel can name.

    Attributes:
      vector: How many vector registers a wave has; the accumulation registers follow them.
      symbols: Addresses of the constants that lie beside the code.
    """

    vector: int
    accumulation: int
    scalar: int
    symbols: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Register:
    """Consecutive registers.

    Attributes:
      kind: "v" or "s"; an accumulation register is a "v" behind the others.
      index: The row of `Waves.vector` or `Waves.scalar`.
    """

    kind: str
    index: int
    count: int


@dataclass(frozen=True)
class Constant:
    """A constant; `text` decides its bits, which depend on the type that it is read as."""

    text: str

    def bits(self, kind: str) -> int:
        """The bits for an operand of this type: f16, f32, f64, or anything else for an integer."""
        if _INTEGER.fullmatch(self.text):
            value = int(self.text, 0)
            if kind == "f64" and not -16 <= value <= 64:
                return (value & 0xFFFFFFFF) << 32
            wide = kind in ("f64", "u64", "i64")
            # Whether a literal with its highest bit set is extended with zeros depends on the instruction.
            if wide and not -(1 << 31) <= value < 1 << (31 if kind == "i64" else 32):
                raise Fault(f"constant '{self.text}' is not supported as a 64-bit operand")
            return value & ((1 << 64) - 1 if wide else 0xFFFFFFFF)
        kind = kind if kind in _FLOAT_TYPES else {"u64": "f64", "i64": "f64"}.get(kind, "f32")
        value = float(self.text)
        if abs(value) not in (0.0, 0.5, 1.0, 2.0, 4.0) and not self.text.startswith("0.15915494"):
            raise Fault(f"constant '{self.text}' is no inline constant")
        if self.text.startswith("0.15915494"):
            return _INVERSE_TWO_PI[kind]
        real, bits = _FLOAT_TYPES[kind]
        return int(np.array(value, real).view(bits))


@dataclass(frozen=True)
class Source:
    """A source operand with the modifiers that stand at it."""

    place: Register | Constant
    negate: bool = False
    absolute: bool = False
    sign_extend: bool = False


def parse_register(text: str, limits: Limits) -> Register | None:
    """A register or registers; None when the text is something else. Raises Fault when a wave has no such one."""
    if text in _SPECIAL:
        return Register("s", *_SPECIAL[text])
    match = _REGISTER.fullmatch(text)
    if not match:
        return None
    first = int(match[2] or match[3])
    last = int(match[4] or first)
    limit = {"v": limits.vector, "a": limits.accumulation, "s": limits.scalar}[match[1]]
    if last >= limit or last < first:
        raise Fault(f"register '{text}' is out of range: the kernel has {limit} of its kind")
    if match[1] == "s":
        return Register("s", first, last - first + 1)
    return Register("v", first + (limits.vector if match[1] == "a" else 0), last - first + 1)


def parse_source(text: str, limits: Limits) -> Source:
    """A source operand. Raises Fault for what it cannot read."""
    original, negate, absolute, extend = text, False, False, False
    if match := re.fullmatch(r"(sext|neg|abs)\((.*)\)", text):
        negate, absolute, extend = (match[1] == word for word in ("neg", "abs", "sext"))
        text = match[2]
    if text.startswith("-") and not text[1:2].isdigit():
        negate, text = True, text[1:]
    if match := re.fullmatch(r"\|(.*)\|", text):
        absolute, text = True, match[1]
    register = parse_register(text, limits)
    if register:
        return Source(register, negate, absolute, extend)
    if symbol := _SYMBOL.fullmatch(text):
        return Source(Constant(hex(_relative(symbol[1], limits) >> (32 if symbol[2][0] == "h" else 0) & 0xFFFFFFFF)))
    if not _INTEGER.fullmatch(text) and not _FLOAT.fullmatch(text):
        raise Fault(f"unknown operand '{original}'")
    return Source(Constant(text), negate, absolute, extend)


def _relative(symbol: str, limits: Limits) -> int:
    name = symbol.strip('"')
    if name not in limits.symbols:
        raise Fault(f"no constant '{name}' beside the code")
    return (limits.symbols[name] - PROGRAM_COUNTER) & 0xFFFFFFFFFFFFFFFF


def expect_register(text: str, limits: Limits, kind: str, count: int) -> Register:
    """A register operand of a kind and size that the instruction fixes. Raises Fault for any other."""
    register = parse_register(text, limits)
    if not register or register.kind != kind or register.count != count:
        raise Fault(f"operand '{text}': expected {count} {'vector' if kind == 'v' else 'scalar'} register(s)")
    return register


def constant_array(bits: int) -> np.ndarray:
    """A constant that broadcasts over waves and lanes, uint32[1, 1]."""
    return np.array([[bits & 0xFFFFFFFF]], np.uint32)


def vector_word(place: Register | Constant, kind: str = "u32", word: int = 0) -> Getter:
    """A 32-bit operand of a vector instruction: uint32[count, 64], or 1 for dimensions that it is uniform in."""
    if isinstance(place, Constant):
        bits = place.bits(kind)
        constant = constant_array(bits >> 32 * word)
        return lambda waves: constant
    index = place.index + word
    if word >= place.count:
        raise Fault(f"an operand of {place.count} register(s) is too short")
    if place.kind == "v":
        return lambda waves: waves.vector[index]
    return lambda waves: waves.scalar_columns[index]


def vector_pair(place: Register | Constant, kind: str = "u64") -> Getter:
    """A 64-bit operand of a vector instruction, uint64."""
    if isinstance(place, Constant):
        constant = np.array([[place.bits(kind)]], np.uint64)
        return lambda waves: constant
    if place.count != 2:
        raise Fault(f"expected a pair of registers, not {place.count}")
    low, high = vector_word(place), vector_word(place, word=1)
    return lambda waves: join(low(waves), high(waves))


def scalar_word(place: Register | Constant, word: int = 0) -> Getter:
    """A 32-bit operand of a scalar instruction: uint32[count] or [1]."""
    if isinstance(place, Constant):
        constant = constant_array(place.bits("u64" if word else "u32") >> 32 * word)[0]
        return lambda waves: constant
    if place.kind != "s" or word >= place.count:
        raise Fault("expected scalar register(s)")
    index = place.index + word
    return lambda waves: waves.scalar[index]


def scalar_pair(place: Register | Constant) -> Getter:
    """A 64-bit operand of a scalar instruction: uint64[count] or [1]."""
    if isinstance(place, Constant):
        constant = np.array([place.bits("u64")], np.uint64)
        return lambda waves: constant
    if place.kind != "s" or place.count != 2:
        raise Fault("expected a pair of scalar registers")
    index = place.index
    return lambda waves: join(waves.scalar[index], waves.scalar[index + 1])


def write_scalar(place: Register) -> Setter:
    """Writes a scalar register, or a pair where the value is uint64."""
    index, is_exec = place.index, place.index in (EXEC, EXEC + 1)

    def set_word(waves: Waves, value: np.ndarray) -> None:
        waves.scalar[index] = value
        if is_exec:
            waves.exec_changed()

    def set_pair(waves: Waves, value: np.ndarray) -> None:
        waves.scalar[index], waves.scalar[index + 1] = split(value)
        if is_exec:
            waves.exec_changed()

    return set_word if place.count == 1 else set_pair


def write_lanes(place: Register) -> Setter:
    """Writes a pair of scalar registers from bool[count, 64]; inactive lanes give 0."""
    if place.kind != "s" or place.count != 2:
        raise Fault("expected a pair of scalar registers")
    index, is_exec = place.index, place.index == EXEC

    def set_lanes(waves: Waves, lanes: np.ndarray) -> None:
        lanes = np.logical_and(lanes, waves.mask)
        waves.scalar[index], waves.scalar[index + 1] = bits_of(lanes)
        if is_exec:
            waves.exec_changed()

    return set_lanes


def write_vector(place: Register) -> Setter:
    """Writes a vector register, or a pair where there are two, in the active lanes."""
    index = place.index
    if place.kind != "v":
        raise Fault("expected vector register(s)")
    if place.count == 1:
        return lambda waves, value: waves.write(index, value)

    def set_pair(waves: Waves, value: np.ndarray) -> None:
        low, high = split(value)
        waves.write(index, low)
        waves.write(index + 1, high)

    return set_pair


def join(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """uint64 from two halves."""
    return low.astype(np.uint64) | (high.astype(np.uint64) << np.uint64(32))


def split(value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The low and the high half of uint64."""
    return value.astype(np.uint32), (value >> np.uint64(32)).astype(np.uint32)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IEEE numbers as bits, with exact arithmetic in between: what the simulator is compared against, one at a time."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction

# Bits of the exponent and of the fraction.
_FORMATS = {"f16": (5, 10), "f32": (8, 23), "f64": (11, 52)}
_CODES = {"f16": ("<e", "<H"), "f32": ("<f", "<I"), "f64": ("<d", "<Q")}


def size(kind: str) -> int:
    """The bits of a type such as f16, u32, i24."""
    return int(kind[1:])


def value(bits: int, kind: str) -> float:
    """The number that bits stand for; every one is a Python float."""
    real, whole = _CODES[kind]
    return struct.unpack(real, struct.pack(whole, bits))[0]


def nan(kind: str) -> int:
    """A quiet NaN; any other is as good."""
    exponent, fraction = _FORMATS[kind]
    return ((1 << exponent) - 1) << fraction | 1 << (fraction - 1)


def is_nan(bits: int, kind: str) -> bool:
    """Whether bits are any NaN."""
    return math.isnan(value(bits, kind))


def rounded(exact: Fraction | float, kind: str, sign_of_zero: bool = False) -> int:
    """The bits of the nearest number, ties to even; `sign_of_zero` is the sign of an exact zero."""
    exponent_bits, fraction_bits = _FORMATS[kind]
    if isinstance(exact, float):
        if math.isnan(exact):
            return nan(kind)
        if math.isinf(exact) or exact == 0:
            top = ((1 << exponent_bits) - 1) << fraction_bits if math.isinf(exact) else 0
            return top | (math.copysign(1, exact) < 0) << (exponent_bits + fraction_bits)
        exact = Fraction(exact)
    negative = exact < 0 or (exact == 0 and sign_of_zero)
    sign = int(negative) << (exponent_bits + fraction_bits)
    magnitude = abs(exact)
    if not magnitude:
        return sign
    bias = (1 << (exponent_bits - 1)) - 1
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    exponent = max(exponent, 1 - bias)
    scaled = magnitude / Fraction(2) ** (exponent - fraction_bits)
    whole = round(scaled)  # Python rounds ties of fractions to even.
    if whole >> (fraction_bits + 1):
        whole, exponent = whole >> 1, exponent + 1
    if exponent > bias:
        return sign | ((1 << exponent_bits) - 1) << fraction_bits
    biased = exponent + bias if whole >> fraction_bits else 0
    return sign | biased << fraction_bits | (whole & ((1 << fraction_bits) - 1))


def add(a: float, b: float, kind: str) -> int:
    """a + b, rounded once."""
    if not (math.isfinite(a) and math.isfinite(b)) or (a == 0 and b == 0):
        return rounded(a + b, kind)
    return rounded(Fraction(a) + Fraction(b), kind)


def multiply(a: float, b: float, kind: str) -> int:
    """a · b, rounded once."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return rounded(a * b, kind)
    return rounded(Fraction(a) * Fraction(b), kind, math.copysign(1, a) * math.copysign(1, b) < 0)


def fused(a: float, b: float, c: float, kind: str) -> int:
    """a · b + c, rounded once."""
    if not all(map(math.isfinite, (a, b))) or not math.isfinite(c):
        # What is finite may be huge: its sign is all that matters beside an infinity.
        small = [math.copysign(min(abs(x), 1.0), x) if math.isfinite(x) else x for x in (a, b, c)]
        return rounded(small[0] * small[1] + small[2], kind)
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    product_negative = math.copysign(1, a) * math.copysign(1, b) < 0
    both_negative = product_negative and math.copysign(1, c) < 0
    return rounded(exact, kind, both_negative)


def _order(x: float) -> tuple[float, float]:
    return x, math.copysign(1, x)


def smaller(a: float, b: float) -> float:
    """The smaller number; NaN only when both are; -0 is smaller than 0."""
    return b if math.isnan(a) else a if math.isnan(b) else min(a, b, key=_order)


def larger(a: float, b: float) -> float:
    """The larger number; NaN only when both are; -0 is smaller than 0."""
    return b if math.isnan(a) else a if math.isnan(b) else max(a, b, key=_order)


def whole(function: Callable[[float], int], x: float, kind: str) -> int:
    """A function to integers such as floor, as a number of the type; zeros keep their sign."""
    if not math.isfinite(x) or x == 0:
        return rounded(x, kind)
    return rounded(Fraction(function(x)), kind, math.copysign(1, x) < 0)


def flushed(bits: int, kind: str) -> int:
    """The bits, with zero of the same sign for denormals."""
    exponent_bits, fraction_bits = _FORMATS[kind]
    exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1)
    return bits if exponent else bits & 1 << (exponent_bits + fraction_bits)


def signed(bits: int, width: int) -> int:
    """The low bits as a signed number."""
    bits &= (1 << width) - 1
    return bits - (1 << width) if bits >> (width - 1) else bits

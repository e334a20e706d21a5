# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Floating-point arithmetic that numpy does not have, rounded once as the hardware rounds.

Source: "AMD Instinct MI300 Instruction Set Architecture Reference Guide" (CDNA3), section 4.6.2, and the
pseudo-code of the instructions in section 12.
"""

from __future__ import annotations

import numpy as np

_SMALLEST_NORMAL = {np.float16: 2.0**-14, np.float32: 2.0**-126, np.float64: 2.0**-1022}


def flush(value: np.ndarray) -> np.ndarray:
    """Denormals replaced by zero of the same sign; the type is kept."""
    tiny = np.abs(value) < value.dtype.type(_SMALLEST_NORMAL[value.dtype.type])
    return np.where(tiny, np.copysign(value.dtype.type(0), value), value)


def to_odd(high: np.ndarray, error: np.ndarray) -> np.ndarray:
    """`high + error` in float64, rounded to odd, so that rounding it to a narrower type is rounding once.

    Source: Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using
    rounding to odd", 2008.
    """
    bits = high.view(np.uint64)
    inexact = (error != 0) & np.isfinite(high) & ((bits & np.uint64(1)) == 0)
    # Towards the error: away from zero when it has the sign of the sum.
    away = np.signbit(high) == np.signbit(error)
    step = np.where(away, np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF))
    return np.where(inexact, bits + step, bits).view(np.float64)


def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """`a · b + c` rounded once, for float16 and float32."""
    kind = np.result_type(a, b, c)
    product = a.astype(np.float64) * b.astype(np.float64)
    addend = c.astype(np.float64)
    total = product + addend
    result = total.astype(kind)
    # The product is exact. The sum needs care only where float64 has rounded it to the middle between two
    # results, or where the result is denormal.
    dropped = np.uint64(29 if kind == np.float32 else 42)
    middle = (total.view(np.uint64) & ((np.uint64(1) << dropped) - np.uint64(1))) == np.uint64(1) << (
        dropped - np.uint64(1)
    )
    small = np.abs(total) < _SMALLEST_NORMAL[kind.type] * 2
    if not (middle | small).any():
        return result
    virtual = total - product
    error = (product - (total - virtual)) + (addend - virtual)
    return to_odd(total, error).astype(kind)


def minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The number where one is NaN; -0 is less than 0."""
    bits = np.dtype(f"u{a.dtype.itemsize}")
    return np.where(a == b, (a.view(bits) | b.view(bits)).view(a.dtype), np.fmin(a, b))


def maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The number where one is NaN; -0 is less than 0."""
    bits = np.dtype(f"u{a.dtype.itemsize}")
    return np.where(a == b, (a.view(bits) & b.view(bits)).view(a.dtype), np.fmax(a, b))


def median(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The middle one of three; the smallest number when one is NaN."""
    ordered = maximum(minimum(a, b), minimum(maximum(a, b), c))
    nan = np.isnan(a) | np.isnan(b) | np.isnan(c)
    return np.where(nan, minimum(minimum(a, b), c), ordered) if nan.any() else ordered


def unary(function: np.ufunc) -> object:
    """A transcendental: in float64, then rounded. The hardware is within 1 ulp of that."""
    return lambda value: function(value.astype(np.float64)).astype(value.dtype)


def to_integer(value: np.ndarray, kind: type) -> np.ndarray:
    """Towards zero, NaN to 0, saturating."""
    limits = np.iinfo(kind)
    wide = np.nan_to_num(np.trunc(value.astype(np.float64)), nan=0.0, posinf=limits.max, neginf=limits.min)
    return np.clip(wide, limits.min, limits.max).astype(kind)


def towards_zero_f16(value: np.ndarray) -> np.ndarray:
    """float32 to float16, rounded towards zero; a finite value stays finite."""
    nearest = value.astype(np.float16)
    too_far = np.abs(nearest.astype(np.float32)) > np.abs(value)
    bits = nearest.view(np.uint16)
    return np.where(too_far & np.isfinite(value), bits - np.uint16(1), bits).view(np.float16)


def exponent(value: np.ndarray) -> np.ndarray:
    """The biased exponent of float32, int32."""
    return ((value.view(np.uint32) >> np.uint32(23)) & np.uint32(0xFF)).astype(np.int32)

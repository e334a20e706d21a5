# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vector instructions on floating-point numbers: arithmetic, conversions, transcendentals, division.

Source: "AMD Instinct MI300 Instruction Set Architecture Reference Guide" (CDNA3), sections 12.7 to 12.10 (VOP1,
VOP2, VOP3). Transcendentals are computed in float64 and rounded; the hardware is within 1 ulp of that. In f32 they
take and give zero for denormals, which is why compilers scale around them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prepass.simulator import floats
from prepass.simulator.vector import Operation


def _transcendental(kind: str, function: Callable[[np.ndarray], np.ndarray]) -> Operation:
    def compute(value: np.ndarray) -> np.ndarray:
        return function(value.astype(np.float64)).astype(value.dtype)

    return Operation(kind, (kind,), compute, flushes=kind == "f32")


def _reciprocal(value: np.ndarray) -> np.ndarray:
    return 1.0 / value


def _reciprocal_root(value: np.ndarray) -> np.ndarray:
    return 1.0 / np.sqrt(value)


def _turns(function: np.ufunc) -> Callable[[np.ndarray], np.ndarray]:
    """The hardware takes angles in turns; more than 256 turns give 0."""
    return lambda value: np.where(np.abs(value) > 256, 0.0, function(np.remainder(value, 1.0) * (2 * np.pi)))


def _fraction(value: np.ndarray) -> np.ndarray:
    largest = np.nextafter(value.dtype.type(1), value.dtype.type(0))
    return np.minimum(value - np.floor(value), largest)


def _scale_power(value: np.ndarray, power: np.ndarray) -> np.ndarray:
    # Rounded once: float64 holds every float32 times a power of two that is not far out of its range.
    return np.ldexp(value.astype(np.float64), np.clip(power, -400, 400)).astype(value.dtype)


def _mantissa(value: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(value), np.frexp(value)[0], value)


def _power(value: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(value), np.frexp(value)[1], 0).astype(np.int32)


def _to(kind: type) -> Callable[[np.ndarray], np.ndarray]:
    return lambda value: value.astype(kind)


def _to_integer(kind: type) -> Callable[[np.ndarray], np.ndarray]:
    return lambda value: floats.to_integer(value, kind)


def _pack(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    low, high = np.broadcast_arrays(low, high)
    return low.view(np.uint16).astype(np.uint32) | (high.view(np.uint16).astype(np.uint32) << np.uint32(16))


def _pack_towards_zero(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return _pack(floats.towards_zero_f16(low), floats.towards_zero_f16(high))


def _byte(number: int) -> Callable[[np.ndarray], np.ndarray]:
    shift = np.uint32(8 * number)
    return lambda value: ((value >> shift) & np.uint32(0xFF)).astype(np.float32)


def _fixup(quotient: np.ndarray, denominator: np.ndarray, numerator: np.ndarray) -> np.ndarray:
    """V_DIV_FIXUP: the quotient with its sign, or what division gives for zeros, infinities and NaN."""
    kind = quotient.dtype.type
    negative = np.signbit(denominator) != np.signbit(numerator)
    signed = np.where(negative, -np.abs(quotient), np.abs(quotient))
    zero, infinity = np.where(negative, kind(-0.0), kind(0)), np.where(negative, kind(-np.inf), kind(np.inf))
    result = signed
    if kind is np.float32:
        gap = floats.exponent(numerator) - floats.exponent(denominator)
        # Too small for a number; the quotient has nothing right in it.
        result = np.where(gap < -150, zero, result)
        # Nor when it is too large for one: the steps before have overflowed.
        result = np.where(np.isnan(quotient) & (gap > 0), infinity, result)
    result = np.where(np.isinf(denominator) | (numerator == 0), zero, result)
    result = np.where((denominator == 0) | np.isinf(numerator), infinity, result)
    undefined = (np.isinf(denominator) & np.isinf(numerator)) | ((denominator == 0) & (numerator == 0))
    result = np.where(undefined, kind(np.nan), result)
    result = np.where(np.isnan(denominator), denominator, result)
    return np.where(np.isnan(numerator), numerator, result).astype(kind)


def _arithmetic(kind: str) -> dict[str, Operation]:
    """What f16, f32 and f64 have in common."""
    one, two = (kind,), (kind, kind)
    return {
        f"v_add_{kind}": Operation(kind, two, np.add),
        f"v_mul_{kind}": Operation(kind, two, np.multiply),
        f"v_min_{kind}": Operation(kind, two, floats.minimum),
        f"v_max_{kind}": Operation(kind, two, floats.maximum),
        f"v_rndne_{kind}": Operation(kind, one, np.rint),
        f"v_trunc_{kind}": Operation(kind, one, np.trunc),
        f"v_floor_{kind}": Operation(kind, one, np.floor),
        f"v_ceil_{kind}": Operation(kind, one, np.ceil),
        f"v_fract_{kind}": Operation(kind, one, _fraction),
        f"v_frexp_mant_{kind}": Operation(kind, one, _mantissa),
    }


def _half_and_single(kind: str) -> dict[str, Operation]:
    half = kind == "f16"
    three = (kind, kind, kind)
    return {
        f"v_min3_{kind}": Operation(kind, three, lambda a, b, c: floats.minimum(floats.minimum(a, b), c)),
        f"v_max3_{kind}": Operation(kind, three, lambda a, b, c: floats.maximum(floats.maximum(a, b), c)),
        f"v_med3_{kind}": Operation(kind, three, floats.median),
        f"v_sub_{kind}": Operation(kind, (kind, kind), np.subtract),
        f"v_subrev_{kind}": Operation(kind, (kind, kind), lambda a, b: b - a),
        f"v_fma_{kind}": Operation(kind, three, floats.fma, keeps_high=half),
        f"v_fmac_{kind}": Operation(kind, three, floats.fma, reads_result=True, keeps_high=half),
        f"v_div_fixup_{kind}": Operation(kind, three, _fixup, keeps_high=half),
        f"v_exp_{kind}": _transcendental(kind, np.exp2),
        f"v_log_{kind}": _transcendental(kind, np.log2),
        f"v_rcp_{kind}": _transcendental(kind, _reciprocal),
        f"v_rsq_{kind}": _transcendental(kind, _reciprocal_root),
        f"v_sqrt_{kind}": _transcendental(kind, np.sqrt),
        f"v_sin_{kind}": _transcendental(kind, _turns(np.sin)),
        f"v_cos_{kind}": _transcendental(kind, _turns(np.cos)),
    }


REALS: dict[str, Operation] = {
    **_arithmetic("f16"),
    **_arithmetic("f32"),
    **_arithmetic("f64"),
    **_half_and_single("f16"),
    **_half_and_single("f32"),
    "v_rcp_iflag_f32": _transcendental("f32", _reciprocal),
    "v_fmamk_f32": Operation("f32", ("f32", "f32", "f32"), floats.fma),
    "v_fmaak_f32": Operation("f32", ("f32", "f32", "f32"), floats.fma),
    "v_ldexp_f32": Operation("f32", ("f32", "i32"), _scale_power),
    "v_ldexp_f16": Operation("f16", ("f16", "i16"), _scale_power),
    "v_ldexp_f64": Operation("f64", ("f64", "i32"), np.ldexp),
    "v_frexp_exp_i32_f32": Operation("i32", ("f32",), _power),
    "v_frexp_exp_i32_f64": Operation("i32", ("f64",), _power),
    "v_frexp_exp_i16_f16": Operation("i16", ("f16",), lambda a: _power(a).astype(np.int16)),
    "v_rcp_f64": Operation("f64", ("f64",), _reciprocal),
    "v_rsq_f64": Operation("f64", ("f64",), _reciprocal_root),
    "v_sqrt_f64": Operation("f64", ("f64",), np.sqrt),
    "v_cvt_f32_f16": Operation("f32", ("f16",), _to(np.float32)),
    "v_cvt_f16_f32": Operation("f16", ("f32",), _to(np.float16)),
    "v_cvt_f32_f64": Operation("f32", ("f64",), _to(np.float32)),
    "v_cvt_f64_f32": Operation("f64", ("f32",), _to(np.float64)),
    "v_cvt_f32_u32": Operation("f32", ("u32",), _to(np.float32)),
    "v_cvt_f32_i32": Operation("f32", ("i32",), _to(np.float32)),
    "v_cvt_f64_u32": Operation("f64", ("u32",), _to(np.float64)),
    "v_cvt_f64_i32": Operation("f64", ("i32",), _to(np.float64)),
    "v_cvt_u32_f32": Operation("u32", ("f32",), _to_integer(np.uint32)),
    "v_cvt_i32_f32": Operation("i32", ("f32",), _to_integer(np.int32)),
    "v_cvt_u32_f64": Operation("u32", ("f64",), _to_integer(np.uint32)),
    "v_cvt_i32_f64": Operation("i32", ("f64",), _to_integer(np.int32)),
    "v_cvt_f16_u16": Operation("f16", ("u16",), _to(np.float16)),
    "v_cvt_f16_i16": Operation("f16", ("i16",), _to(np.float16)),
    "v_cvt_u16_f16": Operation("u16", ("f16",), _to_integer(np.uint16)),
    "v_cvt_i16_f16": Operation("i16", ("f16",), _to_integer(np.int16)),
    **{f"v_cvt_f32_ubyte{byte}": Operation("f32", ("u32",), _byte(byte)) for byte in range(4)},
    "v_cvt_pkrtz_f16_f32": Operation("b32", ("f32", "f32"), _pack_towards_zero),
    "v_pack_b32_f16": Operation("b32", ("f16", "f16"), _pack),
}  # fmt: skip

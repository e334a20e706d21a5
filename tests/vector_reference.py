# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What vector instructions do to one lane, from bits to bits, written from AMD's CDNA3 ISA document.

Names have their types in the tables: of the result, then of each source as it is written.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from .exact_numbers import add, fused, is_nan, larger, multiply, nan, rounded, signed, size, smaller, value, whole


@dataclass(frozen=True)
class Reference:
    """An instruction on one lane.

    Attributes:
      kinds: The types of the result and the sources.
      compute: From the sources' bits to the result's bits.
      tolerance: Units in the last place, of results that are numbers.
      old: Whether the destination is a source too, the last one.
    """

    kinds: tuple[str, ...]
    compute: Callable[..., int]
    tolerance: int = 0
    old: bool = False


def _reals(kind: str, compute: Callable[..., int], sources: int, **options: object) -> Reference:
    return Reference((kind,) * (sources + 1), lambda *bits: compute(*[value(b, kind) for b in bits]), **options)


def _mask(kind: str) -> int:
    return (1 << size(kind)) - 1


def _ints(kind: str, compute: Callable[..., int], sources: int) -> Reference:
    """On integers, signed or not, with the result cut to its width."""

    def run(*bits: int) -> int:
        numbers = [signed(b, size(kind)) if kind[0] == "i" else b for b in bits]
        return compute(*numbers) & _mask(kind)

    return Reference((kind,) * (sources + 1), run)


def _median(a: float, b: float, c: float) -> float:
    if any(map(math.isnan, (a, b, c))):
        return smaller(smaller(a, b), c)
    return larger(smaller(a, b), smaller(larger(a, b), c))


def _approximate(kind: str, function: Callable[[float], float]) -> Reference:
    """A transcendental; f32 takes and gives zero for denormals."""
    smallest = 2.0**-126

    def run(bits: int) -> int:
        x = value(bits, kind)
        if kind == "f32" and abs(x) < smallest:
            x = math.copysign(0.0, x)
        result = function(x)
        if kind == "f32" and abs(value(rounded(result, kind), kind)) < smallest:
            result = math.copysign(0.0, result)
        return rounded(result, kind)

    return Reference((kind, kind), run, tolerance=1)


def _power_of_two(x: float) -> float:
    return math.inf if x > 1100 else 0.0 if x < -1100 else 2.0**x if not math.isnan(x) else x


def _logarithm(x: float) -> float:
    if x == 0:
        return -math.inf
    return math.nan if x < 0 or math.isnan(x) else x if math.isinf(x) else math.log2(x)


def _reciprocal(x: float) -> float:
    return math.copysign(math.inf, x) if x == 0 else 1 / x


def _root(x: float) -> float:
    return x if x == 0 else math.nan if x < 0 or math.isnan(x) else math.sqrt(x)


def _reciprocal_root(x: float) -> float:
    return math.copysign(math.inf, x) if x == 0 else math.nan if x < 0 or math.isnan(x) else 1 / math.sqrt(x)


def _turn(function: Callable[[float], float]) -> Callable[[float], float]:
    def run(x: float) -> float:
        if not math.isfinite(x):
            return 0.0 if math.isinf(x) else x
        return 0.0 if abs(x) > 256 else function(float(Fraction(x) % 1) * 2 * math.pi)

    return run


def _fraction(kind: str) -> Callable[[float], int]:
    largest = (1 << 10) * 14 + 1023 if kind == "f16" else 0x3F7FFFFF if kind == "f32" else 0x3FEFFFFFFFFFFFFF

    def run(x: float) -> int:
        if not math.isfinite(x):
            return nan(kind)
        return min(rounded(Fraction(x) - math.floor(x), kind), largest)

    return run


def _to_integer(kind: str) -> Callable[[float], int]:
    low, high = (-(1 << size(kind) - 1), (1 << size(kind) - 1) - 1) if kind[0] == "i" else (0, _mask(kind))

    def run(x: float) -> int:
        if math.isnan(x):
            return 0
        return (low if x <= low else high if x >= high else math.trunc(x)) & _mask(kind)

    return run


def _mantissa(kind: str) -> Callable[[float], int]:
    return lambda x: rounded(math.frexp(x)[0] if math.isfinite(x) else x, kind)


def _power(x: float) -> int:
    return math.frexp(x)[1] if math.isfinite(x) else 0


def _scaled(kind: str, width: int) -> Callable[[int, int], int]:
    def run(bits: int, power: int) -> int:
        x = value(bits, kind)
        if not math.isfinite(x) or x == 0:
            return rounded(x, kind)
        limited = max(min(signed(power, width), 3000), -3000)
        return rounded(Fraction(x) * Fraction(2) ** limited, kind, x < 0)

    return run


def _fixup(kind: str) -> Callable[[int, int, int], int]:
    bias = {"f32": 127, "f16": 15}[kind]

    def exponent(bits: int) -> int:
        return bits >> (23 if kind == "f32" else 10) & (2 * bias + 1)

    def run(quotient: int, denominator: int, numerator: int) -> int:
        top = size(kind) - 1
        sign = (denominator >> top ^ numerator >> top) << top
        d, n = value(denominator, kind), value(numerator, kind)
        infinity, zero = rounded(math.inf, kind) | sign, sign
        if math.isnan(n) or math.isnan(d) or (d == 0 and n == 0) or (math.isinf(d) and math.isinf(n)):
            return nan(kind)
        if d == 0 or math.isinf(n):
            return infinity
        if math.isinf(d) or n == 0:
            return zero
        gap = exponent(numerator) - exponent(denominator)
        if kind == "f32" and gap < -150:
            return zero
        if kind == "f32" and gap > 0 and is_nan(quotient, kind):
            return infinity
        return quotient & ((1 << top) - 1) | sign

    return run


def _towards_zero(bits: int) -> int:
    x = value(bits, "f32")
    nearest = rounded(x, "f16")
    if math.isfinite(x) and abs(value(nearest, "f16")) > abs(x):
        nearest -= 1
    return nearest


def _shift_left(width: int) -> Callable[[int, int], int]:
    return lambda amount, bits: bits << (amount % width) & ((1 << width) - 1)


def _shift_right(width: int) -> Callable[[int, int], int]:
    return lambda amount, bits: bits >> (amount % width)


def _shift_signed(width: int) -> Callable[[int, int], int]:
    return lambda amount, bits: signed(bits, width) >> (amount % width) & ((1 << width) - 1)


def _bytes(word: int) -> list[int]:
    return [word >> 8 * number & 0xFF for number in range(4)]


def _permute(high: int, low: int, selector: int) -> int:
    data = _bytes(low) + _bytes(high)
    result = 0
    for position, choice in enumerate(_bytes(selector)):
        if choice < 8:
            picked = data[choice]
        elif choice < 12:
            picked = 0xFF if data[2 * (choice - 8) + 1] & 0x80 else 0
        else:
            picked = 0 if choice == 12 else 0xFF
        result |= picked << 8 * position
    return result


def _field(bits: int, offset: int, width: int) -> int:
    return bits >> (offset % 32) & ((1 << width % 32) - 1)


def _signed_field(bits: int, offset: int, width: int) -> int:
    field = _field(bits, offset, width)
    return signed(field, width % 32) & 0xFFFFFFFF if width % 32 else 0


def _first_set(bits: int) -> int:
    return next((number for number in range(32) if bits >> number & 1), 0xFFFFFFFF)


def leading_zeros(bits: int) -> int:
    """Zeros before the highest set bit of 32."""
    return next((number for number in range(32) if bits >> (31 - number) & 1), 0xFFFFFFFF)


def leading_signs(bits: int) -> int:
    """Bits before the highest one that differs from the sign."""
    sign = bits >> 31
    return next((number for number in range(1, 32) if bits >> (31 - number) & 1 != sign), 0xFFFFFFFF)


def _dot(a: int, b: int, c: int) -> int:
    return sum(signed(x, 8) * signed(y, 8) for x, y in zip(_bytes(a), _bytes(b), strict=True)) + c & 0xFFFFFFFF


def _align(high: int, low: int, amount: int) -> int:
    return (high << 32 | low) >> amount % 32 & 0xFFFFFFFF


_U3, _U2, _U1 = ("u32",) * 4, ("u32",) * 3, ("u32",) * 2
_W = 0xFFFFFFFF


def _low24(compute: Callable[..., int], is_signed: bool, shift: int = 0) -> Callable[..., int]:
    def run(a: int, b: int, *rest: int) -> int:
        convert = (lambda x: signed(x, 24)) if is_signed else (lambda x: x & 0xFFFFFF)
        return compute(convert(a), convert(b), *rest) >> shift & _W

    return run


INTEGERS: dict[str, Reference] = {
    "v_mov_b32": Reference(_U1, lambda a: a),
    "v_mov_b64": Reference(("u64", "u64"), lambda a: a),
    "v_not_b32": Reference(_U1, lambda a: a ^ _W),
    "v_bfrev_b32": Reference(_U1, lambda a: int(f"{a:032b}"[::-1], 2)),
    "v_ffbh_u32": Reference(_U1, leading_zeros),
    "v_ffbh_i32": Reference(_U1, leading_signs),
    "v_ffbl_b32": Reference(_U1, _first_set),
    "v_bcnt_u32_b32": Reference(_U2, lambda a, b: a.bit_count() + b & _W),
    "v_add_u32": _ints("u32", operator.add, 2),
    "v_sub_u32": _ints("u32", operator.sub, 2),
    "v_subrev_u32": _ints("u32", lambda a, b: b - a, 2),
    "v_and_b32": _ints("u32", operator.and_, 2),
    "v_or_b32": _ints("u32", operator.or_, 2),
    "v_xor_b32": _ints("u32", operator.xor, 2),
    "v_xnor_b32": _ints("u32", lambda a, b: ~(a ^ b), 2),
    "v_lshlrev_b32": Reference(_U2, _shift_left(32)),
    "v_lshrrev_b32": Reference(_U2, _shift_right(32)),
    "v_ashrrev_i32": Reference(_U2, _shift_signed(32)),
    "v_lshlrev_b64": Reference(("u64", "u32", "u64"), _shift_left(64)),
    "v_lshrrev_b64": Reference(("u64", "u32", "u64"), _shift_right(64)),
    "v_ashrrev_i64": Reference(("u64", "u32", "u64"), _shift_signed(64)),
    "v_mul_lo_u32": _ints("u32", operator.mul, 2),
    "v_mul_hi_u32": _ints("u32", lambda a, b: a * b >> 32, 2),
    "v_mul_hi_i32": _ints("i32", lambda a, b: a * b >> 32, 2),
    "v_mul_u32_u24": Reference(_U2, _low24(operator.mul, False)),
    "v_mul_hi_u32_u24": Reference(_U2, _low24(operator.mul, False, 32)),
    "v_mul_i32_i24": Reference(_U2, _low24(operator.mul, True)),
    "v_mul_hi_i32_i24": Reference(_U2, _low24(operator.mul, True, 32)),
    "v_mad_u32_u24": Reference(_U3, _low24(lambda a, b, c: a * b + c, False)),
    "v_mad_i32_i24": Reference(_U3, _low24(lambda a, b, c: a * b + c, True)),
    **{f"v_{n}_{k}": _ints(k, f, 2) for k in ("u32", "i32", "u16", "i16") for n, f in (("min", min), ("max", max))},
    **{f"v_{n}3_{k}": _ints(k, f, 3) for k in ("u32", "i32") for n, f in (("min", min), ("max", max))},
    **{f"v_med3_{k}": _ints(k, lambda *numbers: sorted(numbers)[1], 3) for k in ("u32", "i32")},
    "v_add3_u32": _ints("u32", lambda a, b, c: a + b + c, 3),
    "v_or3_b32": _ints("u32", lambda a, b, c: a | b | c, 3),
    "v_and_or_b32": _ints("u32", lambda a, b, c: a & b | c, 3),
    "v_xad_u32": _ints("u32", lambda a, b, c: (a ^ b) + c, 3),
    "v_lshl_add_u32": _ints("u32", lambda a, b, c: (a << b % 32) + c, 3),
    "v_add_lshl_u32": _ints("u32", lambda a, b, c: (a + b) << c % 32, 3),
    "v_lshl_or_b32": _ints("u32", lambda a, b, c: (a << b % 32) | c, 3),
    "v_lshl_add_u64": Reference(("u64", "u64", "u32", "u64"), lambda a, b, c: (a << b % 8) + c & 0xFFFFFFFFFFFFFFFF),
    "v_sad_u32": _ints("u32", lambda a, b, c: abs(a - b) + c, 3),
    "v_bfe_u32": Reference(_U3, _field),
    "v_bfe_i32": Reference(_U3, _signed_field),
    "v_bfi_b32": _ints("u32", lambda a, b, c: (a & b) | (~a & c), 3),
    "v_bfm_b32": _ints("u32", lambda a, b: ((1 << a % 32) - 1) << b % 32, 2),
    "v_perm_b32": Reference(_U3, _permute),
    "v_alignbit_b32": Reference(_U3, _align),
    "v_alignbyte_b32": Reference(_U3, lambda a, b, c: _align(a, b, c % 4 * 8)),
    "v_dot4_i32_i8": Reference(_U3, _dot),
    "v_add_u16": _ints("u16", operator.add, 2),
    "v_sub_u16": _ints("u16", operator.sub, 2),
    "v_subrev_u16": _ints("u16", lambda a, b: b - a, 2),
    "v_mul_lo_u16": _ints("u16", operator.mul, 2),
    "v_lshlrev_b16": Reference(("u16",) * 3, _shift_left(16)),
    "v_lshrrev_b16": Reference(("u16",) * 3, _shift_right(16)),
    "v_ashrrev_i16": Reference(("u16",) * 3, _shift_signed(16)),
    "v_mad_u16": _ints("u16", lambda a, b, c: a * b + c, 3),
    "v_mad_legacy_u16": _ints("u16", lambda a, b, c: a * b + c, 3),
}


def _arithmetic(kind: str) -> dict[str, Reference]:
    return {
        f"v_add_{kind}": _reals(kind, lambda a, b: add(a, b, kind), 2),
        f"v_mul_{kind}": _reals(kind, lambda a, b: multiply(a, b, kind), 2),
        f"v_min_{kind}": _reals(kind, lambda a, b: rounded(smaller(a, b), kind), 2),
        f"v_max_{kind}": _reals(kind, lambda a, b: rounded(larger(a, b), kind), 2),
        f"v_rndne_{kind}": _reals(kind, lambda a: whole(round, a, kind), 1),
        f"v_trunc_{kind}": _reals(kind, lambda a: whole(math.trunc, a, kind), 1),
        f"v_floor_{kind}": _reals(kind, lambda a: whole(math.floor, a, kind), 1),
        f"v_ceil_{kind}": _reals(kind, lambda a: whole(math.ceil, a, kind), 1),
        f"v_fract_{kind}": _reals(kind, _fraction(kind), 1),
        f"v_frexp_mant_{kind}": _reals(kind, _mantissa(kind), 1),
    }


def _more_arithmetic(kind: str) -> dict[str, Reference]:
    fma = _reals(kind, lambda a, b, c: fused(a, b, c, kind), 3)
    return {
        f"v_sub_{kind}": _reals(kind, lambda a, b: add(a, -b, kind), 2),
        f"v_subrev_{kind}": _reals(kind, lambda a, b: add(b, -a, kind), 2),
        f"v_min3_{kind}": _reals(kind, lambda a, b, c: rounded(smaller(smaller(a, b), c), kind), 3),
        f"v_max3_{kind}": _reals(kind, lambda a, b, c: rounded(larger(larger(a, b), c), kind), 3),
        f"v_med3_{kind}": _reals(kind, lambda a, b, c: rounded(_median(a, b, c), kind), 3),
        f"v_fma_{kind}": fma,
        f"v_fmac_{kind}": Reference(fma.kinds, fma.compute, old=True),
        f"v_div_fixup_{kind}": Reference((kind,) * 4, _fixup(kind)),
        f"v_exp_{kind}": _approximate(kind, _power_of_two),
        f"v_log_{kind}": _approximate(kind, _logarithm),
        f"v_rcp_{kind}": _approximate(kind, _reciprocal),
        f"v_rsq_{kind}": _approximate(kind, _reciprocal_root),
        f"v_sqrt_{kind}": _approximate(kind, _root),
        f"v_sin_{kind}": _approximate(kind, _turn(math.sin)),
        f"v_cos_{kind}": _approximate(kind, _turn(math.cos)),
    }


def _conversion(result: str, source: str) -> Reference:
    """Between two types, named by result and source."""
    if result[0] == "f" and source[0] == "f":
        return Reference((result, source), lambda a: rounded(value(a, source), result))
    if result[0] == "f":
        convert = (lambda a: signed(a, size(source))) if source[0] == "i" else (lambda a: a)
        return Reference((result, source), lambda a: rounded(Fraction(convert(a)), result))
    return Reference((result, source), lambda a: _to_integer(result)(value(a, source)))


_CONVERSIONS = (
    *("f32_f16", "f16_f32", "f32_f64", "f64_f32", "f32_u32", "f32_i32", "f64_u32", "f64_i32"),
    *("u32_f32", "i32_f32", "u32_f64", "i32_f64", "f16_u16", "f16_i16", "u16_f16", "i16_f16"),
)

REALS: dict[str, Reference] = {
    **_arithmetic("f16"),
    **_arithmetic("f32"),
    **_arithmetic("f64"),
    **_more_arithmetic("f16"),
    **_more_arithmetic("f32"),
    **{f"v_cvt_{name}": _conversion(*name.split("_")) for name in _CONVERSIONS},
    **{
        f"v_cvt_f32_ubyte{n}": Reference(("f32", "u32"), lambda a, n=n: rounded(Fraction(_bytes(a)[n]), "f32"))
        for n in range(4)
    },
    "v_rcp_iflag_f32": _approximate("f32", _reciprocal),
    "v_fmamk_f32": _reals("f32", lambda a, b, c: fused(a, b, c, "f32"), 3),
    "v_fmaak_f32": _reals("f32", lambda a, b, c: fused(a, b, c, "f32"), 3),
    "v_ldexp_f32": Reference(("f32", "f32", "u32"), _scaled("f32", 32)),
    "v_ldexp_f16": Reference(("f16", "f16", "u16"), _scaled("f16", 16)),
    "v_ldexp_f64": Reference(("f64", "f64", "u32"), _scaled("f64", 32)),
    "v_frexp_exp_i32_f32": Reference(("u32", "f32"), lambda a: _power(value(a, "f32")) & _W),
    "v_frexp_exp_i32_f64": Reference(("u32", "f64"), lambda a: _power(value(a, "f64")) & _W),
    "v_frexp_exp_i16_f16": Reference(("u16", "f16"), lambda a: _power(value(a, "f16")) & 0xFFFF),
    "v_rcp_f64": _approximate("f64", _reciprocal),
    "v_rsq_f64": _approximate("f64", _reciprocal_root),
    "v_sqrt_f64": _approximate("f64", _root),
    "v_cvt_pkrtz_f16_f32": Reference(("p32", "f32", "f32"), lambda a, b: _towards_zero(a) | _towards_zero(b) << 16),
    "v_pack_b32_f16": Reference(("u32", "f16", "f16"), lambda a, b: a | b << 16),
}  # fmt: skip

VECTOR = {**INTEGERS, **REALS}


def same(got: int, wanted: int, kind: str, tolerance: int) -> bool:
    """Whether two results are equal, NaN like NaN, numbers of one sign within a tolerance. p32 is a pair of f16."""
    if got == wanted:
        return True
    if kind == "p32":
        return all(
            same(g, w, "f16", tolerance) for g, w in ((got & 0xFFFF, wanted & 0xFFFF), (got >> 16, wanted >> 16))
        )
    if kind[0] != "f":
        return False
    if is_nan(got, kind) or is_nan(wanted, kind):
        return is_nan(got, kind) and is_nan(wanted, kind)
    difference = abs((got & (1 << size(kind) - 1) - 1) - (wanted & (1 << size(kind) - 1) - 1))
    return got >> (size(kind) - 1) == wanted >> (size(kind) - 1) and difference <= tolerance

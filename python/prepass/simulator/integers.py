# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vector instructions on integers and bits.

Source: "AMD Instinct MI300 Instruction Set Architecture Reference Guide" (CDNA3), sections 12.7 to 12.10 (VOP1,
VOP2, VOP3).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prepass.simulator.vector import Operation

_U32 = np.uint32
_ONE = _U32(1)


def _shift(value: np.ndarray, amount: np.ndarray, left: bool) -> np.ndarray:
    """A shift by the low bits of the amount, as many as count within the value's width."""
    bits = value.dtype.itemsize * 8
    by = (amount & amount.dtype.type(bits - 1)).astype(value.dtype)
    return value << by if left else value >> by


def _left(amount: np.ndarray, value: np.ndarray) -> np.ndarray:
    return _shift(value, amount, True)


def _right(amount: np.ndarray, value: np.ndarray) -> np.ndarray:
    return _shift(value, amount, False)


def _mul_high(kind: type) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    def compute(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return ((a.astype(kind) * b.astype(kind)) >> kind(32)).astype(a.dtype)

    return compute


def _field(value: np.ndarray, offset: np.ndarray, width: np.ndarray) -> np.ndarray:
    """The unsigned field of `width` bits at `offset`."""
    mask = (_ONE << (width & _U32(31))) - _ONE
    return (value >> (offset & _U32(31))) & mask


def _signed_field(value: np.ndarray, offset: np.ndarray, width: np.ndarray) -> np.ndarray:
    width = width & _U32(31)
    field = _field(value, offset, width)
    sign = np.where(width > 0, _ONE << (np.maximum(width, _ONE) - _ONE), _U32(0))
    return (field ^ sign) - sign


def permute_bytes(high: np.ndarray, low: np.ndarray, selector: np.ndarray) -> np.ndarray:
    """V_PERM_B32: each byte of the selector picks a byte of {high, low}, a sign or a constant."""
    result: np.ndarray = _U32(0)
    for byte in range(4):
        choice = (selector >> _U32(8 * byte)) & _U32(0xFF)
        if choice.size == 1 and int(choice.flat[0]) <= 7:
            # Nearly all selectors are constants.
            number = int(choice.flat[0])
            picked = ((low if number < 4 else high) >> _U32(8 * (number % 4))) & _U32(0xFF)
        else:
            picked = _pick_byte(high, low, choice)
        result = result | (picked << _U32(8 * byte))
    return result


def _pick_byte(high: np.ndarray, low: np.ndarray, choice: np.ndarray) -> np.ndarray:
    word = np.where(choice < 4, low, high)
    picked = (word >> ((choice & _U32(3)) * _U32(8))) & _U32(0xFF)
    # 8 to 11 replicate the sign of bytes 1, 3, 5, 7; 12 is 0; from 13 on it is 0xff.
    signed = np.where(choice < 10, low, high) >> np.where(choice % 2 == 0, _U32(15), _U32(31))
    picked = np.where((choice >= 8) & (choice < 12), (signed & _ONE) * _U32(0xFF), picked)
    return np.where(choice >= 12, np.where(choice == 12, _U32(0), _U32(0xFF)), picked)


def reverse_bits(value: np.ndarray) -> np.ndarray:
    """The 32 bits in reverse order."""
    for width, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF), (16, 0xFFFF)):
        value = ((value >> _U32(width)) & _U32(mask)) | ((value & _U32(mask)) << _U32(width))
    return value


def leading_zeros(value: np.ndarray) -> np.ndarray:
    """How many zeros precede the highest set bit of uint32; -1 for 0."""
    _, power = np.frexp(value.astype(np.float64))
    return np.where(value == 0, _U32(0xFFFFFFFF), (32 - power).astype(_U32))


def leading_signs(value: np.ndarray) -> np.ndarray:
    """V_FFBH_I32: how many bits precede the highest one that differs from the sign of int32; -1 if none."""
    bits = value.view(_U32)
    return leading_zeros(np.where(value < 0, ~bits, bits))


def trailing_zeros(value: np.ndarray) -> np.ndarray:
    """The lowest set bit of uint32; -1 for 0."""
    return np.where(value == 0, _U32(0xFFFFFFFF), _U32(31) - leading_zeros(value & (~value + _ONE)))


def count_bits(value: np.ndarray) -> np.ndarray:
    """The set bits of uint32."""
    value = np.ascontiguousarray(value)
    return np.unpackbits(value.view(np.uint8).reshape(*value.shape, 4), axis=-1).sum(axis=-1, dtype=_U32)


def _median(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


def _sad(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return np.maximum(a, b) - np.minimum(a, b) + c


def _dot4(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    total = c
    for byte in range(4):
        left, right = ((x << _U32(24 - 8 * byte)).view(np.int32) >> 24 for x in (a, b))
        total = total + left * right
    return total


def _both(name: str, kinds: tuple[str, str], compute: Callable[..., np.ndarray], sources: int) -> dict[str, Operation]:
    return {f"v_{name}_{kind}": Operation(kind, (kind,) * sources, compute) for kind in kinds}


def _align_bits(high: np.ndarray, low: np.ndarray, amount: np.ndarray) -> np.ndarray:
    joined = (high.astype(np.uint64) << np.uint64(32)) | low
    return (joined >> (amount & _U32(31)).astype(np.uint64)).astype(_U32)


def _align_bytes(high: np.ndarray, low: np.ndarray, amount: np.ndarray) -> np.ndarray:
    return _align_bits(high, low, (amount & _U32(3)) * _U32(8))


def _shift_add(value: np.ndarray, amount: np.ndarray, addend: np.ndarray) -> np.ndarray:
    return (value << (amount & _U32(7)).astype(np.uint64)) + addend


INTEGERS: dict[str, Operation] = {
    "v_mov_b32": Operation("b32", ("b32",), lambda a: a),
    "v_mov_b64": Operation("u64", ("u64",), lambda a: a),
    "v_accvgpr_read_b32": Operation("b32", ("b32",), lambda a: a),
    "v_accvgpr_write_b32": Operation("b32", ("b32",), lambda a: a),
    "v_accvgpr_mov_b32": Operation("b32", ("b32",), lambda a: a),
    "v_not_b32": Operation("u32", ("u32",), lambda a: ~a),
    "v_bfrev_b32": Operation("u32", ("u32",), reverse_bits),
    "v_ffbh_u32": Operation("u32", ("u32",), leading_zeros),
    "v_ffbh_i32": Operation("u32", ("i32",), leading_signs),
    "v_ffbl_b32": Operation("u32", ("u32",), trailing_zeros),
    "v_bcnt_u32_b32": Operation("u32", ("u32", "u32"), lambda a, b: count_bits(a) + b),
    "v_add_u32": Operation("u32", ("u32", "u32"), np.add),
    "v_sub_u32": Operation("u32", ("u32", "u32"), np.subtract),
    "v_subrev_u32": Operation("u32", ("u32", "u32"), lambda a, b: b - a),
    "v_and_b32": Operation("u32", ("u32", "u32"), np.bitwise_and),
    "v_or_b32": Operation("u32", ("u32", "u32"), np.bitwise_or),
    "v_xor_b32": Operation("u32", ("u32", "u32"), np.bitwise_xor),
    "v_xnor_b32": Operation("u32", ("u32", "u32"), lambda a, b: ~(a ^ b)),
    "v_lshlrev_b32": Operation("u32", ("u32", "u32"), _left),
    "v_lshrrev_b32": Operation("u32", ("u32", "u32"), _right),
    "v_ashrrev_i32": Operation("i32", ("u32", "i32"), _right),
    "v_lshlrev_b64": Operation("u64", ("u32", "u64"), _left),
    "v_lshrrev_b64": Operation("u64", ("u32", "u64"), _right),
    "v_ashrrev_i64": Operation("i64", ("u32", "i64"), _right),
    "v_mul_lo_u32": Operation("u32", ("u32", "u32"), np.multiply),
    "v_mul_hi_u32": Operation("u32", ("u32", "u32"), _mul_high(np.uint64)),
    "v_mul_hi_i32": Operation("i32", ("i32", "i32"), _mul_high(np.int64)),
    "v_mul_u32_u24": Operation("u32", ("u24", "u24"), np.multiply),
    "v_mul_hi_u32_u24": Operation("u32", ("u24", "u24"), _mul_high(np.uint64)),
    "v_mul_i32_i24": Operation("i32", ("i24", "i24"), np.multiply),
    "v_mul_hi_i32_i24": Operation("i32", ("i24", "i24"), _mul_high(np.int64)),
    "v_mad_u32_u24": Operation("u32", ("u24", "u24", "u32"), lambda a, b, c: a * b + c),
    "v_mad_i32_i24": Operation("i32", ("i24", "i24", "i32"), lambda a, b, c: a * b + c),
    **_both("min", ("u32", "i32"), np.minimum, 2),
    **_both("max", ("u32", "i32"), np.maximum, 2),
    **_both("min3", ("u32", "i32"), lambda a, b, c: np.minimum(np.minimum(a, b), c), 3),
    **_both("max3", ("u32", "i32"), lambda a, b, c: np.maximum(np.maximum(a, b), c), 3),
    **_both("med3", ("u32", "i32"), _median, 3),
    "v_add3_u32": Operation("u32", ("u32", "u32", "u32"), lambda a, b, c: a + b + c),
    "v_or3_b32": Operation("u32", ("u32", "u32", "u32"), lambda a, b, c: a | b | c),
    "v_and_or_b32": Operation("u32", ("u32", "u32", "u32"), lambda a, b, c: (a & b) | c),
    "v_xad_u32": Operation("u32", ("u32", "u32", "u32"), lambda a, b, c: (a ^ b) + c),
    "v_lshl_add_u32": Operation("u32", ("u32", "u32", "u32"), lambda a, b, c: _left(b, a) + c),
    "v_add_lshl_u32": Operation("u32", ("u32", "u32", "u32"), lambda a, b, c: _left(c, a + b)),
    "v_lshl_or_b32": Operation("u32", ("u32", "u32", "u32"), lambda a, b, c: _left(b, a) | c),
    "v_lshl_add_u64": Operation("u64", ("u64", "u32", "u64"), _shift_add),
    "v_sad_u32": Operation("u32", ("u32", "u32", "u32"), _sad),
    "v_bfe_u32": Operation("u32", ("u32", "u32", "u32"), _field),
    "v_bfe_i32": Operation("u32", ("u32", "u32", "u32"), _signed_field),
    "v_bfi_b32": Operation("u32", ("u32", "u32", "u32"), lambda a, b, c: (a & b) | (~a & c)),
    "v_bfm_b32": Operation("u32", ("u32", "u32"), lambda a, b: ((_ONE << (a & _U32(31))) - _ONE) << (b & _U32(31))),
    "v_perm_b32": Operation("u32", ("u32", "u32", "u32"), permute_bytes),
    "v_alignbit_b32": Operation("u32", ("u32", "u32", "u32"), _align_bits),
    "v_alignbyte_b32": Operation("u32", ("u32", "u32", "u32"), _align_bytes),
    "v_dot4_i32_i8": Operation("i32", ("u32", "u32", "i32"), _dot4),
    "v_add_u16": Operation("u16", ("u16", "u16"), np.add),
    "v_sub_u16": Operation("u16", ("u16", "u16"), np.subtract),
    "v_subrev_u16": Operation("u16", ("u16", "u16"), lambda a, b: b - a),
    "v_mul_lo_u16": Operation("u16", ("u16", "u16"), np.multiply),
    "v_lshlrev_b16": Operation("u16", ("u16", "u16"), _left),
    "v_lshrrev_b16": Operation("u16", ("u16", "u16"), _right),
    "v_ashrrev_i16": Operation("i16", ("u16", "i16"), _right),
    **_both("min", ("u16", "i16"), np.minimum, 2),
    **_both("max", ("u16", "i16"), np.maximum, 2),
    "v_mad_u16": Operation("u16", ("u16", "u16", "u16"), lambda a, b, c: a * b + c, keeps_high=True),
    "v_mad_legacy_u16": Operation("u16", ("u16", "u16", "u16"), lambda a, b, c: a * b + c),
}  # fmt: skip


def _saturating(compute: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    def saturated(*sources: np.ndarray) -> np.ndarray:
        exact = compute(*[source.astype(np.int64) for source in sources])
        limits = np.iinfo(sources[0].dtype)
        return np.clip(exact, limits.min, limits.max).astype(sources[0].dtype)

    return saturated


# With `clamp`: the result saturates instead of wrapping around.
SATURATING = {
    name: Operation(operation.result, operation.sources, _saturating(operation.compute))
    for name, operation in INTEGERS.items()
    if name in ("v_add_u32", "v_sub_u32", "v_subrev_u32", "v_add_u16", "v_sub_u16", "v_subrev_u16")
}

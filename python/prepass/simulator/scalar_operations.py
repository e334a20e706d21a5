# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar instructions whose result, and SCC, are functions of their sources.

Source: "AMD Instinct MI300 Instruction Set Architecture Reference Guide" (CDNA3), sections 12.1 and 12.3 (SOP2, SOP1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from prepass.simulator.integers import count_bits, leading_signs, leading_zeros, reverse_bits, trailing_zeros

_U32 = np.uint32
# SCC from (result, sources); None leaves it alone.
_Condition = Callable[..., np.ndarray]


@dataclass(frozen=True)
class Scalar:
    """A scalar operation.

    Attributes:
      result: u32, i32, u64 or i64; the sources have the types of `sources`.
      compute: From arrays of the sources' types; with `carry`, SCC is one more source.
      condition: SCC from the result and the sources, or "nonzero".
    """

    result: str
    sources: tuple[str, ...]
    compute: Callable[..., np.ndarray]
    condition: _Condition | None = None
    carry: bool = False


def _nonzero(result: np.ndarray, *_: np.ndarray) -> np.ndarray:
    return result != 0


def overflow_add(result: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Whether a signed sum does not fit."""
    return ((a ^ result) & (b ^ result)) < 0


def _overflow_subtract(result: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return ((a ^ b) & (a ^ result)) < 0


def _by(amount: np.ndarray, value: np.ndarray) -> np.ndarray:
    return (amount & amount.dtype.type(value.dtype.itemsize * 8 - 1)).astype(value.dtype)


def _field(value: np.ndarray, packed: np.ndarray) -> np.ndarray:
    """S_BFE: bits 4:0 (5:0 for 64 bits) of `packed` are the offset, bits 22:16 the width."""
    kind, bits = value.dtype.type, value.dtype.itemsize * 8
    offset = (packed & _U32(bits - 1)).astype(value.dtype)
    width = ((packed >> _U32(16)) & _U32(127)).astype(np.int64)
    width = np.minimum(width, bits - offset.astype(np.int64))
    if value.dtype.kind == "i":
        left = (bits - offset.astype(np.int64) - width).astype(value.dtype)
        right = np.minimum(bits - width, bits - 1).astype(value.dtype)
        return np.where(width > 0, (value << left) >> right, kind(0))
    mask = np.where(width >= bits, ~kind(0), (kind(1) << np.minimum(width, bits - 1).astype(value.dtype)) - kind(1))
    return (value >> offset) & mask


def _pairs(name: str, compute: Callable[..., np.ndarray]) -> dict[str, Scalar]:
    """A bitwise operation on 32 and 64 bits."""
    return {f"s_{name}_b{bits}": Scalar(f"u{bits}", (f"u{bits}", f"u{bits}"), compute, _nonzero) for bits in (32, 64)}


def _pack(a_high: bool, b_high: bool) -> Callable[..., np.ndarray]:
    def compute(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        low = a >> _U32(16) if a_high else a & _U32(0xFFFF)
        high = b >> _U32(16) if b_high else b & _U32(0xFFFF)
        return low | (high << _U32(16))

    return compute


def _mul_high(kind: type) -> Callable[..., np.ndarray]:
    return lambda a, b: ((a.astype(kind) * b.astype(kind)) >> kind(32)).astype(a.dtype)


def _high_word(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """Counting from the top of 64 bits."""

    def compute(value: np.ndarray) -> np.ndarray:
        high, low = (value >> np.uint64(32)).astype(_U32), value.astype(_U32)
        return np.where(high != 0, function(high), np.where(low != 0, function(low) + _U32(32), _U32(0xFFFFFFFF)))

    return compute


def _low_word(value: np.ndarray) -> np.ndarray:
    high, low = (value >> np.uint64(32)).astype(_U32), value.astype(_U32)
    found = np.where(high != 0, trailing_zeros(high) + _U32(32), _U32(0xFFFFFFFF))
    return np.where(low != 0, trailing_zeros(low), found)


def _count64(value: np.ndarray) -> np.ndarray:
    return count_bits(value.astype(_U32)) + count_bits((value >> np.uint64(32)).astype(_U32))


def _shift_add(bits: int) -> Scalar:
    return Scalar(
        "u32",
        ("u32", "u32"),
        lambda a, b: (a << _U32(bits)) + b,
        lambda r, a, b: (a.astype(np.uint64) << np.uint64(bits)) + b >= 1 << 32,
    )


_MINMAX = {"min": (np.minimum, np.less_equal), "max": (np.maximum, np.greater_equal)}

OPERATIONS: dict[str, Scalar] = {
    "s_mov_b32": Scalar("u32", ("u32",), lambda a: a),
    "s_mov_b64": Scalar("u64", ("u64",), lambda a: a),
    "s_not_b32": Scalar("u32", ("u32",), lambda a: ~a, _nonzero),
    "s_not_b64": Scalar("u64", ("u64",), lambda a: ~a, _nonzero),
    "s_brev_b32": Scalar("u32", ("u32",), reverse_bits),
    "s_bcnt1_i32_b32": Scalar("u32", ("u32",), count_bits, _nonzero),
    "s_bcnt1_i32_b64": Scalar("u32", ("u64",), _count64, _nonzero),
    "s_ff1_i32_b32": Scalar("u32", ("u32",), trailing_zeros),
    "s_ff1_i32_b64": Scalar("u32", ("u64",), _low_word),
    "s_flbit_i32_b32": Scalar("u32", ("u32",), leading_zeros),
    "s_flbit_i32": Scalar("u32", ("i32",), leading_signs),
    "s_flbit_i32_b64": Scalar("u32", ("u64",), _high_word(leading_zeros)),
    "s_sext_i32_i8": Scalar("i32", ("i32",), lambda a: (a << np.int32(24)) >> np.int32(24)),
    "s_sext_i32_i16": Scalar("i32", ("i32",), lambda a: (a << np.int32(16)) >> np.int32(16)),
    "s_abs_i32": Scalar("i32", ("i32",), np.abs, _nonzero),
    "s_add_u32": Scalar("u32", ("u32", "u32"), np.add, lambda r, a, b: r < a),
    "s_sub_u32": Scalar("u32", ("u32", "u32"), np.subtract, lambda r, a, b: b > a),
    "s_add_i32": Scalar("i32", ("i32", "i32"), np.add, overflow_add),
    "s_sub_i32": Scalar("i32", ("i32", "i32"), np.subtract, _overflow_subtract),
    "s_addc_u32": Scalar(
        "u32",
        ("u32", "u32"),
        lambda a, b, c: a + b + c,
        lambda r, a, b, c: a.astype(np.uint64) + b + c >= 1 << 32,
        carry=True,
    ),
    "s_subb_u32": Scalar(
        "u32",
        ("u32", "u32"),
        lambda a, b, c: a - b - c,
        lambda r, a, b, c: b.astype(np.uint64) + c > a,
        carry=True,
    ),
    "s_mul_i32": Scalar("u32", ("u32", "u32"), np.multiply),
    "s_mul_hi_u32": Scalar("u32", ("u32", "u32"), _mul_high(np.uint64)),
    "s_mul_hi_i32": Scalar("i32", ("i32", "i32"), _mul_high(np.int64)),
    "s_absdiff_i32": Scalar("i32", ("i32", "i32"), lambda a, b: np.abs(a - b), _nonzero),
    **{
        f"s_{name}_{kind}": Scalar(kind, (kind, kind), compute, lambda r, a, b, chosen=chosen: chosen(a, b))
        for name, (compute, chosen) in _MINMAX.items()
        for kind in ("u32", "i32")
    },
    **_pairs("and", np.bitwise_and),
    **_pairs("or", np.bitwise_or),
    **_pairs("xor", np.bitwise_xor),
    **_pairs("andn2", lambda a, b: a & ~b),
    **_pairs("orn2", lambda a, b: a | ~b),
    **_pairs("nand", lambda a, b: ~(a & b)),
    **_pairs("nor", lambda a, b: ~(a | b)),
    **_pairs("xnor", lambda a, b: ~(a ^ b)),
    **{
        f"s_lshl_b{bits}": Scalar(f"u{bits}", (f"u{bits}", "u32"), lambda a, b: a << _by(b, a), _nonzero)
        for bits in (32, 64)
    },
    **{
        f"s_lshr_b{bits}": Scalar(f"u{bits}", (f"u{bits}", "u32"), lambda a, b: a >> _by(b, a), _nonzero)
        for bits in (32, 64)
    },
    **{
        f"s_ashr_i{bits}": Scalar(f"i{bits}", (f"i{bits}", "u32"), lambda a, b: a >> _by(b, a), _nonzero)
        for bits in (32, 64)
    },
    **{f"s_bfe_{kind}": Scalar(kind, (kind, "u32"), _field, _nonzero) for kind in ("u32", "i32", "u64", "i64")},
    "s_bfm_b32": Scalar("u32", ("u32", "u32"), lambda a, b: ((_U32(1) << (a & _U32(31))) - _U32(1)) << (b & _U32(31))),
    **{f"s_lshl{bits}_add_u32": _shift_add(bits) for bits in (1, 2, 3, 4)},
    "s_pack_ll_b32_b16": Scalar("u32", ("u32", "u32"), _pack(False, False)),
    "s_pack_lh_b32_b16": Scalar("u32", ("u32", "u32"), _pack(False, True)),
    "s_pack_hh_b32_b16": Scalar("u32", ("u32", "u32"), _pack(True, True)),
}

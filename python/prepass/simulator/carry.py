# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vector instructions that read or write a mask of lanes: carries, selections, the steps of a division.

Source: "AMD Instinct MI300 Instruction Set Architecture Reference Guide" (CDNA3), sections 12.8 and 12.10.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prepass.amdgpu.assembly import Instruction
from prepass.simulator import floats
from prepass.simulator.errors import Fault
from prepass.simulator.modifiers import Dpp, Step
from prepass.simulator.operands import (
    Getter,
    Limits,
    Register,
    expect_register,
    parse_source,
    write_lanes,
    write_vector,
)
from prepass.simulator.vector import check_modifiers, read_sources, to_bits
from prepass.simulator.waves import VCC, Waves, lanes_of

_VCC = Register("s", VCC, 2)


def read_lanes(place: Register) -> Getter:
    """A pair of scalar registers as bool[count, 64]."""
    if place.kind != "s" or place.count != 2:
        raise Fault("expected a pair of scalar registers")
    index = place.index
    return lambda waves: lanes_of(waves.scalar[index], waves.scalar[index + 1])


def _add(a: np.ndarray, b: np.ndarray, carry: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
    total = a.astype(np.uint64) + b + carry
    return total.astype(np.uint32), total >> np.uint64(32) != 0


def _subtract(a: np.ndarray, b: np.ndarray, borrow: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
    total = a.astype(np.int64) - b.astype(np.int64) - borrow
    return total.astype(np.uint32), total < 0


def _subtract_reversed(a: np.ndarray, b: np.ndarray, borrow: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
    return _subtract(b, a, borrow)


_CARRY = {"add": _add, "sub": _subtract, "subrev": _subtract_reversed}
_CARRY_IN = {"addc": _add, "subb": _subtract, "subbrev": _subtract_reversed}


def _carry(compute: Callable[..., tuple[np.ndarray, np.ndarray]], takes: bool) -> Callable[[Instruction, Limits], Step]:
    def translate(instruction: Instruction, limits: Limits) -> Step:
        operands = _operands(instruction, 5 if takes else 4)
        dpp = Dpp(instruction.modifiers) if "dpp" in instruction.encoding else None
        if dpp:
            raise Fault("carries with DPP are not supported")
        write = write_vector(expect_register(operands[0], limits, "v", 1))
        write_carry = write_lanes(expect_register(operands[1], limits, "s", 2))
        sources = [parse_source(text, limits) for text in operands[2:4]]
        a, b = read_sources(instruction, ("u32", "u32"), sources)
        check_modifiers(instruction, set(), 2)
        carry_in = read_lanes(expect_register(operands[4], limits, "s", 2)) if takes else None

        def step(waves: Waves) -> None:
            value, carry = compute(a(waves), b(waves), carry_in(waves) if carry_in else 0)
            write(waves, value)
            write_carry(waves, carry)

        return step

    return translate


def _select(instruction: Instruction, limits: Limits) -> Step:
    """V_CNDMASK_B32: the second source where the bit of the lane is set."""
    operands = _operands(instruction, 4)
    write = write_vector(expect_register(operands[0], limits, "v", 1))
    dpp = Dpp(instruction.modifiers) if "dpp" in instruction.encoding else None
    sources = [parse_source(text, limits) for text in operands[1:3]]
    a, b = read_sources(instruction, ("b32", "b32"), sources, dpp)
    condition = read_lanes(expect_register(operands[3], limits, "s", 2))
    check_modifiers(instruction, set(), 2)
    if instruction.modifiers.get("dst_sel", "DWORD") != "DWORD":
        raise Fault("v_cndmask_b32 that writes a part of a register is not supported")

    def step(waves: Waves) -> None:
        write(waves, np.where(condition(waves), b(waves), a(waves)))

    return dpp.wrap(step) if dpp else step


def _multiply_add(kind: str) -> Callable[[Instruction, Limits], Step]:
    """V_MAD_U64_U32 and V_MAD_I64_I32."""
    narrow, wide = ("u32", "u64") if kind == "u" else ("i32", "i64")
    wide_type = np.uint64 if kind == "u" else np.int64

    def translate(instruction: Instruction, limits: Limits) -> Step:
        operands = _operands(instruction, 5)
        write = write_vector(expect_register(operands[0], limits, "v", 2))
        write_carry = write_lanes(expect_register(operands[1], limits, "s", 2))
        sources = [parse_source(text, limits) for text in operands[2:]]
        a, b, c = read_sources(instruction, (narrow, narrow, wide), sources)
        check_modifiers(instruction, set(), 3)

        def step(waves: Waves) -> None:
            product = a(waves).astype(wide_type) * b(waves).astype(wide_type)
            addend = c(waves)
            total = product + addend
            overflow = total < product if kind == "u" else ((product ^ total) & (addend ^ total)) < 0
            write(waves, to_bits(total))
            write_carry(waves, overflow)

        return step

    return translate


def _division_scale(instruction: Instruction, limits: Limits) -> Step:
    """V_DIV_SCALE_F32: scale the numerator or the denominator so that no step of the division loses bits."""
    operands = _operands(instruction, 5)
    write = write_vector(expect_register(operands[0], limits, "v", 1))
    write_scaled = write_lanes(expect_register(operands[1], limits, "s", 2))
    getters = read_sources(instruction, ("f32", "f32", "f32"), [parse_source(text, limits) for text in operands[2:]])
    check_modifiers(instruction, set(), 3)

    def step(waves: Waves) -> None:
        value, denominator, numerator = np.broadcast_arrays(*[get(waves) for get in getters])
        result, scaled = scale_for_division(value, denominator, numerator)
        write(waves, to_bits(result))
        write_scaled(waves, scaled)

    return step


def scale_for_division(
    value: np.ndarray, denominator: np.ndarray, numerator: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The value, which is the numerator or the denominator, scaled, and whether the quotient needs scaling back."""
    up, down = np.float32(2.0**64), np.float32(2.0**-64)
    is_denominator, is_numerator = value == denominator, value == numerator
    smallest = 2.0**-126
    gap = floats.exponent(numerator) - floats.exponent(denominator)
    exact_quotient = np.abs(numerator.astype(np.float64) / denominator.astype(np.float64))
    tiny_denominator = (np.abs(denominator) < smallest) & (denominator != 0)
    tiny_reciprocal = np.abs(1.0 / denominator.astype(np.float64)) < smallest
    tiny_quotient = (exact_quotient < smallest) & (exact_quotient != 0)
    cases = [
        ((numerator == 0) | (denominator == 0), np.full_like(value, np.nan), False),
        (gap >= 96, np.where(is_denominator, value * up, value), True),
        (tiny_denominator, value * up, False),
        # The pseudo-code scales up here, which would overflow.
        (tiny_reciprocal & tiny_quotient, np.where(is_denominator, value * down, value), True),
        (tiny_reciprocal, value * down, False),
        (tiny_quotient, np.where(is_numerator, value * up, value), True),
        (floats.exponent(numerator) <= 23, value * up, False),
    ]
    conditions = [condition for condition, _, _ in cases]
    result = np.select(conditions, [scaled for _, scaled, _ in cases], value).astype(np.float32)
    flag = np.select(conditions, [np.full(value.shape, flag) for _, _, flag in cases], np.False_)
    return result, flag.astype(bool)


def _division_fma(instruction: Instruction, limits: Limits) -> Step:
    """V_DIV_FMAS_F32: the last step of the division, scaled back where VCC says so."""
    operands = _operands(instruction, 4)
    write = write_vector(expect_register(operands[0], limits, "v", 1))
    getters = read_sources(instruction, ("f32", "f32", "f32"), [parse_source(text, limits) for text in operands[1:]])
    check_modifiers(instruction, set(), 3)
    condition = read_lanes(_VCC)

    def step(waves: Waves) -> None:
        a, b, c = (get(waves) for get in getters)
        result = floats.fma(a, b, c)
        scaled = condition(waves)
        if scaled.any():
            factor = np.where(floats.exponent(c) > 127, 2.0**64, 2.0**-64)
            # Rounded once: float64 holds the product, and nothing between it and the result is lost.
            product = (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)) * factor
            result = np.where(scaled, product.astype(np.float32), result)
        write(waves, to_bits(result))

    return step


def _operands(instruction: Instruction, count: int) -> tuple[str, ...]:
    if len(instruction.operands) != count:
        raise Fault(f"expected {count} operands, not {len(instruction.operands)}")
    return instruction.operands


def _swap(instruction: Instruction, limits: Limits) -> Step:
    first, second = (expect_register(text, limits, "v", 1) for text in _operands(instruction, 2))
    check_modifiers(instruction, set(), 2)

    def step(waves: Waves) -> None:
        a, b = waves.vector[first.index].copy(), waves.vector[second.index].copy()
        waves.write(first.index, b)
        waves.write(second.index, a)

    return step


CARRY: dict[str, Callable[[Instruction, Limits], Step]] = {
    **{f"v_{name}_co_u32": _carry(compute, False) for name, compute in _CARRY.items()},
    **{f"v_{name}_co_u32": _carry(compute, True) for name, compute in _CARRY_IN.items()},
    "v_cndmask_b32": _select,
    "v_mad_u64_u32": _multiply_add("u"),
    "v_mad_i64_i32": _multiply_add("i"),
    "v_div_scale_f32": _division_scale,
    "v_div_fmas_f32": _division_fma,
    "v_swap_b32": _swap,
}

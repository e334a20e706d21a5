# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar instructions: one value for a wave.

Source: "AMD Instinct MI300 Instruction Set Architecture Reference Guide" (CDNA3), sections 12.1 to 12.5 (SOP2,
SOPK, SOP1, SOPC, SOPP).
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from prepass.amdgpu.assembly import Instruction
from prepass.simulator.errors import Fault
from prepass.simulator.modifiers import Step
from prepass.simulator.operands import (
    PROGRAM_COUNTER,
    Constant,
    Getter,
    Limits,
    Register,
    expect_register,
    parse_source,
    scalar_pair,
    scalar_word,
    write_scalar,
)
from prepass.simulator.scalar_operations import Scalar, overflow_add
from prepass.simulator.waves import EXEC, Waves

_U32 = np.uint32
_RELATIONS = {
    "eq": np.equal,
    "lg": np.not_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
}
_SAVEEXEC: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    # The first is the source, the second EXEC.
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "andn2": lambda a, b: a & ~b,
    "orn2": lambda a, b: a | ~b,
    "andn1": lambda a, b: ~a & b,
    "orn1": lambda a, b: ~a | b,
    "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b),
    "xnor": lambda a, b: ~(a ^ b),
}
_TYPES = {"u32": np.uint32, "i32": np.int32, "u64": np.uint64, "i64": np.int64}


def read_scalar(text: str, kind: str, limits: Limits) -> Getter:
    """A source as an array of its type, [count] or [1]."""
    source = parse_source(text, limits)
    if source.negate or source.absolute or source.sign_extend:
        raise Fault(f"operand '{text}': scalar instructions take no sign modifiers")
    raw = scalar_pair(source.place) if kind in ("u64", "i64") else scalar_word(source.place)
    if not isinstance(source.place, Constant) and source.place.count != (2 if kind in ("u64", "i64") else 1):
        raise Fault(f"operand '{text}' is not of type {kind}")
    view = _TYPES[kind]
    return raw if kind[0] == "u" else lambda waves: raw(waves).view(view)


def translate_scalar(instruction: Instruction, operation: Scalar, limits: Limits) -> Step:
    """A scalar operation as a function of the waves. Raises Fault for what it does not know."""
    operands = _operands(instruction, len(operation.sources) + 1)
    place = expect_register(operands[0], limits, "s", 2 if operation.result.endswith("64") else 1)
    write, condition, compute = write_scalar(place), operation.condition, operation.compute
    getters = [read_scalar(text, kind, limits) for text, kind in zip(operands[1:], operation.sources, strict=True)]
    bits = np.uint64 if operation.result.endswith("64") else np.uint32
    if operation.carry:
        getters.append(lambda waves: waves.scc.astype(np.uint32))

    def step(waves: Waves) -> None:
        sources = [get(waves) for get in getters]
        result = compute(*sources)
        if condition is not None:
            waves.scc = np.array(np.broadcast_to(condition(result, *sources), waves.count))
        write(waves, result.view(bits))

    return step


def _operands(instruction: Instruction, count: int) -> tuple[str, ...]:
    if len(instruction.operands) != count:
        raise Fault(f"expected {count} operands, not {len(instruction.operands)}")
    for name in instruction.modifiers:
        raise Fault(f"unknown modifier '{name}'")
    return instruction.operands


def short_constant(text: str, signed: bool = True) -> np.ndarray:
    """The 16-bit constant of SOPK instructions, extended to 32 bits: uint32[1]."""
    if not re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)", text):
        raise Fault(f"'{text}' is no 16-bit constant")
    value = int(text, 0)
    if not -(1 << 15) <= value < 1 << 16:
        raise Fault(f"'{text}' has more than 16 bits")
    value &= 0xFFFF
    return np.array([value - (1 << 16) if signed and value & 0x8000 else value], np.int64).astype(np.uint32)


def _short(name: str) -> Callable[[Instruction, Limits], Step]:
    """S_MOVK, S_ADDK, S_MULK."""

    def translate(instruction: Instruction, limits: Limits) -> Step:
        operands = _operands(instruction, 2)
        place = expect_register(operands[0], limits, "s", 1)
        constant, write, index = short_constant(operands[1]), write_scalar(place), place.index
        signed = constant.view(np.int32)

        def step(waves: Waves) -> None:
            if name == "movk":
                write(waves, constant)
                return
            old = waves.scalar[index].view(np.int32)
            result = old + signed if name == "addk" else old * signed
            if name == "addk":
                waves.scc = overflow_add(result, old, signed)
            write(waves, result.view(np.uint32))

        return step

    return translate


def _compare(relation: Callable[..., np.ndarray], kind: str, short: bool) -> Callable[[Instruction, Limits], Step]:
    def translate(instruction: Instruction, limits: Limits) -> Step:
        operands = _operands(instruction, 2)
        a = read_scalar(operands[0], kind, limits)
        if short:
            constant = short_constant(operands[1], kind == "i32").view(_TYPES[kind])
            b: Getter = lambda waves: constant  # noqa: E731
        else:
            b = read_scalar(operands[1], kind, limits)

        def step(waves: Waves) -> None:
            waves.scc = np.array(np.broadcast_to(relation(a(waves), b(waves)), waves.count))

        return step

    return translate


def _save_exec(compute: Callable[..., np.ndarray]) -> Callable[[Instruction, Limits], Step]:
    exec_pair = Register("s", EXEC, 2)

    def translate(instruction: Instruction, limits: Limits) -> Step:
        operands = _operands(instruction, 2)
        write = write_scalar(expect_register(operands[0], limits, "s", 2))
        get, old, write_exec = read_scalar(operands[1], "u64", limits), scalar_pair(exec_pair), write_scalar(exec_pair)

        def step(waves: Waves) -> None:
            source, before = get(waves), old(waves)
            result = compute(source, before)
            write(waves, before)
            write_exec(waves, result)
            waves.scc = np.array(np.broadcast_to(result != 0, waves.count))

        return step

    return translate


def _select(kind: str) -> Callable[[Instruction, Limits], Step]:
    def translate(instruction: Instruction, limits: Limits) -> Step:
        operands = _operands(instruction, 3)
        write = write_scalar(expect_register(operands[0], limits, "s", 2 if kind == "u64" else 1))
        a, b = (read_scalar(text, kind, limits) for text in operands[1:])
        return lambda waves: write(waves, np.where(waves.scc, a(waves), b(waves)))

    return translate


def _conditional_move(kind: str) -> Callable[[Instruction, Limits], Step]:
    def translate(instruction: Instruction, limits: Limits) -> Step:
        operands = _operands(instruction, 2)
        write = write_scalar(expect_register(operands[0], limits, "s", 2 if kind == "u64" else 1))
        a, old = read_scalar(operands[1], kind, limits), read_scalar(operands[0], kind, limits)
        return lambda waves: write(waves, np.where(waves.scc, a(waves), old(waves)))

    return translate


def _set_bit(value: int) -> Callable[[Instruction, Limits], Step]:
    def translate(instruction: Instruction, limits: Limits) -> Step:
        operands = _operands(instruction, 2)
        place = expect_register(operands[0], limits, "s", 1)
        write, get = write_scalar(place), read_scalar(operands[1], "u32", limits)

        def step(waves: Waves) -> None:
            bit = _U32(1) << (get(waves) & _U32(31))
            old = waves.scalar[place.index]
            write(waves, old | bit if value else old & ~bit)

        return step

    return translate


def _test_bit(value: int) -> Callable[[Instruction, Limits], Step]:
    def translate(instruction: Instruction, limits: Limits) -> Step:
        a, b = (read_scalar(text, "u32", limits) for text in _operands(instruction, 2))

        def step(waves: Waves) -> None:
            bit = (a(waves) >> (b(waves) & _U32(31))) & _U32(1)
            waves.scc = np.array(np.broadcast_to(bit == value, waves.count))

        return step

    return translate


def _nothing(instruction: Instruction, limits: Limits) -> Step:
    """Timing, caches and priorities have no influence on values here."""
    return lambda waves: None


def _set_mode(instruction: Instruction, limits: Limits) -> Step:
    """S_SETREG on MODE: bits 4 to 7 say whether denormals are allowed, bits 0 to 3 how results are rounded."""
    operands = _operands(instruction, 2)
    match = re.fullmatch(r"hwreg\(HW_REG_MODE\s*,\s*(\d+)\s*,\s*(\d+)\)", operands[0])
    if not match:
        raise Fault(f"'{operands[0]}' is not supported")
    offset, width, value = int(match[1]), int(match[2]), int(operands[1], 0)
    if offset + width > 8:
        raise Fault("only the rounding and denormal bits of MODE, 0 to 7, can be set")
    mask = ((1 << width) - 1) << offset
    bits = (value << offset) & mask
    if bits & 15:
        raise Fault("only rounding to the nearest even number is supported")
    mask, bits = mask >> 4, bits >> 4
    return lambda waves: waves.set_denormals((waves.denormals & ~mask) | bits)


def _program_counter(instruction: Instruction, limits: Limits) -> Step:
    """S_GETPC_B64: what the addresses of constants are relative to."""
    (operand,) = _operands(instruction, 1)
    write = write_scalar(expect_register(operand, limits, "s", 2))
    counter = np.array([PROGRAM_COUNTER], np.uint64)
    return lambda waves: write(waves, counter)


SCALAR: dict[str, Callable[[Instruction, Limits], Step]] = {
    **{f"s_{name}_i32": _short(name) for name in ("movk", "addk", "mulk")},
    **{
        f"s_cmp_{name}_{kind}": _compare(relation, kind, False)
        for name, relation in _RELATIONS.items()
        for kind in ("u32", "i32", *(("u64",) if name in ("eq", "lg") else ()))
    },
    **{
        f"s_cmpk_{name}_{kind}": _compare(relation, kind, True)
        for name, relation in _RELATIONS.items()
        for kind in ("u32", "i32")
    },
    **{f"s_{name}_saveexec_b64": _save_exec(compute) for name, compute in _SAVEEXEC.items()},
    "s_cselect_b32": _select("u32"),
    "s_cselect_b64": _select("u64"),
    "s_cmov_b32": _conditional_move("u32"),
    "s_cmov_b64": _conditional_move("u64"),
    "s_bitset0_b32": _set_bit(0),
    "s_bitset1_b32": _set_bit(1),
    "s_bitcmp0_b32": _test_bit(0),
    "s_bitcmp1_b32": _test_bit(1),
    "s_getpc_b64": _program_counter,
    "s_setreg_imm32_b32": _set_mode,
    "s_nop": _nothing,
    "s_setprio": _nothing,
    "s_sleep": _nothing,
    "s_waitcnt": _nothing,
    "s_icache_inv": _nothing,
    "s_dcache_inv": _nothing,
    "s_dcache_wb": _nothing,
}

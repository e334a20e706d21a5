# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions that move data between lanes, or between lanes and scalar registers.

Source: "AMD Instinct MI300 Instruction Set Architecture Reference Guide" (CDNA3), sections 12.7, 12.10 and 12.13.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from prepass.amdgpu.assembly import Instruction
from prepass.simulator.errors import Fault
from prepass.simulator.modifiers import Step
from prepass.simulator.operands import (
    Getter,
    Limits,
    expect_register,
    parse_source,
    scalar_word,
    vector_word,
    write_scalar,
    write_vector,
)
from prepass.simulator.waves import LANES, Waves

_LANE = np.arange(LANES)


def _plain(instruction: Instruction, operands: int, modifiers: tuple[str, ...] = ()) -> tuple[str, ...]:
    if len(instruction.operands) != operands:
        raise Fault(f"expected {operands} operands, not {len(instruction.operands)}")
    for name in instruction.modifiers:
        if name not in modifiers:
            raise Fault(f"unknown modifier '{name}'")
    return instruction.operands


def _word(text: str, limits: Limits) -> Getter:
    source = parse_source(text, limits)
    if source.negate or source.absolute:
        raise Fault(f"operand '{text}' takes no sign modifiers")
    return vector_word(source.place)


def _lane_number(text: str, limits: Limits) -> Getter:
    get = scalar_word(parse_source(text, limits).place)
    return lambda waves: np.broadcast_to(get(waves) & np.uint32(LANES - 1), waves.count)


def _read_first_lane(instruction: Instruction, limits: Limits) -> Step:
    operands = _plain(instruction, 2)
    write, get = write_scalar(expect_register(operands[0], limits, "s", 1)), _word(operands[1], limits)

    def step(waves: Waves) -> None:
        # Lane 0 when no lane is active.
        first = np.argmax(waves.mask, axis=1)
        write(waves, np.broadcast_to(get(waves), waves.mask.shape)[np.arange(waves.count), first])

    return step


def _read_lane(instruction: Instruction, limits: Limits) -> Step:
    operands = _plain(instruction, 3)
    write, get = write_scalar(expect_register(operands[0], limits, "s", 1)), _word(operands[1], limits)
    lane = _lane_number(operands[2], limits)
    return lambda waves: write(waves, get(waves)[np.arange(waves.count), lane(waves)])


def _write_lane(instruction: Instruction, limits: Limits) -> Step:
    operands = _plain(instruction, 3)
    place = expect_register(operands[0], limits, "v", 1)
    source = parse_source(operands[1], limits).place
    get = scalar_word(source)
    lane = _lane_number(operands[2], limits)

    def step(waves: Waves) -> None:
        # EXEC does not matter.
        waves.vector[place.index][np.arange(waves.count), lane(waves)] = get(waves)

    return step


def _count_mask_bits(high: bool) -> Callable[[Instruction, Limits], Step]:
    """V_MBCNT: how many bits of the mask belong to lanes before this one."""
    before = np.minimum(np.maximum(_LANE - (32 if high else 0), 0), 32)
    masks = np.array([(1 << int(count)) - 1 for count in before], np.uint64).astype(np.uint32)

    def translate(instruction: Instruction, limits: Limits) -> Step:
        operands = _plain(instruction, 3)
        write = write_vector(expect_register(operands[0], limits, "v", 1))
        mask, addend = _word(operands[1], limits), _word(operands[2], limits)

        def step(waves: Waves) -> None:
            bits = np.ascontiguousarray(mask(waves) & masks)
            count = np.unpackbits(bits.view(np.uint8).reshape(*bits.shape, 4), axis=-1).sum(axis=-1, dtype=np.uint32)
            write(waves, count + addend(waves))

        return step

    return translate


def swizzle_lanes(text: str) -> np.ndarray:
    """Which lane each lane reads, for the `offset` of DS_SWIZZLE_B32: a number or a macro of the assembler."""
    macro = re.fullmatch(r"swizzle\((\w+)\s*,\s*(.*)\)", text)
    if macro:
        return _swizzle_macro(macro[1], [part.strip().strip('"') for part in macro[2].split(",")])
    if not re.fullmatch(r"\d+|0x[0-9a-fA-F]+", text):
        raise Fault(f"unknown swizzle '{text}'")
    offset = int(text, 0)
    if offset & 0x8000:
        if offset >> 8 != 0x80:
            raise Fault(f"swizzle {offset:#x} is not supported")
        return _LANE // 4 * 4 + (offset >> (2 * (_LANE % 4)) & 3)
    and_mask, or_mask, xor_mask = offset & 31, offset >> 5 & 31, offset >> 10 & 31
    return _LANE // 32 * 32 + (((_LANE % 32 & and_mask) | or_mask) ^ xor_mask)


def _swizzle_macro(name: str, arguments: list[str]) -> np.ndarray:
    if name == "QUAD_PERM" and len(arguments) == 4:
        return _LANE // 4 * 4 + np.array([int(argument) for argument in arguments])[_LANE % 4]
    if name == "BITMASK_PERM" and re.fullmatch(r"[01pi]{5}", arguments[0]):
        lanes = np.zeros(LANES, int)
        for position, action in enumerate(arguments[0]):
            bit = 4 - position
            own = _LANE >> bit & 1
            lanes |= {"0": 0 * own, "1": 0 * own + 1, "p": own, "i": 1 - own}[action] << bit
        return _LANE // 32 * 32 + lanes
    if name == "SWAP" and arguments[0] in ("1", "2", "4", "8", "16"):
        return _LANE ^ int(arguments[0])
    if name == "REVERSE" and arguments[0] in ("2", "4", "8", "16", "32"):
        return _LANE ^ (int(arguments[0]) - 1)
    if name == "BROADCAST" and len(arguments) == 2 and arguments[0] in ("2", "4", "8", "16", "32"):
        size = int(arguments[0])
        return _LANE // size * size + int(arguments[1])
    raise Fault(f"unknown swizzle '{name}'")


def _swizzle(instruction: Instruction, limits: Limits) -> Step:
    operands = _plain(instruction, 2, ("offset",))
    place = expect_register(operands[0], limits, "v", 1)
    source = expect_register(operands[1], limits, "v", 1)
    lanes = swizzle_lanes(instruction.modifiers.get("offset", "0"))

    def step(waves: Waves) -> None:
        value = waves.vector[source.index][:, lanes]
        # A lane that EXEC disables gives 0.
        waves.write(place.index, value if waves.full else np.where(waves.mask[:, lanes], value, np.uint32(0)))

    return step


def _backward_permute(instruction: Instruction, limits: Limits) -> Step:
    """DS_BPERMUTE_B32: each lane reads from the lane whose number times 4 it has."""
    operands = _plain(instruction, 3, ("offset",))
    place, address, data = (expect_register(text, limits, "v", 1) for text in operands)
    offset = np.uint32(int(instruction.modifiers.get("offset", "0"), 0))

    def step(waves: Waves) -> None:
        lanes = ((waves.vector[address.index] + offset) >> np.uint32(2)) & np.uint32(LANES - 1)
        value = np.take_along_axis(waves.vector[data.index], lanes.astype(np.intp), axis=1)
        if not waves.full:
            active = np.take_along_axis(waves.mask, lanes.astype(np.intp), axis=1)
            value = np.where(active, value, np.uint32(0))
        waves.write(place.index, value)

    return step


def _forward_permute(instruction: Instruction, limits: Limits) -> Step:
    """DS_PERMUTE_B32: each lane writes to the lane whose number times 4 it has; the highest lane wins."""
    operands = _plain(instruction, 3, ("offset",))
    place, address, data = (expect_register(text, limits, "v", 1) for text in operands)
    offset = np.uint32(int(instruction.modifiers.get("offset", "0"), 0))

    def step(waves: Waves) -> None:
        lanes = ((waves.vector[address.index] + offset) >> np.uint32(2)) & np.uint32(LANES - 1)
        value = np.zeros_like(waves.vector[data.index])
        for lane in range(LANES):
            active = waves.mask[:, lane]
            value[np.flatnonzero(active), lanes[active, lane]] = waves.vector[data.index][active, lane]
        waves.write(place.index, value)

    return step


CROSS_LANE: dict[str, Callable[[Instruction, Limits], Step]] = {
    "v_readfirstlane_b32": _read_first_lane,
    "v_readlane_b32": _read_lane,
    "v_writelane_b32": _write_lane,
    "v_mbcnt_lo_u32_b32": _count_mask_bits(False),
    "v_mbcnt_hi_u32_b32": _count_mask_bits(True),
    "ds_swizzle_b32": _swizzle,
    "ds_bpermute_b32": _backward_permute,
    "ds_permute_b32": _forward_permute,
}

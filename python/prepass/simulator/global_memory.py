# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads and stores of global memory: buffer, global and scalar instructions.

A buffer instruction has a descriptor of four registers: the base address (48 bits), the number of bytes, and
flags. Here a descriptor is raw: the stride counts only with swizzling, which is an error. What lies beyond the
number of bytes reads as zero, each word by itself, and is not written. The driver sets memory up so that vector
accesses need no alignment; scalar loads do. Sources: "AMD Instinct MI300 Instruction Set Architecture Reference
Guide" (CDNA3), sections 8.1 (scalar), 9.1 (buffer) and 10 (global); for the wrap-around of offsets and the check of
each word by itself https://github.com/ROCm/rocm-systems/pull/10928
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from prepass.amdgpu.assembly import Instruction
from prepass.simulator.errors import Fault
from prepass.simulator.modifiers import Step
from prepass.simulator.operands import (
    Limits,
    Register,
    expect_register,
    join,
    parse_source,
    scalar_pair,
    scalar_word,
)
from prepass.simulator.waves import Waves

_CACHE = {"glc", "slc", "sc0", "sc1", "nt"}
# name: bytes, words, sign extended, d16 half (None: the whole register)
_LOADS = {
    "ubyte": (1, 1, False, None),
    "sbyte": (1, 1, True, None),
    "ushort": (2, 1, False, None),
    "sshort": (2, 1, True, None),
    "ubyte_d16": (1, 1, False, 0),
    "ubyte_d16_hi": (1, 1, False, 1),
    "sbyte_d16": (1, 1, True, 0),
    "sbyte_d16_hi": (1, 1, True, 1),
    "short_d16": (2, 1, False, 0),
    "short_d16_hi": (2, 1, False, 1),
    "dword": (4, 1, False, None),
    "dwordx2": (4, 2, False, None),
    "dwordx3": (4, 3, False, None),
    "dwordx4": (4, 4, False, None),
}
_STORES = {
    "byte": (1, 1, 0),
    "byte_d16_hi": (1, 1, 16),
    "short": (2, 1, 0),
    "short_d16_hi": (2, 1, 16),
    "dword": (4, 1, 0),
    "dwordx2": (4, 2, 0),
    "dwordx3": (4, 3, 0),
    "dwordx4": (4, 4, 0),
}
# From the waves: addresses uint64 that broadcast to [count, 64], and for each word which lanes are in range.
_Address = Callable[[Waves], tuple[np.ndarray, list[np.ndarray] | None]]


def place_loaded(waves: Waves, register: int, value: np.ndarray, size: int, signed: bool, half: int | None) -> None:
    """Write what a load of `size` bytes gave: extended, or into one half of the register."""
    if signed and size < 4:
        shift = np.int32(32 - 8 * size)
        value = ((value.view(np.int32) << shift) >> shift).view(np.uint32)
    if half is None:
        waves.write(register, value)
    elif half:
        waves.write(register, (waves.vector[register] & np.uint32(0xFFFF)) | (value << np.uint32(16)))
    else:
        waves.write(register, (waves.vector[register] & np.uint32(0xFFFF0000)) | (value & np.uint32(0xFFFF)))


def _buffer_address(
    instruction: Instruction, operands: tuple[str, ...], limits: Limits, size: int, words: int
) -> _Address:
    modifiers = instruction.modifiers
    for name in modifiers:
        if name not in _CACHE | {"offen", "offset"}:
            raise Fault(f"unknown modifier '{name}'")
    immediate = _offset(modifiers.get("offset", "0"), 0, 4095)
    index_text, descriptor_text, scalar_text = operands
    descriptor = expect_register(descriptor_text, limits, "s", 4)
    scalar_offset = scalar_word(parse_source(scalar_text, limits).place)
    if ("offen" in modifiers) == (index_text == "off"):
        raise Fault(f"operand '{index_text}' does not go with the modifiers")
    lane_offset = None if index_text == "off" else expect_register(index_text, limits, "v", 1)
    first = descriptor.index

    def address(waves: Waves) -> tuple[np.ndarray, list[np.ndarray] | None]:
        low, high, records, _ = (waves.scalar_columns[first + word] for word in range(4))
        if (high >> np.uint32(31)).any():
            raise Fault("a buffer descriptor with swizzling is not supported")
        offset = np.uint64(immediate)
        if lane_offset:
            # This sum wraps around at 32 bits; the one with the scalar offset does not.
            offset = (waves.vector[lane_offset.index] + np.uint32(immediate)).astype(np.uint64)
        scalar = scalar_offset(waves).astype(np.uint64)[:, None]
        base = join(low, high & np.uint32(0xFFFF))
        end = offset + scalar + np.uint64(size * words)
        limit = records.astype(np.uint64)
        if not (end > limit).any():
            return base + offset + scalar, None
        inside = [offset + scalar + np.uint64(size * (word + 1)) <= limit for word in range(words)]
        return base + offset + scalar, inside

    return address


def _global_address(instruction: Instruction, operands: tuple[str, ...], limits: Limits) -> _Address:
    for name in instruction.modifiers:
        if name not in _CACHE | {"offset"}:
            raise Fault(f"unknown modifier '{name}'")
    immediate = np.int64(_offset(instruction.modifiers.get("offset", "0"), -4096, 4095))
    address_text, base_text = operands
    if base_text == "off":
        pair = expect_register(address_text, limits, "v", 2)

        def from_vector(waves: Waves) -> tuple[np.ndarray, None]:
            base = join(waves.vector[pair.index], waves.vector[pair.index + 1])
            return (base.view(np.int64) + immediate).view(np.uint64), None

        return from_vector
    base, offset = expect_register(base_text, limits, "s", 2), expect_register(address_text, limits, "v", 1)

    def from_scalar(waves: Waves) -> tuple[np.ndarray, None]:
        start = join(waves.scalar_columns[base.index], waves.scalar_columns[base.index + 1])
        total = start.view(np.int64) + waves.vector[offset.index].astype(np.int64) + immediate
        return total.view(np.uint64), None

    return from_scalar


def _load(kind: str, size: int, words: int, signed: bool, half: int | None) -> Callable[[Instruction, Limits], Step]:
    def translate(instruction: Instruction, limits: Limits) -> Step:
        place, address = _split_operands(instruction, kind, limits, size, words, 0)

        def step(waves: Waves) -> None:
            addresses, inside = address(waves)
            addresses = np.broadcast_to(addresses, waves.mask.shape)
            active = None if waves.full else waves.mask
            if words > 1 and inside is None:
                for word, value in enumerate(waves.memory.load_words(addresses, words, active)):
                    waves.write(place.index + word, value)
                return
            values = []
            for word in range(words):
                lanes = _restrict(active, inside[word] if inside else None, waves)
                values.append(waves.memory.load(addresses + np.uint64(size * word), size, lanes))
            for word, value in enumerate(values):
                place_loaded(waves, place.index + word, value, size, signed, half)

        return step

    return translate


def _store(kind: str, size: int, words: int, shift: int) -> Callable[[Instruction, Limits], Step]:
    def translate(instruction: Instruction, limits: Limits) -> Step:
        place, address = _split_operands(instruction, kind, limits, size, words, 1 if kind == "global" else 0)

        def step(waves: Waves) -> None:
            addresses, inside = address(waves)
            addresses = np.broadcast_to(addresses, waves.mask.shape)
            active = None if waves.full else waves.mask
            if words > 1 and inside is None:
                values = [waves.vector[place.index + word] for word in range(words)]
                waves.memory.store_words(addresses, values, active)
                return
            for word in range(words):
                lanes = _restrict(active, inside[word] if inside else None, waves)
                value = waves.vector[place.index + word] >> np.uint32(shift)
                waves.memory.store(addresses + np.uint64(size * word), value, size, lanes)

        return step

    return translate


def _split_operands(
    instruction: Instruction, kind: str, limits: Limits, size: int, words: int, data: int
) -> tuple[Register, _Address]:
    """The data registers, and the address from the other operands."""
    operands = list(instruction.operands)
    if len(operands) != (4 if kind == "buffer" else 3):
        raise Fault(f"unexpected number of operands, {len(operands)}")
    place = expect_register(operands.pop(data), limits, "v", words)
    if kind == "buffer":
        return place, _buffer_address(instruction, tuple(operands), limits, size, words)
    return place, _global_address(instruction, tuple(operands), limits)


def _restrict(active: np.ndarray | None, inside: np.ndarray | None, waves: Waves) -> np.ndarray | None:
    if inside is None:
        return active
    inside = np.broadcast_to(inside, waves.mask.shape)
    return inside if active is None else active & inside


def _offset(text: str, low: int, high: int) -> int:
    if not re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)", text) or not low <= int(text, 0) <= high:
        raise Fault(f"offset:{text} is not between {low} and {high}")
    return int(text, 0)


def _scalar_load(words: int, buffer: bool) -> Callable[[Instruction, Limits], Step]:
    def translate(instruction: Instruction, limits: Limits) -> Step:
        operands = instruction.operands
        for name in instruction.modifiers:
            if name not in _CACHE | {"offset"}:
                raise Fault(f"unknown modifier '{name}'")
        if len(operands) != 3:
            raise Fault(f"expected 3 operands, not {len(operands)}")
        place = expect_register(operands[0], limits, "s", words)
        base = expect_register(operands[1], limits, "s", 4 if buffer else 2)
        offset = scalar_word(parse_source(operands[2], limits).place)
        immediate = np.uint64(_offset(instruction.modifiers.get("offset", "0"), 0, (1 << 20) - 1))
        start = scalar_pair(Register("s", base.index, 2))

        def step(waves: Waves) -> None:
            first = start(waves)
            relative = offset(waves).astype(np.uint64) + immediate
            if buffer:
                first = first & np.uint64(0xFFFFFFFFFFFF)
                if (relative + np.uint64(4 * words) > waves.scalar[base.index + 2]).any():
                    raise Fault("a scalar load beyond the end of its buffer")
            addresses = np.broadcast_to(first + relative, waves.count)
            for word, value in enumerate(waves.memory.load_words(addresses, words, None, aligned=True)):
                waves.scalar[place.index + word] = value

        return step

    return translate


_WIDTHS = {"dword": 1, "dwordx2": 2, "dwordx3": 3, "dwordx4": 4, "dwordx8": 8, "dwordx16": 16}


def _cache_control(instruction: Instruction, limits: Limits) -> Step:
    """Caches have no influence on values here."""
    return lambda waves: None


GLOBAL_MEMORY: dict[str, Callable[[Instruction, Limits], Step]] = {
    **{f"{kind}_load_{name}": _load(kind, *form) for kind in ("buffer", "global") for name, form in _LOADS.items()},
    **{f"{kind}_store_{name}": _store(kind, *form) for kind in ("buffer", "global") for name, form in _STORES.items()},
    **{f"s_load_{name}": _scalar_load(words, False) for name, words in _WIDTHS.items()},
    **{f"s_buffer_load_{name}": _scalar_load(words, True) for name, words in _WIDTHS.items()},
    "buffer_wbl2": _cache_control,
    "buffer_inv": _cache_control,
}

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads and stores of local memory (LDS).

Addresses of 64-bit accesses are aligned to 8 bytes, and of 96- and 128-bit ones too: memory is set up so that
the hardware accepts that. Source: "AMD Instinct MI300 Instruction Set Architecture Reference Guide" (CDNA3),
chapter 11 and section 12.13.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from prepass.amdgpu.assembly import Instruction
from prepass.simulator.errors import Fault
from prepass.simulator.global_memory import _offset, place_loaded
from prepass.simulator.modifiers import Step
from prepass.simulator.operands import Limits, expect_register
from prepass.simulator.waves import Waves

# name: bytes, words, sign extended, d16 half (None: the whole register)
_READS = {
    "u8": (1, 1, False, None),
    "i8": (1, 1, True, None),
    "u16": (2, 1, False, None),
    "i16": (2, 1, True, None),
    "u8_d16": (1, 1, False, 0),
    "u8_d16_hi": (1, 1, False, 1),
    "i8_d16": (1, 1, True, 0),
    "i8_d16_hi": (1, 1, True, 1),
    "u16_d16": (2, 1, False, 0),
    "u16_d16_hi": (2, 1, False, 1),
    "b32": (4, 1, False, None),
    "b64": (4, 2, False, None),
    "b96": (4, 3, False, None),
    "b128": (4, 4, False, None),
}
# name: bytes, words, shift of the data
_WRITES = {
    "b8": (1, 1, 0),
    "b8_d16_hi": (1, 1, 16),
    "b16": (2, 1, 0),
    "b16_d16_hi": (2, 1, 16),
    "b32": (4, 1, 0),
    "b64": (4, 2, 0),
    "b96": (4, 3, 0),
    "b128": (4, 4, 0),
}
# The accesses of two places: words in each, and the unit of the offsets in bytes.
_DOUBLE = {"2_b32": (1, 4), "2_b64": (2, 8), "2st64_b32": (1, 256), "2st64_b64": (2, 512)}


def grain(names: Iterable[str]) -> int:
    """The bytes of the narrowest access to LDS among these instructions, at most 4."""
    sizes = [4]
    for table, prefix in ((_READS, "ds_read_"), (_WRITES, "ds_write_")):
        sizes += [table[name[len(prefix) :]][0] for name in names if name[len(prefix) :] in table and prefix in name]
    return min(sizes)


def _read(size: int, words: int, signed: bool, half: int | None) -> Callable[[Instruction, Limits], Step]:
    def translate(instruction: Instruction, limits: Limits) -> Step:
        _check(instruction, 2, ("offset",))
        place = expect_register(instruction.operands[0], limits, "v", words)
        address = expect_register(instruction.operands[1], limits, "v", 1)
        offset = _offset(instruction.modifiers.get("offset", "0"), 0, 65535)

        def step(waves: Waves) -> None:
            addresses = _addresses(waves, address.index, offset, 8 if words > 1 else size)
            for word, value in enumerate(_load(waves, addresses, size, words)):
                place_loaded(waves, place.index + word, value, size, signed, half)

        return step

    return translate


def _write(size: int, words: int, shift: int) -> Callable[[Instruction, Limits], Step]:
    def translate(instruction: Instruction, limits: Limits) -> Step:
        _check(instruction, 2, ("offset",))
        address = expect_register(instruction.operands[0], limits, "v", 1)
        data = expect_register(instruction.operands[1], limits, "v", words)
        offset = _offset(instruction.modifiers.get("offset", "0"), 0, 65535)

        def step(waves: Waves) -> None:
            addresses = _addresses(waves, address.index, offset, 8 if words > 1 else size)
            values = [waves.vector[data.index + word] >> np.uint32(shift) for word in range(words)]
            _store(waves, addresses, values, size)

        return step

    return translate


def _read_two(words: int, unit: int) -> Callable[[Instruction, Limits], Step]:
    def translate(instruction: Instruction, limits: Limits) -> Step:
        _check(instruction, 2, ("offset0", "offset1"))
        place = expect_register(instruction.operands[0], limits, "v", 2 * words)
        address = expect_register(instruction.operands[1], limits, "v", 1)
        offsets = _two_offsets(instruction, unit)

        def step(waves: Waves) -> None:
            values: list[np.ndarray] = []
            for offset in offsets:
                values += _load(waves, _addresses(waves, address.index, offset, 4 * words), 4, words)
            for word, value in enumerate(values):
                waves.write(place.index + word, value)

        return step

    return translate


def _write_two(words: int, unit: int) -> Callable[[Instruction, Limits], Step]:
    def translate(instruction: Instruction, limits: Limits) -> Step:
        _check(instruction, 3, ("offset0", "offset1"))
        address = expect_register(instruction.operands[0], limits, "v", 1)
        data = [expect_register(text, limits, "v", words) for text in instruction.operands[1:]]
        offsets = _two_offsets(instruction, unit)

        def step(waves: Waves) -> None:
            for offset, place in zip(offsets, data, strict=True):
                values = [waves.vector[place.index + word] for word in range(words)]
                _store(waves, _addresses(waves, address.index, offset, 4 * words), values, 4)

        return step

    return translate


def _two_offsets(instruction: Instruction, unit: int) -> list[int]:
    return [unit * _offset(instruction.modifiers.get(f"offset{number}", "0"), 0, 255) for number in (0, 1)]


def _check(instruction: Instruction, operands: int, modifiers: tuple[str, ...]) -> None:
    if len(instruction.operands) != operands:
        raise Fault(f"expected {operands} operands, not {len(instruction.operands)}")
    for name in instruction.modifiers:
        if name not in modifiers:
            raise Fault(f"unknown modifier '{name}'")


def _addresses(waves: Waves, register: int, offset: int, alignment: int) -> np.ndarray:
    # The sum is of 32 bits: compilers add offsets to bases that are negative.
    addresses = (waves.vector[register].astype(np.int64) + offset) & 0xFFFFFFFF
    if alignment > 1:
        wrong = (addresses & (alignment - 1)) != 0
        if not waves.full:
            wrong &= waves.mask
        if wrong.any():
            raise Fault(f"LDS address {int(addresses[wrong][0]):#x} is not aligned to {alignment} bytes")
    return addresses


def _load(waves: Waves, addresses: np.ndarray, size: int, words: int) -> list[np.ndarray]:
    active = None if waves.full else waves.mask
    return [waves.lds.load(waves.workgroup, waves.wave, addresses + size * word, size, active) for word in range(words)]


def _store(waves: Waves, addresses: np.ndarray, values: list[np.ndarray], size: int) -> None:
    active = None if waves.full else waves.mask
    for word, value in enumerate(values):
        waves.lds.store(waves.workgroup, waves.wave, addresses + size * word, value, size, active)


LOCAL_MEMORY: dict[str, Callable[[Instruction, Limits], Step]] = {
    **{f"ds_read_{name}": _read(*form) for name, form in _READS.items()},
    **{f"ds_write_{name}": _write(*form) for name, form in _WRITES.items()},
    **{f"ds_read{name}": _read_two(*form) for name, form in _DOUBLE.items()},
    **{f"ds_write{name}": _write_two(*form) for name, form in _DOUBLE.items()},
}

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads and stores of scratch memory, which each lane has for itself: registers that were spilled, local arrays.

Source: "AMD Instinct MI300 Instruction Set Architecture Reference Guide" (CDNA3), section 10.3.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from prepass.amdgpu.assembly import Instruction
from prepass.simulator.errors import Fault
from prepass.simulator.modifiers import Step
from prepass.simulator.operands import Limits, expect_register, parse_source, scalar_word
from prepass.simulator.waves import LANES, Waves

_WORDS = {"dword": 1, "dwordx2": 2, "dwordx3": 3, "dwordx4": 4}
_LANE = np.arange(LANES)


def _address(
    lane_text: str, scalar_text: str, instruction: Instruction, limits: Limits
) -> Callable[[Waves], np.ndarray]:
    """The word in each lane's scratch memory where an access starts, int64[count, 64]."""
    for name in instruction.modifiers:
        if name != "offset":
            raise Fault(f"unknown modifier '{name}'")
    text = instruction.modifiers.get("offset", "0")
    if not re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)", text) or not -4096 <= int(text, 0) <= 4095:
        raise Fault(f"offset:{text} is not between -4096 and 4095")
    immediate = int(text, 0)
    lane = None if lane_text == "off" else expect_register(lane_text, limits, "v", 1)
    scalar = None if scalar_text == "off" else scalar_word(parse_source(scalar_text, limits).place)

    def address(waves: Waves) -> np.ndarray:
        start = np.full(waves.mask.shape, immediate, np.int64)
        if lane:
            start += waves.vector[lane.index]
        if scalar:
            start += scalar(waves).astype(np.int64)[:, None]
        return start

    return address


def _check(waves: Waves, address: np.ndarray, words: int) -> None:
    wrong = (address & 3 != 0) | (address < 0) | (address + 4 * words > 4 * len(waves.scratch))
    wrong &= waves.mask
    if wrong.any():
        raise Fault(
            f"{4 * words} bytes at scratch address {int(address[wrong][0]):#x}, of {4 * len(waves.scratch)} bytes"
        )


def _load(words: int) -> Callable[[Instruction, Limits], Step]:
    def translate(instruction: Instruction, limits: Limits) -> Step:
        if len(instruction.operands) != 3:
            raise Fault(f"expected 3 operands, not {len(instruction.operands)}")
        place = expect_register(instruction.operands[0], limits, "v", words)
        address = _address(*instruction.operands[1:], instruction, limits)

        def step(waves: Waves) -> None:
            start = address(waves)
            _check(waves, start, words)
            rows = np.where(waves.mask, start >> 2, 0)
            values = [waves.scratch[rows + word, np.arange(waves.count)[:, None], _LANE] for word in range(words)]
            for word, value in enumerate(values):
                waves.write(place.index + word, value)

        return step

    return translate


def _store(words: int) -> Callable[[Instruction, Limits], Step]:
    def translate(instruction: Instruction, limits: Limits) -> Step:
        if len(instruction.operands) != 3:
            raise Fault(f"expected 3 operands, not {len(instruction.operands)}")
        lane, data, scalar = instruction.operands
        place = expect_register(data, limits, "v", words)
        address = _address(lane, scalar, instruction, limits)

        def step(waves: Waves) -> None:
            start = address(waves)
            _check(waves, start, words)
            wave, item = np.nonzero(waves.mask)
            rows = start[waves.mask] >> 2
            for word in range(words):
                waves.scratch[rows + word, wave, item] = waves.vector[place.index + word][waves.mask]

        return step

    return translate


SCRATCH: dict[str, Callable[[Instruction, Limits], Step]] = {
    **{f"scratch_load_{name}": _load(words) for name, words in _WORDS.items()},
    **{f"scratch_store_{name}": _store(words) for name, words in _WORDS.items()},
}

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modifiers of vector instructions: DPP, SDWA, clamp and output scaling.

Source: "AMD Instinct MI300 Instruction Set Architecture Reference Guide" (CDNA3), sections 6.2.2 to 6.4 and 13.3,
and "AMDGPU Instruction Modifiers and Operands", https://llvm.org/docs/AMDGPUModifierSyntax.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np

from prepass.simulator.errors import Fault
from prepass.simulator.operands import Getter, Register, Setter
from prepass.simulator.waves import LANES, Waves

Step = Callable[[Waves], None]

_LANE = np.arange(LANES)
_ROW, _IN_ROW = _LANE // 16, _LANE % 16
_DPP_OWN = ("row_mask", "bank_mask", "bound_ctrl")
_SELECTS = {"DWORD": (0, 32), "WORD_0": (0, 16), "WORD_1": (16, 16), **{f"BYTE_{i}": (8 * i, 8) for i in range(4)}}


def take_lanes(name: str, value: str) -> tuple[np.ndarray, np.ndarray] | None:
    """For a DPP control, which lane each lane reads, and whether it is a lane that exists; None for other modifiers."""
    same_row = np.ones(LANES, bool)
    if name == "quad_perm":
        order = np.array([int(number) for number in value.strip("[]").split(",")])
        if order.shape != (4,) or order.min() < 0 or order.max() > 3:
            raise Fault(f"quad_perm:{value} is no permutation of four lanes")
        return _LANE // 4 * 4 + order[_LANE % 4], same_row
    if name == "row_mirror":
        return _ROW * 16 + 15 - _IN_ROW, same_row
    if name == "row_half_mirror":
        return _LANE // 8 * 8 + 7 - _LANE % 8, same_row
    amount = int(value, 0) if re.fullmatch(r"\d+|0x[0-9a-f]+", value) else -1
    if name in ("row_shl", "row_shr", "row_ror") and 1 <= amount <= 15:
        position = _IN_ROW + (amount if name == "row_shl" else -amount)
        inside = (position >= 0) & (position < 16)
        return _ROW * 16 + position % 16, same_row if name == "row_ror" else inside
    if name in ("wave_shl", "wave_rol", "wave_shr", "wave_ror") and amount == 1:
        position = _LANE + (1 if name in ("wave_shl", "wave_rol") else -1)
        inside = (position >= 0) & (position < LANES)
        return position % LANES, same_row if name in ("wave_rol", "wave_ror") else inside
    if name == "row_newbcast" and 0 <= amount <= 15:
        return _ROW * 16 + amount, same_row
    if name == "row_bcast" and amount == 15:
        return np.maximum(_ROW * 16 - 1, 0), _ROW > 0
    if name == "row_bcast" and amount == 31:
        return np.full(LANES, 31), _LANE > 31
    return None


class Dpp:
    """What a DPP instruction does to its first source and to the lanes that it writes."""

    def __init__(self, modifiers: Mapping[str, str]) -> None:
        found = [taken for name, value in modifiers.items() if (taken := take_lanes(name, value))]
        if len(found) != 1:
            raise Fault("expected one DPP control that the simulator knows")
        self.lanes, self._exists = found[0]
        row_mask, bank_mask = (int(modifiers.get(name, "0xf"), 0) for name in ("row_mask", "bank_mask"))
        self._enabled = ((row_mask >> _ROW) & 1 & (bank_mask >> (_IN_ROW // 4))).astype(bool)
        # Assemblers write bound_ctrl:0 or bound_ctrl:1 for the same bit: lanes without a source read zero.
        self._zero = "bound_ctrl" in modifiers
        self._valid: np.ndarray = self._exists

    @staticmethod
    def names(modifiers: Mapping[str, str]) -> set[str]:
        """The modifiers that belong to DPP."""
        return {name for name, value in modifiers.items() if name in _DPP_OWN or take_lanes(name, value)}

    def source(self, get: Getter) -> Getter:
        """The source as the instruction sees it."""

        def shifted(waves: Waves) -> np.ndarray:
            value = np.broadcast_to(get(waves), waves.mask.shape)[:, self.lanes]
            return np.where(self._valid, value, value.dtype.type(0))

        return shifted

    def wrap(self, step: Step) -> Step:
        """Run a step with the lanes that it may write."""

        def run(waves: Waves) -> None:
            mask, full = waves.mask, waves.full
            # A lane that EXEC disables is no source.
            self._valid = self._exists & mask[:, self.lanes]
            waves.mask = mask & self._enabled if self._zero else mask & self._enabled & self._valid
            waves.full = bool(waves.mask.all())
            step(waves)
            waves.mask, waves.full = mask, full

        return run


def select_part(get: Getter, selection: str, sign_extend: bool) -> Getter:
    """The part of a source that SDWA selects, extended to 32 bits."""
    if selection not in _SELECTS:
        raise Fault(f"unknown selection '{selection}'")
    shift, width = _SELECTS[selection]
    if width == 32:
        return get
    if sign_extend:
        left, right = np.int32(32 - width - shift), np.int32(32 - width)
        return lambda waves: ((get(waves).view(np.int32) << left) >> right).view(np.uint32)
    mask = np.uint32((1 << width) - 1)
    return lambda waves: (get(waves) >> np.uint32(shift)) & mask


def write_part(place: Register, selection: str, unused: str) -> Setter:
    """Writes the part of a register that SDWA selects."""
    if selection not in _SELECTS or place.kind != "v" or place.count != 1:
        raise Fault(f"unknown selection '{selection}'")
    shift, width = _SELECTS[selection]
    if width == 32:
        return lambda waves, value: waves.write(place.index, value)
    part = np.uint32((1 << width) - 1)

    def write(waves: Waves, value: np.ndarray) -> None:
        placed = (value & part) << np.uint32(shift)
        if unused == "UNUSED_PRESERVE":
            placed = placed | (waves.vector[place.index] & ~(part << np.uint32(shift)))
        waves.write(place.index, placed)

    if unused not in ("UNUSED_PAD", "UNUSED_PRESERVE"):
        raise Fault(f"dst_unused:{unused} is not supported")
    return write


def scale_and_clamp(modifiers: Mapping[str, str]) -> Callable[[np.ndarray], np.ndarray] | None:
    """What `mul:2`, `mul:4`, `div:2` and `clamp` do to a floating-point result; None when there is none of them."""
    factors = {("mul", "2"): 2.0, ("mul", "4"): 4.0, ("div", "2"): 0.5}
    factor = 1.0
    for name in ("mul", "div"):
        if name in modifiers:
            if (name, modifiers[name]) not in factors:
                raise Fault(f"unknown modifier '{name}:{modifiers[name]}'")
            factor = factors[name, modifiers[name]]
    clamp = "clamp" in modifiers
    if factor == 1.0 and not clamp:
        return None

    def apply(value: np.ndarray) -> np.ndarray:
        value = value * value.dtype.type(factor)
        # With DX10_CLAMP, which the compiler sets, NaN becomes 0.
        return np.clip(np.nan_to_num(value, nan=0.0), 0.0, 1.0).astype(value.dtype) if clamp else value

    return apply

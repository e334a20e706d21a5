# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packed instructions: the same function on two halves.

`op_sel` and `op_sel_hi` say which half of each source the low and the high result take; `neg_lo` and `neg_hi`
negate there. Source: "AMD Instinct MI300 Instruction Set Architecture Reference Guide" (CDNA3), sections 6.6 and
12.11 (VOP3P).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from prepass.amdgpu.assembly import Instruction
from prepass.simulator import floats
from prepass.simulator.errors import Fault
from prepass.simulator.integers import INTEGERS
from prepass.simulator.modifiers import Step, scale_and_clamp
from prepass.simulator.operands import (
    Constant,
    Getter,
    Limits,
    Source,
    expect_register,
    parse_source,
    vector_word,
)
from prepass.simulator.vector import to_bits
from prepass.simulator.waves import Waves

_MODIFIERS = ("op_sel", "op_sel_hi", "neg_lo", "neg_hi", "clamp")
_VIEWS = {"f16": np.float16, "u16": np.uint16, "i16": np.int16, "f32": np.float32, "b32": np.uint32}


@dataclass(frozen=True)
class Packed:
    """A function of halves: of 16 bits in one register, or of 32 bits in two (f32 and b32)."""

    kind: str
    sources: int
    compute: Callable[..., np.ndarray]


def translate_packed(instruction: Instruction, operation: Packed, limits: Limits) -> Step:
    """The instruction as a function of the waves. Raises Fault for what it does not know."""
    modifiers = instruction.modifiers
    count = operation.sources
    for name in modifiers:
        if name not in _MODIFIERS:
            raise Fault(f"unknown modifier '{name}'")
    if len(instruction.operands) != count + 1:
        raise Fault(f"expected {count + 1} operands, not {len(instruction.operands)}")
    wide = operation.kind in ("f32", "b32")
    place = expect_register(instruction.operands[0], limits, "v", 2 if wide else 1)
    sources = [parse_source(text, limits) for text in instruction.operands[1:]]
    low, high = modifier_bits(modifiers, "op_sel", count, 0), modifier_bits(modifiers, "op_sel_hi", count, 1)
    neg_low, neg_high = modifier_bits(modifiers, "neg_lo", count, 0), modifier_bits(modifiers, "neg_hi", count, 0)
    if operation.kind == "b32":
        # V_PK_MOV_B32: the low result is of the first source, the high one of the second.
        lows, highs = (
            [half_of_source(sources[0], low[0], False, "b32")],
            [half_of_source(sources[1], low[1], False, "b32")],
        )
        if "op_sel_hi" in modifiers and high[1] != 1 and low[1] != high[1]:
            raise Fault(f"op_sel_hi:{modifiers['op_sel_hi']} is not supported here")
    else:
        lows, highs = (
            [half_of_source(*parts, operation.kind) for parts in zip(sources, chosen, negated, strict=True)]
            for chosen, negated in ((low, neg_low), (high, neg_high))
        )
    finish = _finish(operation.kind, modifiers)

    def step(waves: Waves) -> None:
        first = finish(waves, operation.compute(*[get(waves) for get in lows]))
        second = finish(waves, operation.compute(*[get(waves) for get in highs]))
        if wide:
            waves.write(place.index, first)
            waves.write(place.index + 1, second)
        else:
            waves.write(place.index, first | (second << np.uint32(16)))

    return step


def modifier_bits(modifiers: Mapping[str, str], name: str, sources: int, default: int) -> list[int]:
    """The bits of a modifier such as `op_sel`, one for each source. Raises Fault."""
    text = modifiers.get(name)
    bits = [int(bit) for bit in text.strip("[]").split(",")] if text else [default] * sources
    if len(bits) != sources or any(bit not in (0, 1) for bit in bits):
        raise Fault(f"{name}:{text} does not fit {sources} sources")
    return bits


def half_of_source(source: Source, high: int, negate: int, kind: str) -> Getter:
    """A half of a source as an array of the type."""
    if source.absolute or source.negate or source.sign_extend:
        raise Fault("sources of packed instructions take neg_lo and neg_hi only")
    if kind in ("f32", "b32"):
        raw = _wide_half(source, high, kind)
    else:
        word = vector_word(source.place, kind if kind == "f16" else "u32")
        if not isinstance(source.place, Constant) and source.place.count != 1:
            raise Fault(f"a source of type {kind} is one register")
        shift = np.uint32(16 * high)

        def raw(waves: Waves) -> np.ndarray:
            value = word(waves)
            return (value >> shift if high else value).astype(np.uint16)

    view = _VIEWS[kind]
    if negate and kind not in ("f16", "f32"):
        raise Fault(f"sources of type {kind} are not negated")

    def get(waves: Waves) -> np.ndarray:
        value = raw(waves).view(view)
        if kind[0] == "f" and waves.flush_inputs[kind]:
            value = floats.flush(value)
        return np.negative(value) if negate else value

    return get


def _wide_half(source: Source, high: int, kind: str) -> Getter:
    if isinstance(source.place, Constant):
        if high and source.place.bits("f32") != 0:
            raise Fault("the high half of a constant is not defined")
        return vector_word(source.place, "f32" if kind == "f32" else "u32")
    if source.place.count != 2:
        raise Fault(f"a source of type {kind} is a pair of registers")
    return vector_word(source.place, word=high)


def _finish(kind: str, modifiers: Mapping[str, str]) -> Callable[[Waves, np.ndarray], np.ndarray]:
    if kind not in ("f16", "f32"):
        if "clamp" in modifiers:
            raise Fault("clamp on packed integers is not supported")
        return lambda waves, value: to_bits(value)
    scale = scale_and_clamp({"clamp": ""} if "clamp" in modifiers else {})

    def finish(waves: Waves, value: np.ndarray) -> np.ndarray:
        if waves.flush_results[kind]:
            value = floats.flush(value)
        return to_bits(scale(value) if scale else value)

    return finish


def _shift(name: str) -> Callable[..., np.ndarray]:
    return INTEGERS[name].compute


PACKED: dict[str, Packed] = {
    "v_pk_add_f16": Packed("f16", 2, np.add),
    "v_pk_mul_f16": Packed("f16", 2, np.multiply),
    "v_pk_fma_f16": Packed("f16", 3, floats.fma),
    "v_pk_min_f16": Packed("f16", 2, floats.minimum),
    "v_pk_max_f16": Packed("f16", 2, floats.maximum),
    "v_pk_add_u16": Packed("u16", 2, np.add),
    "v_pk_add_i16": Packed("i16", 2, np.add),
    "v_pk_sub_u16": Packed("u16", 2, np.subtract),
    "v_pk_sub_i16": Packed("i16", 2, np.subtract),
    "v_pk_mul_lo_u16": Packed("u16", 2, np.multiply),
    "v_pk_mad_u16": Packed("u16", 3, lambda a, b, c: a * b + c),
    "v_pk_mad_i16": Packed("i16", 3, lambda a, b, c: a * b + c),
    "v_pk_min_u16": Packed("u16", 2, np.minimum),
    "v_pk_max_u16": Packed("u16", 2, np.maximum),
    "v_pk_min_i16": Packed("i16", 2, np.minimum),
    "v_pk_max_i16": Packed("i16", 2, np.maximum),
    "v_pk_lshlrev_b16": Packed("u16", 2, _shift("v_lshlrev_b16")),
    "v_pk_lshrrev_b16": Packed("u16", 2, _shift("v_lshrrev_b16")),
    "v_pk_ashrrev_i16": Packed("i16", 2, lambda a, b: b >> (a & np.int16(15))),
    "v_pk_add_f32": Packed("f32", 2, np.add),
    "v_pk_mul_f32": Packed("f32", 2, np.multiply),
    "v_pk_fma_f32": Packed("f32", 3, floats.fma),
    "v_pk_mov_b32": Packed("b32", 2, lambda a: a),
}

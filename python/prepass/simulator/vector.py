# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vector instructions whose result is a function of their sources, lane by lane.

Tables say for each instruction the types of its result and sources and the function; what modifiers do is
here, once for all. Source: "AMD Instinct MI300 Instruction Set Architecture Reference Guide" (CDNA3), chapter 6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from prepass.amdgpu.assembly import Instruction
from prepass.simulator import floats
from prepass.simulator.errors import Fault
from prepass.simulator.modifiers import Dpp, Step, scale_and_clamp, select_part, write_part
from prepass.simulator.operands import (
    Constant,
    Getter,
    Limits,
    Register,
    Setter,
    Source,
    parse_register,
    parse_source,
    vector_pair,
    vector_word,
    write_vector,
)
from prepass.simulator.waves import Waves

_SDWA = ("dst_sel", "dst_unused", "src0_sel", "src1_sel")
_TYPES = {
    "u16": np.uint16,
    "i16": np.int16,
    "f16": np.float16,
    "u32": np.uint32,
    "i32": np.int32,
    "f32": np.float32,
    "u64": np.uint64,
    "i64": np.int64,
    "f64": np.float64,
}
_SIGN = np.uint32(0x80000000)


@dataclass(frozen=True)
class Operation:
    """A function of lanes.

    Attributes:
      result: f16, f32, f64, u16, …; "b32" are bits.
      sources: Also "u24" and "i24": the low 24 bits.
      compute: From arrays of the sources' types to one of the result's.
      reads_result: Whether the destination is the last source.
      keeps_high: Whether a 16-bit result leaves the other half as it is, instead of clearing it.
      flushes: Whether denormals are zero whatever MODE says, as for transcendentals.
    """

    result: str
    sources: tuple[str, ...]
    compute: Callable[..., np.ndarray]
    reads_result: bool = False
    keeps_high: bool = False
    flushes: bool = False


def translate_vector(instruction: Instruction, operation: Operation, limits: Limits) -> Step:
    """The instruction as a function of the waves. Raises Fault for what it does not know."""
    modifiers = dict(instruction.modifiers)
    expected = len(operation.sources) + (not operation.reads_result)
    if len(instruction.operands) != expected:
        raise Fault(f"expected {expected} operands, not {len(instruction.operands)}")
    texts = list(instruction.operands[1:]) + ([instruction.operands[0]] if operation.reads_result else [])
    sources = [parse_source(text, limits) for text in texts]
    place = parse_register(instruction.operands[0], limits)
    if place is None or place.count != (2 if operation.result in ("u64", "i64", "f64") else 1):
        raise Fault(f"'{instruction.operands[0]}' is no destination of type {operation.result}")
    dpp = Dpp(modifiers) if "dpp" in instruction.encoding else None
    getters = read_sources(instruction, operation.sources, sources, dpp)
    if operation.flushes:
        getters = [_flushed(get) for get in getters]
    finish = _finish(operation, modifiers)
    write = _write_result(operation, place, modifiers)
    check_modifiers(instruction, {"clamp", "mul", "div", "op_sel"}, len(operation.sources))
    step = _step(operation.compute, getters, finish, write)
    return dpp.wrap(step) if dpp else step


def read_sources(
    instruction: Instruction, types: Sequence[str], sources: Sequence[Source], dpp: Dpp | None = None
) -> list[Getter]:
    """A function of the waves for each source: an array of its type that broadcasts to [count, 64]."""
    modifiers = instruction.modifiers
    halves = selected_halves(modifiers.get("op_sel", ""), len(sources))
    getters = []
    for number, (kind, source) in enumerate(zip(types, sources, strict=True)):
        if kind in ("u64", "i64", "f64"):
            if dpp or instruction.encoding == "sdwa":
                raise Fault("64-bit sources with DPP or SDWA are not supported")
            raw = vector_pair(source.place, kind)
        else:
            raw = _read_word(instruction, number, kind, source, bool(halves[number]))
            raw = dpp.source(raw) if dpp and number == 0 else raw
        if source.sign_extend and instruction.encoding != "sdwa":
            raise Fault("sext() without SDWA")
        getters.append(_typed(raw, kind, source))
    return getters


def check_modifiers(instruction: Instruction, known: set[str], sources: int) -> None:
    """Raise Fault for a modifier that is none of the known ones, of DPP or of SDWA."""
    own = set(known)
    if "dpp" in instruction.encoding:
        own |= Dpp.names(instruction.modifiers)
    if instruction.encoding == "sdwa":
        own |= set(_SDWA[: 2 + sources])
    for name in instruction.modifiers:
        if name not in own:
            raise Fault(f"unknown modifier '{name}'")


def selected_halves(text: str, sources: int) -> list[int]:
    """The bits of `op_sel:[…]`: one for each source, and one for the destination if there are that many."""
    bits = [int(bit) for bit in text.strip("[]").split(",")] if text else []
    if any(bit not in (0, 1) for bit in bits) or len(bits) > sources + 1:
        raise Fault(f"op_sel:{text} does not fit {sources} sources")
    return bits + [0] * (sources + 1 - len(bits))


def _read_word(instruction: Instruction, number: int, kind: str, source: Source, high: bool) -> Getter:
    raw = vector_word(source.place, "u32" if kind in ("u24", "i24", "b32") else kind)
    if isinstance(source.place, Register) and source.place.count != 1:
        raise Fault(f"a source of type {kind} is one register")
    if instruction.encoding == "sdwa" and number < 2:
        raw = select_part(raw, instruction.modifiers.get(f"src{number}_sel", "DWORD"), source.sign_extend)
    if high and kind not in ("f16", "u16", "i16"):
        raise Fault(f"op_sel on a source of type {kind} is not supported")
    if high:
        shifted = raw
        return lambda waves: shifted(waves) >> np.uint32(16)
    return raw


def _typed(raw: Getter, kind: str, source: Source) -> Getter:
    """The bits as an array of the type, with the modifiers of the source applied."""
    if kind in ("f16", "f32", "f64"):
        return _typed_float(raw, kind, source)
    if kind == "b32":
        if source.absolute or source.negate:
            sign = _SIGN if source.negate else np.uint32(0)
            keep = ~_SIGN if source.absolute else np.uint32(0xFFFFFFFF)
            return lambda waves: (raw(waves) & keep) ^ sign
        return raw
    if source.absolute or source.negate:
        raise Fault(f"a source of type {kind} takes no sign modifiers")
    if kind == "u24":
        return lambda waves: raw(waves) & np.uint32(0xFFFFFF)
    if kind == "i24":
        return lambda waves: (raw(waves) << np.uint32(8)).view(np.int32) >> np.int32(8)
    if kind in ("u32", "u64"):
        return raw
    if kind in ("u16", "i16"):
        return lambda waves: raw(waves).astype(np.uint16).view(_TYPES[kind])
    return lambda waves: raw(waves).view(_TYPES[kind])


def _typed_float(raw: Getter, kind: str, source: Source) -> Getter:
    if kind == "f16":

        def plain(waves: Waves) -> np.ndarray:
            return raw(waves).astype(np.uint16).view(np.float16)
    else:

        def plain(waves: Waves) -> np.ndarray:
            return raw(waves).view(_TYPES[kind])

    def modified(waves: Waves) -> np.ndarray:
        value = plain(waves)
        if waves.flush_inputs[kind]:
            value = floats.flush(value)
        if source.absolute:
            value = np.abs(value)
        return np.negative(value) if source.negate else value

    if isinstance(source.place, Constant) and not source.absolute and not source.negate:
        return plain
    return modified


def _flushed(get: Getter) -> Getter:
    return lambda waves: floats.flush(get(waves))


def _finish(operation: Operation, modifiers: Mapping[str, str]) -> Callable[[Waves, np.ndarray], np.ndarray]:
    """From the function's result to bits, uint32 or uint64."""
    kind = operation.result
    if kind not in ("f16", "f32", "f64"):
        if "mul" in modifiers or "div" in modifiers or "clamp" in modifiers:
            raise Fault("output modifiers on an integer result are not supported")
        return lambda waves, value: to_bits(value)
    scale = scale_and_clamp(modifiers)
    flushes = operation.flushes

    def finish(waves: Waves, value: np.ndarray) -> np.ndarray:
        if flushes or waves.flush_results[kind]:
            value = floats.flush(value)
        return to_bits(scale(value) if scale else value)

    return finish


def to_bits(value: np.ndarray) -> np.ndarray:
    """The bits of numbers of any type, uint32, or uint64 for 64-bit types."""
    size = value.dtype.itemsize
    if value.dtype == np.bool_ or size == 1:
        return value.astype(np.uint32)
    if size == 2:
        return value.view(np.uint16).astype(np.uint32)
    return value.view(np.uint32 if size == 4 else np.uint64)


def _write_result(operation: Operation, place: Register, modifiers: Mapping[str, str]) -> Setter:
    if "dst_sel" in modifiers or "dst_unused" in modifiers:
        return write_part(place, modifiers.get("dst_sel", "DWORD"), modifiers.get("dst_unused", "UNUSED_PAD"))
    high = selected_halves(modifiers.get("op_sel", ""), len(operation.sources))[-1]
    if operation.result not in ("f16", "u16", "i16"):
        if high:
            raise Fault("op_sel of the destination needs a 16-bit result")
        return write_vector(place)
    if not high and not operation.keeps_high:
        return write_vector(place)
    return write_part(place, "WORD_1" if high else "WORD_0", "UNUSED_PRESERVE")


def _step(
    compute: Callable[..., np.ndarray],
    getters: Sequence[Getter],
    finish: Callable[[Waves, np.ndarray], np.ndarray],
    write: Setter,
) -> Step:
    if len(getters) == 1:
        (only,) = getters
        return lambda waves: write(waves, finish(waves, compute(only(waves))))
    if len(getters) == 2:
        first, second = getters
        return lambda waves: write(waves, finish(waves, compute(first(waves), second(waves))))

    def step(waves: Waves) -> None:
        write(waves, finish(waves, compute(*[get(waves) for get in getters])))

    return step

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vector comparisons: one bit for each lane.

Source: "AMD Instinct MI300 Instruction Set Architecture Reference Guide" (CDNA3), section 12.9 (VOPC).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prepass.amdgpu.assembly import Instruction
from prepass.simulator.errors import Fault
from prepass.simulator.modifiers import Step
from prepass.simulator.operands import Limits, expect_register, parse_source, write_lanes
from prepass.simulator.vector import check_modifiers, read_sources
from prepass.simulator.waves import EXEC, Waves, bits_of

_Relation = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _not(relation: _Relation) -> _Relation:
    return lambda a, b: ~relation(a, b)


def _ordered(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return ~(np.isnan(a) | np.isnan(b))


def _always(value: bool) -> _Relation:
    return lambda a, b: np.full(np.broadcast_shapes(a.shape, b.shape), value)


_COMMON: dict[str, _Relation] = {
    "f": _always(False),
    "lt": np.less,
    "eq": np.equal,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_INTEGER = {**_COMMON, "ne": np.not_equal, "t": _always(True)}
_REAL = {
    **_COMMON,
    "lg": lambda a, b: (a < b) | (a > b),
    "o": _ordered,
    "u": _not(_ordered),
    "nge": _not(np.greater_equal),
    "nlg": lambda a, b: ~((a < b) | (a > b)),
    "ngt": _not(np.greater),
    "nle": _not(np.less_equal),
    "neq": np.not_equal,
    "nlt": _not(np.less),
    "tru": _always(True),
}


def classify(value: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """V_CMP_CLASS: whether the number is of one of the classes whose bits are set in `wanted`.

    Bits 0 to 9: signalling NaN, quiet NaN, -infinity, -normal, -denormal, -0, 0, denormal, normal, infinity.
    """
    size = value.dtype.itemsize
    fraction = {2: 10, 4: 23, 8: 52}[size]
    bits = value.view(f"u{size}")
    quiet = (bits >> bits.dtype.type(fraction - 1)) & bits.dtype.type(1) != 0
    smallest = np.finfo(value.dtype).smallest_normal
    negative, magnitude, nan = np.signbit(value), np.abs(value), np.isnan(value)
    kinds = [magnitude == 0, magnitude < smallest, np.isfinite(value)]
    positive_class = np.select(kinds, [6, 7, 8], 9)
    number = np.where(negative, 11 - positive_class, positive_class)
    number = np.where(nan, np.where(quiet, 1, 0), number).astype(np.uint32)
    return (wanted >> number) & np.uint32(1) != 0


def _comparison(
    kinds: tuple[str, str], relation: _Relation, writes_exec: bool
) -> Callable[[Instruction, Limits], Step]:
    def translate(instruction: Instruction, limits: Limits) -> Step:
        if "dpp" in instruction.encoding or len(instruction.operands) != 3:
            raise Fault("expected a destination and two sources, without DPP")
        place = expect_register(instruction.operands[0], limits, "s", 2)
        a, b = read_sources(instruction, kinds, [parse_source(text, limits) for text in instruction.operands[1:]])
        check_modifiers(instruction, set(), 2)
        if instruction.encoding == "sdwa" and "dst_sel" in instruction.modifiers:
            raise Fault("a comparison has no dst_sel")
        write = write_lanes(place)

        def step(waves: Waves) -> None:
            lanes = relation(a(waves), b(waves))
            write(waves, lanes)
            if writes_exec:
                waves.scalar[EXEC], waves.scalar[EXEC + 1] = bits_of(np.logical_and(lanes, waves.mask))
                waves.exec_changed()

        return step

    return translate


def _comparisons() -> dict[str, Callable[[Instruction, Limits], Step]]:
    table = {}
    for prefix, writes_exec in (("v_cmp", False), ("v_cmpx", True)):
        for kind in ("u16", "i16", "u32", "i32", "u64", "i64", "f16", "f32", "f64"):
            for name, relation in (_REAL if kind[0] == "f" else _INTEGER).items():
                table[f"{prefix}_{name}_{kind}"] = _comparison((kind, kind), relation, writes_exec)
        for kind in ("f16", "f32", "f64"):
            table[f"{prefix}_class_{kind}"] = _comparison((kind, "u32"), classify, writes_exec)
    return table


COMPARISONS = _comparisons()

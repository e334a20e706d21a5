# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vector instructions of the simulator against references on single lanes."""

import math
from fractions import Fraction

import numpy as np
import pytest

from prepass.simulator.errors import Fault
from prepass.simulator.integers import INTEGERS
from prepass.simulator.reals import REALS
from prepass.simulator.waves import LANES, POISON

from .exact_numbers import flushed, rounded, signed, size, value
from .simulator_harness import execute, make_waves, pair, samples
from .vector_reference import VECTOR, Reference, same

# Those are moves, tested beside the registers that they are for.
_ACCUMULATORS = {"v_accvgpr_read_b32", "v_accvgpr_write_b32", "v_accvgpr_mov_b32"}
# Source operands start here, four registers apart; the result is in v0.
_FIRST = 4
# Only some lanes are active; the others keep what they have.
_ACTIVE = 0xFFFF7FFF0FFFFFFE


def test_every_instruction_has_a_reference():
    assert set(VECTOR) == {*INTEGERS, *REALS} - _ACCUMULATORS


def fill(reference: Reference, random: np.random.Generator) -> tuple[list[list[int]], dict[int, list[int]]]:
    """Samples for each source, and the registers that hold them."""
    sources = [samples(kind, random) for kind in reference.kinds[1:]]
    registers = {0: samples("u32", random), 1: samples("u32", random)}
    for number, values in enumerate(sources):
        at = 0 if reference.old and number == len(sources) - 1 else _FIRST + 4 * number
        # What stands above a narrow source must not matter.
        noise = samples("u32", random) if size(reference.kinds[1 + number]) == 16 else [0] * LANES
        registers[at] = [v & 0xFFFFFFFF | (n << 16 & 0xFFFFFFFF) for v, n in zip(values, noise, strict=True)]
        registers[at + 1] = [v >> 32 for v in values]
    return sources, registers


def register(number: int, kind: str) -> str:
    return f"v[{number}:{number + 1}]" if size(kind) == 64 else f"v{number}"


def instruction_text(name: str, reference: Reference) -> str:
    written = len(reference.kinds) - 1 - reference.old
    operands = [register(0, reference.kinds[0])]
    operands += [register(_FIRST + 4 * n, kind) for n, kind in enumerate(reference.kinds[1 : 1 + written])]
    return f"{name} {', '.join(operands)}"


@pytest.mark.parametrize("name", VECTOR)
def test_against_reference(name):
    reference = VECTOR[name]
    random = np.random.default_rng(list(name.encode()))
    kind = reference.kinds[0]
    keeps_high = name in ("v_fma_f16", "v_fmac_f16", "v_div_fixup_f16", "v_mad_u16")
    for _ in range(6):
        sources, registers = fill(reference, random)
        waves = execute(instruction_text(name, reference), make_waves(registers, active=_ACTIVE))
        for lane in range(LANES):
            if not _ACTIVE >> lane & 1:
                assert waves.vector[0, 0, lane] == registers[0][lane]
                continue
            got = pair(waves, 0, lane) if size(kind) == 64 else int(waves.vector[0, 0, lane])
            if size(kind) == 16:
                assert got >> 16 == (registers[0][lane] >> 16 if keeps_high else 0)
                got &= 0xFFFF
            bits = [values[lane] for values in sources]
            wanted = reference.compute(*bits)
            assert same(got, wanted, kind, reference.tolerance), ([hex(b) for b in bits], hex(got), hex(wanted))


@pytest.mark.parametrize("kind", ["f16", "f32"])
@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("-v4, v8", lambda a, b: (-a, b)),
        ("|v4|, v8", lambda a, b: (abs(a), b)),
        ("-|v4|, -v8", lambda a, b: (-abs(a), -b)),
        ("v4, 0.5", lambda a, b: (a, 0.5)),
        ("v4, -4.0", lambda a, b: (a, -4.0)),
        ("v4, 0.15915494", lambda a, b: (a, None)),
    ],
)
def test_sign_modifiers_and_constants(kind, text, change):
    random = np.random.default_rng(3)
    a, b = samples(kind, random), samples(kind, random)
    waves = execute(f"v_add_{kind}_e64 v0, {text}", make_waves({4: a, 8: b}))
    inverse = value(0x3118, "f16") if kind == "f16" else value(0x3E22F983, "f32")
    for lane in range(LANES):
        x, y = change(value(a[lane], kind), value(b[lane], kind))
        wanted = rounded(_sum(x, inverse if y is None else y), kind)
        assert same(int(waves.vector[0, 0, lane]), wanted, kind, 0)


def _sum(x, y):
    finite = math.isfinite(x) and math.isfinite(y) and (x != 0 or y != 0)
    return Fraction(x) + Fraction(y) if finite else x + y


@pytest.mark.parametrize(
    ("modifiers", "change"),
    [
        ("mul:2", lambda x: x * 2),
        ("mul:4", lambda x: x * 4),
        ("div:2", lambda x: x / 2),
        ("clamp", lambda x: min(max(x, 0.0), 1.0)),
        ("clamp mul:4", lambda x: min(max(x * 4, 0.0), 1.0)),
    ],
)
def test_output_modifiers(modifiers, change):
    a = np.linspace(-3, 3, LANES).astype(np.float32)
    b = np.full(LANES, 0.25, np.float32)
    waves = execute(f"v_add_f32_e64 v0, v4, v8 {modifiers}", make_waves({4: a.view(np.uint32), 8: b.view(np.uint32)}))
    wanted = np.array([change(float(x)) for x in a + b], np.float32)
    assert np.array_equal(waves.vector[0, 0].view(np.float32), wanted)


def test_clamped_nan_is_zero():
    waves = execute("v_add_f32_e64 v0, v4, v4 clamp", make_waves({4: [0x7FC00000] * LANES}))
    assert not waves.vector[0, 0].any()


@pytest.mark.parametrize("name", ["v_add_u32", "v_sub_u32", "v_subrev_u32", "v_add_u16", "v_sub_u16", "v_subrev_u16"])
def test_saturating_integers(name):
    kind = name[-3:]
    random = np.random.default_rng(5)
    a, b = samples(kind, random), samples(kind, random)
    waves = execute(f"{name}_e64 v0, v4, v8 clamp", make_waves({4: a, 8: b}))
    compute = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "subrev": lambda x, y: y - x}[name.split("_")[1]]
    wanted = [min(max(compute(x, y), 0), (1 << size(kind)) - 1) for x, y in zip(a, b, strict=True)]
    assert waves.vector[0, 0].tolist() == wanted


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", ["f16", "f32"])
def test_denormals(kind, mode):
    """Bit 0 of the mode allows denormal inputs, bit 1 denormal results."""
    half = 1 << (9 if kind == "f16" else 22)
    one = rounded(1.0, kind)
    a = [half, one >> 0, half, rounded(Fraction(value(half, kind)) * 2, kind)] * 16
    b = [one, one, rounded(4.0, kind), rounded(0.5, kind)] * 16
    denormals = mode | 12 if kind == "f32" else mode << 2 | 3
    waves = execute(f"v_mul_{kind} v0, v4, v8", make_waves({4: a, 8: b}, denormals=denormals))
    for lane in range(LANES):
        x = a[lane] if mode & 1 else flushed(a[lane], kind)
        wanted = rounded(Fraction(value(x, kind)) * Fraction(value(b[lane], kind)), kind)
        wanted = wanted if mode & 2 else flushed(wanted, kind)
        assert int(waves.vector[0, 0, lane]) == wanted


def test_mode_is_set_by_instructions():
    tiny, one = [1] * LANES, [0x3F800000] * LANES
    waves = make_waves({4: tiny, 8: one}, denormals=15)
    execute("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0\nv_mul_f32 v0, v4, v8", waves)
    assert not waves.vector[0, 0].any()
    execute("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3\nv_mul_f32 v0, v4, v8", waves)
    assert waves.vector[0, 0].tolist() == tiny


@pytest.mark.parametrize("selection", ["BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"])
@pytest.mark.parametrize("extend", [False, True])
def test_sdwa_sources(selection, extend):
    random = np.random.default_rng(11)
    a, b = samples("u32", random), samples("u32", random)
    source = "sext(v8)" if extend else "v8"
    modifiers = f"dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:{selection}"
    waves = execute(f"v_add_u32_sdwa v0, v4, {source} {modifiers}", make_waves({4: a, 8: b}))
    width = {"B": 8, "W": 16, "D": 32}[selection[0]]
    shift = width * int(selection[-1]) if width < 32 else 0
    for lane in range(LANES):
        part = b[lane] >> shift & ((1 << width) - 1)
        part = signed(part, width) if extend else part
        assert int(waves.vector[0, 0, lane]) == a[lane] + part & 0xFFFFFFFF


@pytest.mark.parametrize("unused", ["UNUSED_PAD", "UNUSED_PRESERVE"])
@pytest.mark.parametrize("selection", ["BYTE_1", "BYTE_3", "WORD_0", "WORD_1"])
def test_sdwa_destination(selection, unused):
    random = np.random.default_rng(13)
    old, a, b = (samples("u32", random) for _ in range(3))
    modifiers = f"dst_sel:{selection} dst_unused:{unused} src0_sel:DWORD src1_sel:DWORD"
    waves = execute(f"v_or_b32_sdwa v0, v4, v8 {modifiers}", make_waves({0: old, 4: a, 8: b}))
    width = 8 if selection[0] == "B" else 16
    shift = width * int(selection[-1])
    part = (1 << width) - 1
    for lane in range(LANES):
        placed = ((a[lane] | b[lane]) & part) << shift
        rest = old[lane] & ~(part << shift) if unused == "UNUSED_PRESERVE" else 0
        assert int(waves.vector[0, 0, lane]) == placed | rest


def test_halves_of_16_bit_sources_and_results():
    random = np.random.default_rng(17)
    a, b, c, old = (samples("u32", random) for _ in range(4))
    waves = execute("v_mad_u16 v0, v4, v8, v12 op_sel:[1,0,1,1]", make_waves({0: old, 4: a, 8: b, 12: c}))
    for lane in range(LANES):
        result = (a[lane] >> 16) * (b[lane] & 0xFFFF) + (c[lane] >> 16) & 0xFFFF
        assert int(waves.vector[0, 0, lane]) == result << 16 | old[lane] & 0xFFFF


def test_accumulators_are_registers_of_their_own():
    text = "v_accvgpr_write_b32 a3, v4\nv_accvgpr_mov_b32 a5, a3\nv_accvgpr_read_b32 v0, a5"
    a = samples("u32", np.random.default_rng(19))
    waves = execute(text, make_waves({4: a}))
    assert waves.vector[0, 0].tolist() == a
    assert (waves.vector[3] == POISON).all()


@pytest.mark.parametrize(
    "text",
    [
        "v_frobnicate_f32 v0, v4",
        "v_add_f32 v0, v4, v8 op_sel:[1,0]",
        "v_add_f32 v0, v4, v8 op_sel:[0,0,1]",
        "v_add_f32 v0, v4, v8 mul:3",
        "v_add_f32 v0, v4, v8 high",
        "v_add_f32 v0, v4",
        "v_add_f32 v0, v4, v[8:9]",
        "v_add_f32 v0, v4, 1.5",
        "v_add_f32 v48, v4, v8",
        "v_add_f32 v0, v4, a16",
        "v_add_f32 v0, v4, s102",
        "v_add_f32 v0, v4, vcx",
        "v_add_f32 s0, v4, v8",
        "v_add_f64 v0, v[4:5], v[8:9]",
        "v_add_u32 v0, -v4, v8",
        "v_add_u32 v0, sext(v4), v8",
        "v_mul_lo_u32 v0, v4, v8 clamp",
        "v_mov_b64 v[0:1], 0x123456789",
        "v_add_u32_sdwa v0, v4, v8 src0_sel:WORD_2",
        "v_or_b32_sdwa v0, v4, v8 dst_sel:WORD_1 dst_unused:UNUSED_SEXT",
        "v_cmp_lt_i64 vcc, 0x80000000, v[4:5]",
    ],
)
def test_what_is_unknown_is_an_error(text):
    with pytest.raises(Fault):
        execute(text, make_waves())


def test_indexed_registers():
    from prepass.amdgpu.assembly import read_instruction
    from prepass.simulator.indexing import translate_indexed

    from .simulator_harness import LIMITS

    values = {number: [100 * number + lane for lane in range(LANES)] for number in range(4, 12)}
    waves = make_waves(values, {5: 3}, waves=2)
    waves.scalar[5] = [3, 6]
    execute("s_set_gpr_idx_on s5, gpr_idx(SRC0)", waves)
    translate_indexed(read_instruction("v_mov_b32_e32 v0, v4", 1), "gpr_idx(SRC0)", LIMITS)(waves)
    execute("s_set_gpr_idx_off", waves)
    assert waves.vector[0, 0].tolist() == values[7]
    assert waves.vector[0, 1].tolist() == values[10]
    execute("s_set_gpr_idx_on s5, gpr_idx(DST)", waves)
    translate_indexed(read_instruction("v_mov_b32_e32 v20, v4", 1), "gpr_idx(DST)", LIMITS)(waves)
    assert waves.vector[23, 0].tolist() == waves.vector[26, 1].tolist() == values[4]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar instructions of the simulator against references, written from AMD's CDNA3 ISA document."""

import numpy as np
import pytest

from prepass.simulator.errors import Fault
from prepass.simulator.scalar import SCALAR
from prepass.simulator.scalar_operations import OPERATIONS

from .exact_numbers import signed
from .simulator_harness import execute, make_waves, samples, scalar_pair
from .vector_reference import leading_signs, leading_zeros

_W, _D = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


def first_set(bits, width):
    return next((n for n in range(width) if bits >> n & 1), _W)


def nonzero(result):
    return result, int(result != 0)


def add_signed(a, b, minus=False):
    exact = signed(a, 32) + (-signed(b, 32) if minus else signed(b, 32))
    return exact & _W, int(not -(1 << 31) <= exact < 1 << 31)


def chosen(a, b, take_a):
    return (a if take_a else b), int(take_a)


def bit_field(bits, packed, width, is_signed):
    offset, count = packed % width, packed >> 16 & 0x7F
    field = bits >> offset & ((1 << min(count, width - offset)) - 1)
    count = min(count, width - offset)
    return nonzero(signed(field, count) & ((1 << width) - 1) if is_signed and count else field)


def bitwise(compute):
    return {
        32: lambda a, b: nonzero(compute(a, b) & _W),
        64: lambda a, b: nonzero(compute(a, b) & _D),
    }


_BITWISE = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "andn2": lambda a, b: a & ~b,
    "orn2": lambda a, b: a | ~b,
    "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b),
    "xnor": lambda a, b: ~(a ^ b),
}
# name: widths of the result and the sources, and from the sources (and SCC) to the result and SCC; None keeps SCC.
REFERENCE = {
    "s_mov_b32": ((32, 32), lambda a: (a, None)),
    "s_mov_b64": ((64, 64), lambda a: (a, None)),
    "s_not_b32": ((32, 32), lambda a: nonzero(a ^ _W)),
    "s_not_b64": ((64, 64), lambda a: nonzero(a ^ _D)),
    "s_brev_b32": ((32, 32), lambda a: (int(f"{a:032b}"[::-1], 2), None)),
    "s_bcnt1_i32_b32": ((32, 32), lambda a: nonzero(a.bit_count())),
    "s_bcnt1_i32_b64": ((32, 64), lambda a: nonzero(a.bit_count())),
    "s_ff1_i32_b32": ((32, 32), lambda a: (first_set(a, 32), None)),
    "s_ff1_i32_b64": ((32, 64), lambda a: (first_set(a, 64), None)),
    "s_flbit_i32_b32": ((32, 32), lambda a: (leading_zeros(a), None)),
    "s_flbit_i32": ((32, 32), lambda a: (leading_signs(a), None)),
    "s_flbit_i32_b64": ((32, 64), lambda a: (64 - a.bit_length() if a else _W, None)),
    "s_sext_i32_i8": ((32, 32), lambda a: (signed(a, 8) & _W, None)),
    "s_sext_i32_i16": ((32, 32), lambda a: (signed(a, 16) & _W, None)),
    "s_abs_i32": ((32, 32), lambda a: nonzero(abs(signed(a, 32)) & _W)),
    "s_add_u32": ((32, 32, 32), lambda a, b: (a + b & _W, int(a + b > _W))),
    "s_sub_u32": ((32, 32, 32), lambda a, b: (a - b & _W, int(b > a))),
    "s_add_i32": ((32, 32, 32), add_signed),
    "s_sub_i32": ((32, 32, 32), lambda a, b: add_signed(a, b, True)),
    "s_addc_u32": ((32, 32, 32), lambda a, b, scc: (a + b + scc & _W, int(a + b + scc > _W))),
    "s_subb_u32": ((32, 32, 32), lambda a, b, scc: (a - b - scc & _W, int(b + scc > a))),
    "s_mul_i32": ((32, 32, 32), lambda a, b: (a * b & _W, None)),
    "s_mul_hi_u32": ((32, 32, 32), lambda a, b: (a * b >> 32, None)),
    "s_mul_hi_i32": ((32, 32, 32), lambda a, b: (signed(a, 32) * signed(b, 32) >> 32 & _W, None)),
    "s_absdiff_i32": ((32, 32, 32), lambda a, b: nonzero(abs(signed(a - b, 32)) & _W)),
    "s_min_u32": ((32, 32, 32), lambda a, b: chosen(a, b, a <= b)),
    "s_max_u32": ((32, 32, 32), lambda a, b: chosen(a, b, a >= b)),
    "s_min_i32": ((32, 32, 32), lambda a, b: chosen(a, b, signed(a, 32) <= signed(b, 32))),
    "s_max_i32": ((32, 32, 32), lambda a, b: chosen(a, b, signed(a, 32) >= signed(b, 32))),
    **{
        f"s_{name}_b{width}": ((width, width, width), bitwise(compute)[width])
        for name, compute in _BITWISE.items()
        for width in (32, 64)
    },
    "s_lshl_b32": ((32, 32, 32), lambda a, b: nonzero(a << b % 32 & _W)),
    "s_lshl_b64": ((64, 64, 32), lambda a, b: nonzero(a << b % 64 & _D)),
    "s_lshr_b32": ((32, 32, 32), lambda a, b: nonzero(a >> b % 32)),
    "s_lshr_b64": ((64, 64, 32), lambda a, b: nonzero(a >> b % 64)),
    "s_ashr_i32": ((32, 32, 32), lambda a, b: nonzero(signed(a, 32) >> b % 32 & _W)),
    "s_ashr_i64": ((64, 64, 32), lambda a, b: nonzero(signed(a, 64) >> b % 64 & _D)),
    "s_bfe_u32": ((32, 32, 32), lambda a, b: bit_field(a, b, 32, False)),
    "s_bfe_i32": ((32, 32, 32), lambda a, b: bit_field(a, b, 32, True)),
    "s_bfe_u64": ((64, 64, 32), lambda a, b: bit_field(a, b, 64, False)),
    "s_bfe_i64": ((64, 64, 32), lambda a, b: bit_field(a, b, 64, True)),
    "s_bfm_b32": ((32, 32, 32), lambda a, b: (((1 << a % 32) - 1) << b % 32 & _W, None)),
    **{
        f"s_lshl{n}_add_u32": ((32, 32, 32), lambda a, b, n=n: ((a << n) + b & _W, int((a << n) + b > _W)))
        for n in (1, 2, 3, 4)
    },
    "s_pack_ll_b32_b16": ((32, 32, 32), lambda a, b: (a & 0xFFFF | (b & 0xFFFF) << 16, None)),
    "s_pack_lh_b32_b16": ((32, 32, 32), lambda a, b: (a & 0xFFFF | b & 0xFFFF0000, None)),
    "s_pack_hh_b32_b16": ((32, 32, 32), lambda a, b: (a >> 16 | b & 0xFFFF0000, None)),
}


def test_every_operation_has_a_reference():
    assert set(REFERENCE) == set(OPERATIONS)


def operand(register, width):
    return f"s[{register}:{register + 1}]" if width == 64 else f"s{register}"


@pytest.mark.parametrize("name", REFERENCE)
def test_against_reference(name):
    widths, compute = REFERENCE[name]
    random = np.random.default_rng(list(name.encode()))
    sources = [samples(f"u{width}", random) for width in widths[1:]]
    if "bfe" in name:
        sources[1] = [int(random.integers(64)) | int(random.integers(80)) << 16 for _ in range(64)]
    text = f"{name} {operand(0, widths[0])}, " + ", ".join(
        operand(4 + 4 * number, width) for number, width in enumerate(widths[1:])
    )
    for case in range(64):
        bits = [values[case] for values in sources]
        scc = int(random.integers(2))
        registers = {4 + 4 * n + word: b >> 32 * word for n, b in enumerate(bits) for word in (0, 1)}
        waves = execute(text, make_waves(scalar=registers, scc=bool(scc)))
        got = scalar_pair(waves, 0) if widths[0] == 64 else int(waves.scalar[0, 0])
        result, condition = compute(*bits, scc) if name in ("s_addc_u32", "s_subb_u32") else compute(*bits)
        assert (got, int(waves.scc[0])) == (result, scc if condition is None else condition), [hex(b) for b in bits]


_RELATIONS = {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}
_COMPARISONS = [name for name in SCALAR if name.startswith("s_cmp")]


@pytest.mark.parametrize("name", _COMPARISONS)
def test_comparisons(name):
    _, relation, kind = name.removeprefix("s_").split("_")
    random = np.random.default_rng(list(name.encode()))
    for a, b in zip(samples(kind, random), samples(kind, random), strict=True):
        b = a if random.random() < 0.3 else b
        if "cmpk" in name:
            b &= 0xFFFF
            second, wide = hex(b), signed(b, 16) if kind == "i32" else b
        else:
            second, wide = operand(8, int(kind[1:])), signed(b, 32) if kind == "i32" else b
        registers = {4: a, 5: a >> 32, 8: b, 9: b >> 32}
        waves = execute(f"{name} {operand(4, int(kind[1:]))}, {second}", make_waves(scalar=registers))
        first = signed(a, 32) if kind == "i32" else a
        assert bool(waves.scc[0]) == _RELATIONS[relation](first, wide)


@pytest.mark.parametrize("constant", [0, 1, -1, 0x7FFF, -0x8000, 0xFCF0])
@pytest.mark.parametrize("name", ["s_movk_i32", "s_addk_i32", "s_mulk_i32"])
def test_short_constants(name, constant):
    extended = signed(constant, 16)
    for old in (0, 5, 0x7FFFFFFF, 0x80000000, _W):
        waves = execute(f"{name} s4, {constant}", make_waves(scalar={4: old}))
        a = signed(old, 32)
        exact = {"s_movk_i32": extended, "s_addk_i32": a + extended, "s_mulk_i32": a * extended}[name]
        assert int(waves.scalar[4, 0]) == exact & _W
        if name == "s_addk_i32":
            assert bool(waves.scc[0]) == (not -(1 << 31) <= exact < 1 << 31)


_SAVED = {**_BITWISE, "andn1": lambda a, b: ~a & b, "orn1": lambda a, b: ~a | b}


@pytest.mark.parametrize("name", _SAVED)
def test_saving_exec(name):
    source, active = 0xF0F0F0F012345678, 0x00FF00FF00FF00FF
    waves = make_waves(scalar={4: source, 5: source >> 32}, active=active)
    execute(f"s_{name}_saveexec_b64 s[6:7], s[4:5]", waves)
    result = _SAVED[name](source, active) & _D
    assert scalar_pair(waves, 6) == active
    assert scalar_pair(waves, 126) == result
    assert bool(waves.scc[0]) == (result != 0)
    assert [bool(lane) for lane in waves.mask[0]] == [bool(result >> lane & 1) for lane in range(64)]


@pytest.mark.parametrize("scc", [False, True])
def test_selections(scc):
    registers = {4: 11, 5: 12, 6: 13, 7: 14, 8: 15, 9: 16}
    waves = execute("s_cselect_b32 s0, s4, s6", make_waves(scalar=registers, scc=scc))
    assert int(waves.scalar[0, 0]) == (11 if scc else 13)
    waves = execute("s_cselect_b64 s[0:1], s[4:5], s[6:7]", make_waves(scalar=registers, scc=scc))
    assert waves.scalar[:2, 0].tolist() == ([11, 12] if scc else [13, 14])
    waves = execute("s_cmov_b32 s8, s4", make_waves(scalar=registers, scc=scc))
    assert int(waves.scalar[8, 0]) == (11 if scc else 15)
    waves = execute("s_cmov_b64 s[8:9], s[4:5]", make_waves(scalar=registers, scc=scc))
    assert waves.scalar[8:10, 0].tolist() == ([11, 12] if scc else [15, 16])


@pytest.mark.parametrize("bit", [0, 13, 31, 45])
def test_single_bits(bit):
    old = 0x5A5A5A5A
    mask = 1 << bit % 32
    waves = execute("s_bitset0_b32 s0, s4", make_waves(scalar={0: old, 4: bit}))
    assert int(waves.scalar[0, 0]) == old & ~mask
    waves = execute("s_bitset1_b32 s0, s4", make_waves(scalar={0: old, 4: bit}))
    assert int(waves.scalar[0, 0]) == old | mask
    for value in (0, 1):
        waves = execute(f"s_bitcmp{value}_b32 s0, s4", make_waves(scalar={0: old, 4: bit}))
        assert bool(waves.scc[0]) == (bool(old & mask) == bool(value))


@pytest.mark.parametrize(
    "text",
    ["s_nop 3", "s_setprio 1", "s_sleep 1", "s_waitcnt lgkmcnt(0)", "s_icache_inv", "s_dcache_inv", "s_dcache_wb"],
)
def test_without_an_effect(text):
    waves = make_waves(scalar={4: 5})
    before = waves.scalar.copy()
    execute(text, waves)
    assert np.array_equal(before, waves.scalar)


def test_each_wave_has_its_own_values():
    waves = make_waves(scalar={4: 1, 5: 2}, waves=2)
    waves.scalar[4] = [1, _W]
    execute("s_add_u32 s0, s4, s5", waves)
    assert waves.scalar[0].tolist() == [3, 1]
    assert waves.scc.tolist() == [False, True]


@pytest.mark.parametrize(
    "text",
    [
        "s_frobnicate_b32 s0, s1",
        "s_mov_b32 s200, s1",
        "s_mov_b32 s0, v1",
        "s_mov_b64 s0, s[2:3]",
        "s_mov_b32 s0, s1 clamp",
        "s_add_u32 s0, s1",
        "s_add_u32 s0, s1, 1.7",
        "s_movk_i32 s0, 0x12345",
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 5",
        "s_setreg_imm32_b32 hwreg(HW_REG_TRAPSTS, 0, 4), 0",
    ],
)
def test_what_is_unknown_is_an_error(text):
    with pytest.raises(Fault):
        execute(text, make_waves())

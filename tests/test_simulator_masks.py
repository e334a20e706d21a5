# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vector instructions of the simulator that read or write masks of lanes, and packed ones."""

import math
from fractions import Fraction

import numpy as np
import pytest

from prepass.simulator.carry import CARRY
from prepass.simulator.compare import COMPARISONS
from prepass.simulator.dot import DOT
from prepass.simulator.packed import PACKED

from .exact_numbers import add, fused, larger, multiply, rounded, signed, size, smaller, value
from .simulator_harness import execute, make_waves, pair, samples, scalar_pair
from .vector_reference import same

_ACTIVE = 0xFFFF7FFF0FFFFFFE
_W = 0xFFFFFFFF


def bits_of(lanes):
    return sum(int(bit) << lane for lane, bit in enumerate(lanes))


def two_words(values):
    return [v & _W for v in values], [v >> 32 for v in values]


# name: (a, b, carry) to the exact result, and whether it takes a carry.
_CARRIES = {
    "v_add_co_u32": (lambda a, b, c: a + b, False),
    "v_sub_co_u32": (lambda a, b, c: a - b, False),
    "v_subrev_co_u32": (lambda a, b, c: b - a, False),
    "v_addc_co_u32": (lambda a, b, c: a + b + c, True),
    "v_subb_co_u32": (lambda a, b, c: a - b - c, True),
    "v_subbrev_co_u32": (lambda a, b, c: b - a - c, True),
}
_OTHERS = {"v_cndmask_b32", "v_mad_u64_u32", "v_mad_i64_i32", "v_div_scale_f32", "v_div_fmas_f32", "v_swap_b32"}


def test_every_instruction_is_tested():
    assert set(CARRY) == {*_CARRIES, *_OTHERS}


@pytest.mark.parametrize("name", _CARRIES)
def test_carries(name):
    compute, takes = _CARRIES[name]
    random = np.random.default_rng(1)
    a, b, old = (samples("u32", random) for _ in range(3))
    carry = 0x123456789ABCDEF0
    text = f"{name} v0, s[4:5], v4, v8" + (", s[6:7]" if takes else "")
    waves = make_waves({0: old, 4: a, 8: b}, {6: carry & _W, 7: carry >> 32}, active=_ACTIVE)
    execute(text, waves)
    exact = [compute(x, y, carry >> lane & 1) for lane, (x, y) in enumerate(zip(a, b, strict=True))]
    for lane, number in enumerate(exact):
        assert int(waves.vector[0, 0, lane]) == (number & _W if _ACTIVE >> lane & 1 else old[lane])
    assert scalar_pair(waves, 4) == bits_of(not 0 <= n <= _W for n in exact) & _ACTIVE


def test_selection():
    random = np.random.default_rng(2)
    a, b = samples("u32", random), samples("u32", random)
    vcc = 0xF0F0123456789ABC
    waves = execute("v_cndmask_b32_e32 v0, v4, v8, vcc", make_waves({4: a, 8: b}, vcc=vcc))
    assert waves.vector[0, 0].tolist() == [b[lane] if vcc >> lane & 1 else a[lane] for lane in range(64)]
    waves = execute("v_cndmask_b32_e64 v0, -|v4|, 1, vcc", make_waves({4: a}, vcc=vcc))
    assert waves.vector[0, 0].tolist() == [1 if vcc >> lane & 1 else a[lane] | 1 << 31 for lane in range(64)]


def test_swap():
    random = np.random.default_rng(3)
    a, b = samples("u32", random), samples("u32", random)
    waves = execute("v_swap_b32 v4, v8", make_waves({4: a, 8: b}, active=_ACTIVE))
    for lane in range(64):
        wanted = (b[lane], a[lane]) if _ACTIVE >> lane & 1 else (a[lane], b[lane])
        assert (waves.vector[4, 0, lane], waves.vector[8, 0, lane]) == wanted


@pytest.mark.parametrize("kind", ["u", "i"])
def test_wide_multiply_add(kind):
    random = np.random.default_rng(4)
    a, b, c = samples("u32", random), samples("u32", random), samples("u64", random)
    low, high = two_words(c)
    name = "v_mad_u64_u32" if kind == "u" else "v_mad_i64_i32"
    waves = execute(f"{name} v[0:1], s[4:5], v4, v8, v[12:13]", make_waves({4: a, 8: b, 12: low, 13: high}))
    overflow = []
    for lane in range(64):
        convert = (lambda x, width: x) if kind == "u" else signed
        exact = convert(a[lane], 32) * convert(b[lane], 32) + convert(c[lane], 64)
        assert pair(waves, 0, lane) == exact & (1 << 64) - 1
        overflow.append(exact >> 64 != 0 if kind == "u" else not -(1 << 63) <= exact < 1 << 63)
    assert scalar_pair(waves, 4) == bits_of(overflow)


# The division that compilers build from these instructions: S0 / S1 in f32, rounded right.
_DIVISION = """\
v_div_scale_f32 v20, s[4:5], v8, v8, v4
v_rcp_f32 v21, v20
v_div_scale_f32 v22, vcc, v4, v8, v4
v_fma_f32 v23, -v20, v21, 1.0
v_fmac_f32 v21, v23, v21
v_mul_f32 v23, v22, v21
v_fma_f32 v24, -v20, v23, v22
v_fmac_f32 v23, v24, v21
v_fma_f32 v20, -v20, v23, v22
v_div_fmas_f32 v20, v20, v21, v23
v_div_fixup_f32 v0, v20, v8, v4
"""


@pytest.mark.parametrize("seed", range(8))
def test_division_is_rounded_right(seed):
    random = np.random.default_rng(seed)
    a, b = samples("f32", random), samples("f32", random)
    waves = execute(_DIVISION, make_waves({4: a, 8: b}))
    for lane in range(64):
        x, y = value(a[lane], "f32"), value(b[lane], "f32")
        got = int(waves.vector[0, 0, lane])
        assert same(got, divide(x, y), "f32", 0), (hex(a[lane]), hex(b[lane]), hex(got), hex(divide(x, y)))


def divide(x, y):
    if math.isfinite(x) and math.isfinite(y) and y != 0:
        return rounded(Fraction(x) / Fraction(y), "f32", math.copysign(1, x) * math.copysign(1, y) < 0)
    if math.isnan(x) or math.isnan(y) or (x == 0 and y == 0) or (math.isinf(x) and math.isinf(y)):
        return rounded(math.nan, "f32")
    sign = math.copysign(1, x) * math.copysign(1, y)
    return rounded(math.copysign(0.0 if math.isinf(y) else math.inf, sign), "f32")


def relation(name, a, b):
    """What the names of comparisons mean; `n` at the front says not, and NaN is not even equal to itself."""
    unordered = math.isnan(a) or math.isnan(b)
    plain = {
        "f": False, "lt": a < b, "eq": a == b, "le": a <= b, "gt": a > b, "ge": a >= b, "lg": a < b or a > b,
        "ne": a != b, "o": not unordered, "u": unordered, "t": True, "tru": True,
    }  # fmt: skip
    return plain[name] if name in plain else not plain[name[1:]]


def in_class(bits, kind, wanted):
    """The ten classes: of NaN, then from -infinity to infinity."""
    fraction = {"f16": 10, "f32": 23, "f64": 52}[kind]
    x = value(bits, kind)
    if math.isnan(x):
        number = 1 if bits >> (fraction - 1) & 1 else 0
    else:
        exponent = bits >> fraction & ((1 << size(kind) - 1 - fraction) - 1)
        rank = 3 if math.isinf(x) else 2 if exponent else 1 if x else 0
        number = 5 - rank if bits >> (size(kind) - 1) else 6 + rank
    return wanted >> number & 1


@pytest.mark.parametrize("name", [name for name in COMPARISONS if "class" not in name])
def test_comparisons(name):
    kind = name[-3:]
    random = np.random.default_rng(list(name.encode()))
    a, b = samples(kind, random), samples(kind, random)
    b = [x if random.random() < 0.3 else y for x, y in zip(a, b, strict=True)]
    registers = dict(zip((4, 5, 8, 9), (*two_words(a), *two_words(b)), strict=True))
    waves = make_waves(registers, active=_ACTIVE)
    operands = "v[4:5], v[8:9]" if size(kind) == 64 else "v4, v8"
    execute(f"{name}_e64 s[4:5], {operands}", waves)
    convert = {"f": value, "i": lambda x, k: signed(x, size(k)), "u": lambda x, k: x}[kind[0]]
    numbers = [(convert(x, kind), convert(y, kind)) for x, y in zip(a, b, strict=True)]
    wanted = bits_of(relation(name.split("_")[2], x, y) for x, y in numbers) & _ACTIVE
    assert scalar_pair(waves, 4) == wanted
    assert scalar_pair(waves, 126) == (wanted if name.startswith("v_cmpx") else _ACTIVE)


@pytest.mark.parametrize("name", [name for name in COMPARISONS if "class" in name])
def test_classes(name):
    kind = name[-3:]
    random = np.random.default_rng(7)
    a, b = samples(kind, random), [int(random.integers(1024)) for _ in range(64)]
    low, high = two_words(a)
    waves = make_waves({4: low, 5: high, 8: b})
    execute(f"{name}_e64 s[4:5], {'v[4:5]' if kind == 'f64' else 'v4'}, v8", waves)
    assert scalar_pair(waves, 4) == bits_of(in_class(x, kind, y) for x, y in zip(a, b, strict=True))


def half(compute, kind):
    return lambda *bits: compute(*[value(b, kind) for b in bits])


def integer(compute, is_signed=False):
    convert = (lambda x: signed(x, 16)) if is_signed else (lambda x: x)
    return lambda *bits: compute(*map(convert, bits)) & 0xFFFF


_PACKED = {
    "v_pk_add_f16": half(lambda a, b: add(a, b, "f16"), "f16"),
    "v_pk_mul_f16": half(lambda a, b: multiply(a, b, "f16"), "f16"),
    "v_pk_fma_f16": half(lambda a, b, c: fused(a, b, c, "f16"), "f16"),
    "v_pk_min_f16": half(lambda a, b: rounded(smaller(a, b), "f16"), "f16"),
    "v_pk_max_f16": half(lambda a, b: rounded(larger(a, b), "f16"), "f16"),
    "v_pk_add_f32": half(lambda a, b: add(a, b, "f32"), "f32"),
    "v_pk_mul_f32": half(lambda a, b: multiply(a, b, "f32"), "f32"),
    "v_pk_fma_f32": half(lambda a, b, c: fused(a, b, c, "f32"), "f32"),
    **{f"v_pk_add_{kind}": integer(lambda a, b: a + b) for kind in ("u16", "i16")},
    **{f"v_pk_sub_{kind}": integer(lambda a, b: a - b) for kind in ("u16", "i16")},
    **{f"v_pk_mad_{kind}": integer(lambda a, b, c: a * b + c) for kind in ("u16", "i16")},
    "v_pk_mul_lo_u16": integer(lambda a, b: a * b),
    **{f"v_pk_min_{kind}": integer(min, kind == "i16") for kind in ("u16", "i16")},
    **{f"v_pk_max_{kind}": integer(max, kind == "i16") for kind in ("u16", "i16")},
    "v_pk_lshlrev_b16": integer(lambda a, b: b << a % 16),
    "v_pk_lshrrev_b16": integer(lambda a, b: b >> a % 16),
    "v_pk_ashrrev_i16": integer(lambda a, b: b >> (a % 16), True),
}


def test_every_packed_instruction_is_tested():
    assert set(PACKED) == {*_PACKED, "v_pk_mov_b32"}


_HALVES = ("", "op_sel:[1,0] op_sel_hi:[0,1]", "op_sel_hi:[0,0]", "neg_lo:[1,0] neg_hi:[0,1]")


# Integers are not negated.
@pytest.mark.parametrize(
    ("name", "halves"),
    [(name, halves) for name in _PACKED for halves in _HALVES if "_f" in name or "neg" not in halves],
)
def test_packed(name, halves):
    wide, real = name.endswith("f32"), "_f" in name
    count = 3 if "fma" in name or "mad" in name else 2
    kind = name[-3:] if real else "u16"
    random = np.random.default_rng(list((name + halves).encode()))
    sources = [(samples(kind, random), samples(kind, random)) for _ in range(count)]
    registers = {}
    for number, (low, high) in enumerate(sources):
        at = 4 + 4 * number
        if wide:
            registers[at], registers[at + 1] = low, high
        else:
            registers[at] = [x | y << 16 for x, y in zip(low, high, strict=True)]
    # A third source keeps the defaults.
    written = halves.replace("]", ",0]") if count == 3 and halves else halves
    if count == 3 and halves.startswith("op_sel"):
        written = written.replace("op_sel_hi:[0,1,0]", "op_sel_hi:[0,1,1]").replace(
            "op_sel_hi:[0,0,0]", "op_sel_hi:[0,0,1]"
        )
    names = [f"v[{4 + 4 * n}:{5 + 4 * n}]" if wide else f"v{4 + 4 * n}" for n in range(count)]
    waves = execute(f"{name} {'v[0:1]' if wide else 'v0'}, {', '.join(names)} {written}", make_waves(registers))
    low_halves = [1, 0, 0] if "op_sel:[1" in halves else [0, 0, 0]
    high_halves = [0, 0, 1] if halves == "op_sel_hi:[0,0]" else [0, 1, 1] if "op_sel:[1" in halves else [1, 1, 1]
    sign = 1 << (size(kind) - 1)
    for lane in range(64):
        for position, chosen in ((0, low_halves), (1, high_halves)):
            bits = [source[which][lane] for source, which in zip(sources, chosen, strict=False)]
            if "neg" in halves:
                bits[position] ^= sign
            wanted = _PACKED[name](*bits)
            got = (
                int(waves.vector[position, 0, lane])
                if wide
                else int(waves.vector[0, 0, lane]) >> 16 * position & 0xFFFF
            )
            assert same(got, wanted, kind, 0), (position, [hex(b) for b in bits], hex(got), hex(wanted))


def test_packed_move():
    random = np.random.default_rng(9)
    registers = {number: samples("u32", random) for number in (4, 5, 8, 9)}
    waves = execute("v_pk_mov_b32 v[0:1], v[4:5], v[8:9] op_sel:[1,0]", make_waves(registers))
    assert waves.vector[0, 0].tolist() == registers[5]
    assert waves.vector[1, 0].tolist() == registers[8]
    waves = execute("v_pk_mov_b32 v[0:1], v[4:5], v[8:9] op_sel:[0,1]", make_waves(registers))
    assert waves.vector[0, 0].tolist() == registers[4]
    assert waves.vector[1, 0].tolist() == registers[9]


@pytest.mark.parametrize("halves", _HALVES)
def test_dot_product(halves):
    random = np.random.default_rng(len(halves))
    # Numbers of one magnitude, whose products and sums float64 holds.
    pairs = [random.standard_normal((2, 64)).astype(np.float16) for _ in range(2)]
    start = random.standard_normal(64).astype(np.float32)
    registers = {
        4 + 4 * at: [int(x) | int(y) << 16 for x, y in zip(*pair.view(np.uint16), strict=True)]
        for at, pair in enumerate(pairs)
    }
    registers[12] = start.view(np.uint32).tolist()
    written = (
        halves.replace("op_sel_hi:[0,0]", "op_sel_hi:[0,0,1]").replace("[0,1]", "[0,1,1]").replace("[1,0]", "[1,0,0]")
    )
    written = written.replace("neg_hi:[0,1,1]", "neg_hi:[0,1,0]")
    waves = execute(f"v_dot2_f32_f16 v0, v4, v8, v12 {written}", make_waves(registers))
    low = [1, 0] if "op_sel:[1" in halves else [0, 0]
    high = [0, 0] if halves == "op_sel_hi:[0,0]" else [0, 1] if "op_sel:[1" in halves else [1, 1]
    a, b = (pair.astype(np.float64) for pair in pairs)
    first, second = a[low[0]] * b[low[1]], a[high[0]] * b[high[1]]
    wanted = -first - second if "neg" in halves else first + second
    assert (waves.vector[0, 0].view(np.float32) == (wanted + start).astype(np.float32)).all()


def test_every_dot_product_is_tested():
    assert set(DOT) == {"v_dot2_f32_f16", "v_dot2c_f32_f16"}


def test_dot_product_added_to_the_result():
    half, two, ten = 0x3800, 0x4000, 0x41200000
    waves = execute("v_dot2c_f32_f16_e32 v0, 0x3c003800, v4", make_waves({0: [ten] * 64, 4: [half << 16 | two] * 64}))
    assert (waves.vector[0, 0].view(np.float32) == 0.5 * 2 + 1 * 0.5 + 10).all()


def test_dot_product_flushes_what_is_denormal():
    waves = execute("v_dot2_f32_f16 v0, 0, v4, v5", make_waves({4: [0] * 64, 5: [0x007FFFFF] * 64}))
    assert (waves.vector[0, 0] == 0).all()

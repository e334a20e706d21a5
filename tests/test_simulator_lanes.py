# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Movement between lanes, and matrix instructions, against the layouts of AMD's documents."""

import numpy as np
import pytest

from prepass.simulator.cross_lane import CROSS_LANE
from prepass.simulator.errors import Fault
from prepass.simulator.mfma import MFMA

from .simulator_harness import ALL_LANES, execute, make_waves, samples

_ACTIVE = 0xFFFF7FFF0FFFFFFE
_W = 0xFFFFFFFF
_IDS = [1000 + lane for lane in range(64)]


def row(lane, position):
    """A lane of the same row of 16; None when the position is outside of it."""
    return lane // 16 * 16 + position if 0 <= position < 16 else None


# For each control, the lane that a lane reads; None when there is none.
_DPP = {
    "quad_perm:[1,0,3,2]": lambda n: n ^ 1,
    "quad_perm:[3,3,0,1]": lambda n: n // 4 * 4 + (3, 3, 0, 1)[n % 4],
    "row_shl:1": lambda n: row(n, n % 16 + 1),
    "row_shl:5": lambda n: row(n, n % 16 + 5),
    "row_shr:1": lambda n: row(n, n % 16 - 1),
    "row_shr:8": lambda n: row(n, n % 16 - 8),
    "row_ror:3": lambda n: row(n, (n % 16 - 3) % 16),
    "wave_shl:1": lambda n: n + 1 if n < 63 else None,
    "wave_rol:1": lambda n: (n + 1) % 64,
    "wave_shr:1": lambda n: n - 1 if n else None,
    "wave_ror:1": lambda n: (n - 1) % 64,
    "row_mirror": lambda n: row(n, 15 - n % 16),
    "row_half_mirror": lambda n: n // 8 * 8 + 7 - n % 8,
    "row_newbcast:5": lambda n: row(n, 5),
    "row_bcast:15": lambda n: n // 16 * 16 - 1 if n >= 16 else None,
    "row_bcast:31": lambda n: 31 if n > 31 else None,
}


@pytest.mark.parametrize("active", [ALL_LANES, _ACTIVE])
@pytest.mark.parametrize("rest", ["", "bound_ctrl:1", "row_mask:0xa bank_mask:0x7"])
@pytest.mark.parametrize("control", _DPP)
def test_dpp(control, rest, active):
    old = samples("u32", np.random.default_rng(1))
    waves = make_waves({0: old, 4: _IDS, 8: [5] * 64}, active=active)
    execute(f"v_add_u32_dpp v0, v4, v8 {control} {rest}", waves)
    for lane in range(64):
        source = _DPP[control](lane)
        valid = source is not None and active >> source & 1
        masked = "row_mask" in rest and not (0xA >> lane // 16 & 1 and 0x7 >> lane % 16 // 4 & 1)
        if not active >> lane & 1 or masked or (not valid and "bound_ctrl" not in rest):
            wanted = old[lane]
        else:
            wanted = (_IDS[source] if valid else 0) + 5
        assert int(waves.vector[0, 0, lane]) == wanted, lane


@pytest.mark.parametrize("control", ["", "row_shl:16", "row_bcast:16", "quad_perm:[1,0,3]", "row_shl:1 row_mirror"])
def test_unknown_dpp(control):
    with pytest.raises(Fault):
        execute(f"v_mov_b32_dpp v0, v4 {control}", make_waves())


_SWIZZLES = {
    "swizzle(SWAP,16)": lambda n: n ^ 16,
    "swizzle(SWAP,1)": lambda n: n ^ 1,
    "swizzle(REVERSE,8)": lambda n: n // 8 * 8 + 7 - n % 8,
    "swizzle(BROADCAST,4,2)": lambda n: n // 4 * 4 + 2,
    "swizzle(QUAD_PERM,3,1,2,0)": lambda n: n // 4 * 4 + (3, 1, 2, 0)[n % 4],
    'swizzle(BITMASK_PERM,"01pip")': lambda n: n // 32 * 32 + (8 | n & 5 | (n & 2 ^ 2)),
    # XOR mask 3, OR mask 4, AND mask 0x1b.
    hex(3 << 10 | 4 << 5 | 0x1B): lambda n: n // 32 * 32 + ((n % 32 & 0x1B | 4) ^ 3),
    hex(0x8000 | 0b01_00_11_10): lambda n: n // 4 * 4 + (2, 3, 0, 1)[n % 4],
}


@pytest.mark.parametrize("active", [ALL_LANES, _ACTIVE])
@pytest.mark.parametrize("offset", _SWIZZLES)
def test_swizzle(offset, active):
    waves = execute(f"ds_swizzle_b32 v0, v4 offset:{offset}", make_waves({0: [7] * 64, 4: _IDS}, active=active))
    for lane in range(64):
        source = _SWIZZLES[offset](lane)
        read = _IDS[source] if active >> source & 1 else 0
        assert int(waves.vector[0, 0, lane]) == (read if active >> lane & 1 else 7)


def test_permutes():
    random = np.random.default_rng(2)
    lanes = random.permutation(64)
    registers = {0: [7] * 64, 4: [int(lane) * 4 for lane in lanes], 8: _IDS}
    waves = execute("ds_bpermute_b32 v0, v4, v8", make_waves(registers))
    assert waves.vector[0, 0].tolist() == [_IDS[lane] for lane in lanes]
    waves = execute("ds_bpermute_b32 v0, v4, v8 offset:8", make_waves(registers, active=_ACTIVE))
    for lane in range(64):
        source = (int(lanes[lane]) + 2) % 64
        wanted = _IDS[source] if _ACTIVE >> source & 1 else 0
        assert int(waves.vector[0, 0, lane]) == (wanted if _ACTIVE >> lane & 1 else 7)
    waves = execute("ds_permute_b32 v0, v4, v8", make_waves(registers))
    assert [int(waves.vector[0, 0, lanes[n]]) for n in range(64)] == _IDS


def test_reading_and_writing_lanes():
    waves = make_waves({4: _IDS}, {5: 17, 6: 70}, active=_ACTIVE)
    text = "v_readfirstlane_b32 s0, v4\nv_readlane_b32 s1, v4, s5\nv_readlane_b32 s2, v4, 63\nv_readlane_b32 s3, v4, s6"
    execute(text, waves)
    assert waves.scalar[:4, 0].tolist() == [1001, 1017, 1063, 1006]
    # EXEC has no influence on writing one lane.
    execute("v_writelane_b32 v4, s5, 0\nv_writelane_b32 v4, 9, s5", waves)
    assert waves.vector[4, 0, 0] == 17
    assert waves.vector[4, 0, 17] == 9
    assert waves.vector[4, 0, 1] == 1001
    waves = execute("v_readfirstlane_b32 s0, v4", make_waves({4: _IDS}, active=0))
    assert waves.scalar[0, 0] == 1000


def test_counting_bits_before_a_lane():
    mask = 0xF0F0123456789ABC
    waves = make_waves(scalar={4: mask & _W, 5: mask >> 32})
    execute("v_mbcnt_lo_u32_b32 v0, s4, 0\nv_mbcnt_hi_u32_b32 v1, s5, v0", waves)
    for lane in range(64):
        assert int(waves.vector[1, 0, lane]) == (mask & ((1 << lane) - 1)).bit_count()


def test_every_instruction_between_lanes_is_tested():
    tested = {"v_readfirstlane_b32", "v_readlane_b32", "v_writelane_b32", "v_mbcnt_lo_u32_b32", "v_mbcnt_hi_u32_b32"}
    assert set(CROSS_LANE) == tested | {"ds_swizzle_b32", "ds_bpermute_b32", "ds_permute_b32"}


# Matrix instructions: size, k, and the type of A and B.
_MATRICES = {
    "v_mfma_f32_32x32x8_f16": (32, 8, "f16"),
    "v_mfma_f32_16x16x16_f16": (16, 16, "f16"),
    "v_mfma_f32_32x32x8_bf16": (32, 8, "bf16"),
    "v_mfma_f32_16x16x16_bf16": (16, 16, "bf16"),
    "v_mfma_f32_32x32x2_f32": (32, 2, "f32"),
    "v_mfma_f32_16x16x4_f32": (16, 4, "f32"),
    "v_mfma_i32_32x32x16_i8": (32, 16, "i8"),
    "v_mfma_i32_16x16x32_i8": (16, 32, "i8"),
}
_BYTES = {"f16": 2, "bf16": 2, "f32": 4, "i8": 1}


def test_every_matrix_instruction_is_tested():
    assert set(MFMA) == set(_MATRICES)


def encode(number, kind):
    if kind == "bf16":
        return int(np.float32(number).view(np.uint32)) >> 16
    return int(np.array(number, {"f16": "f2", "f32": "f4", "i8": "i1"}[kind]).view(f"u{_BYTES[kind]}"))


def place(matrix, size, k, kind):
    """Registers of A: lane `row + size · (k div per_lane)` has element `k mod per_lane` of its row, packed in order."""
    per_lane = size * k // 64
    registers = np.zeros((per_lane * _BYTES[kind] // 4, 64), np.uint32)
    for i in range(size):
        for j in range(k):
            lane, element = i + size * (j // per_lane), j % per_lane
            byte = element * _BYTES[kind]
            registers[byte // 4, lane] |= encode(matrix[i, j], kind) << 8 * (byte % 4)
    return registers


def result_place(i, j, size):
    """The register and lane of an element of D: register r of a 32x32 result has row 8·(r/4) + 4·(lane/32) + r%4."""
    if size == 32:
        return 4 * (i // 8) + i % 4, 32 * (i // 4 % 2) + j
    return i % 4, 16 * (i // 4) + j


@pytest.mark.parametrize("form", ["registers", "accumulators", "constant"])
@pytest.mark.parametrize("name", _MATRICES)
def test_matrix_instructions(name, form):
    size, k, kind = _MATRICES[name]
    random = np.random.default_rng(list(name.encode()))
    # Small whole numbers: every sum is exact.
    a, b = random.integers(-8, 9, (size, k)), random.integers(-8, 9, (k, size))
    c = random.integers(-100, 101, (size, size))
    left, right = place(a, size, k, kind), place(b.T, size, k, kind)
    number = np.int32 if kind == "i8" else np.float32
    count = size * size // 64
    registers = {20 + n: values for n, values in enumerate(left)} | {28 + n: v for n, v in enumerate(right)}
    at = {"registers": 0, "accumulators": 48, "constant": 0}[form]
    held = np.zeros((count, 64), number)
    for i in range(size):
        for j in range(size):
            held[result_place(i, j, size)] = c[i, j]
    registers |= {at + n: values.view(np.uint32) for n, values in enumerate(held)}
    waves = make_waves(registers, active=_ACTIVE)
    name_of = "a" if form == "accumulators" else "v"
    result = f"{name_of}[0:{count - 1}]"
    sources = f"{span(20, len(left))}, {span(28, len(right))}"
    addend = "0" if form == "constant" else result
    execute(f"{name} {result}, {sources}, {addend}", waves)
    product = a @ b + (0 if form == "constant" else c)
    for i in range(size):
        for j in range(size):
            register, lane = result_place(i, j, size)
            # EXEC has no influence.
            assert waves.vector[at + register, 0, lane].view(number) == product[i, j]


def span(first, count):
    return f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"


def test_matrix_sums_are_rounded_once():
    a, b = np.zeros((16, 4)), np.zeros((16, 4))
    a[0], b[0] = [2**24, 1, 1, -(2**24)], [1, 1, 1, 1]
    registers = {20: place(a, 16, 4, "f32")[0], 21: place(b, 16, 4, "f32")[0]}
    waves = execute("v_mfma_f32_16x16x4_f32 v[0:3], v20, v21, 1.0", make_waves(registers))
    assert waves.vector[0, 0, 0].view(np.float32) == 3.0


@pytest.mark.parametrize(
    "text",
    [
        "v_mfma_f32_16x16x4_f32 v[0:2], v20, v21, 0",
        "v_mfma_f32_16x16x4_f32 v[0:3], v[20:21], v21, 0",
        "v_mfma_f32_16x16x4_f32 v[46:49], v20, v21, 0",
        "v_mfma_f32_16x16x4_f32 v[0:3], v20, v21, 0 cbsz:1",
        "v_mfma_f32_16x16x5_f32 v[0:3], v20, v21, 0",
        "v_mfma_f32_16x16x4_f32 v[0:3], s20, v21, 0",
    ],
)
def test_wrong_matrix_instructions(text):
    with pytest.raises(Fault):
        execute(text, make_waves())

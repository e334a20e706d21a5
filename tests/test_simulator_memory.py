# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads and stores of the simulator, byte by byte."""

import numpy as np
import pytest

from prepass.simulator.errors import Fault
from prepass.simulator.global_memory import GLOBAL_MEMORY
from prepass.simulator.local_memory import LOCAL_MEMORY
from prepass.simulator.scratch import SCRATCH

from .simulator_harness import execute, make_waves, samples

_ACTIVE = 0xFFFF7FFF0FFFFFFE
_SIZE = 4096
# Loads: bytes, whether the sign is extended, and which half of the register is filled.
LOADS = {
    "ubyte": (1, False, None), "sbyte": (1, True, None), "ushort": (2, False, None), "sshort": (2, True, None),
    "ubyte_d16": (1, False, 0), "ubyte_d16_hi": (1, False, 1), "sbyte_d16": (1, True, 0), "sbyte_d16_hi": (1, True, 1),
    "short_d16": (2, False, 0), "short_d16_hi": (2, False, 1),
    "dword": (4, False, None), "dwordx2": (8, False, None), "dwordx3": (12, False, None), "dwordx4": (16, False, None),
}  # fmt: skip
# Stores: bytes, and the byte of the register where they start.
STORES = {
    "byte": (1, 0), "byte_d16_hi": (1, 2), "short": (2, 0), "short_d16_hi": (2, 2),
    "dword": (4, 0), "dwordx2": (8, 0), "dwordx3": (12, 0), "dwordx4": (16, 0),
}  # fmt: skip
_LOCAL_LOADS = {
    "u8": "ubyte", "i8": "sbyte", "u16": "ushort", "i16": "sshort", "u8_d16": "ubyte_d16", "u8_d16_hi": "ubyte_d16_hi",
    "i8_d16": "sbyte_d16", "i8_d16_hi": "sbyte_d16_hi", "u16_d16": "short_d16", "u16_d16_hi": "short_d16_hi",
    "b32": "dword", "b64": "dwordx2", "b96": "dwordx3", "b128": "dwordx4",
}  # fmt: skip
_LOCAL_STORES = {
    "b8": "byte", "b8_d16_hi": "byte_d16_hi", "b16": "short", "b16_d16_hi": "short_d16_hi",
    "b32": "dword", "b64": "dwordx2", "b96": "dwordx3", "b128": "dwordx4",
}  # fmt: skip
_WIDTHS = {"dword": 1, "dwordx2": 2, "dwordx3": 3, "dwordx4": 4, "dwordx8": 8, "dwordx16": 16}


def test_every_access_is_tested():
    assert set(GLOBAL_MEMORY) == {
        *(f"{space}_load_{name}" for space in ("buffer", "global") for name in LOADS),
        *(f"{space}_store_{name}" for space in ("buffer", "global") for name in STORES),
        *(f"s_{kind}load_{name}" for kind in ("", "buffer_") for name in _WIDTHS),
        "buffer_wbl2",
        "buffer_inv",
    }
    doubles = [f"{two}_{kind}" for two in ("2", "2st64") for kind in ("b32", "b64")]
    assert set(LOCAL_MEMORY) == {
        *(f"ds_read_{name}" for name in _LOCAL_LOADS),
        *(f"ds_write_{name}" for name in _LOCAL_STORES),
        *(f"ds_{access}{double}" for access in ("read", "write") for double in doubles),
    }
    assert set(SCRATCH) == {f"scratch_{access}_{name}" for access in ("load", "store") for name in list(_WIDTHS)[:4]}


def registers_of(size):
    count = max(size // 4, 1)
    return f"v[12:{11 + count}]" if count > 1 else "v12"


def words_after_load(contents, start, size, signed, half, old):
    """The registers that a load fills, from bytes; `old` is what was in the first."""
    raw = bytes(contents[start : start + size])
    if size >= 4:
        return [int.from_bytes(raw[at : at + 4], "little") for at in range(0, size, 4)]
    number = int.from_bytes(raw, "little", signed=signed)
    if half is None:
        return [number & 0xFFFFFFFF]
    number &= 0xFFFF
    return [old & 0xFFFF | number << 16 if half else old & 0xFFFF0000 | number]


def global_waves(random, active=_ACTIVE, records=_SIZE):
    """A buffer of random bytes, its address in v[4:5] and s[4:5], a descriptor of it in s[8:11]."""
    waves = make_waves({12 + n: samples("u32", random) for n in range(4)}, active=active)
    contents = random.integers(0, 256, _SIZE).astype(np.uint8)
    address = waves.memory.allocate_bytes(contents)
    waves.scalar[4], waves.scalar[5] = address & 0xFFFFFFFF, address >> 32
    waves.scalar[8], waves.scalar[9], waves.scalar[10], waves.scalar[11] = (
        address & 0xFFFFFFFF, address >> 32, records, 0x27000,
    )  # fmt: skip
    return waves, contents, address


# How an address is written, what stands in v4 and s6, and the bytes that it adds to a lane's offset.
FORMS = {
    "buffer offen": ("v4, s[8:11], 0 offen offset:{}", 24),
    "buffer offen and scalar": ("v4, s[8:11], s6 offen offset:{}", 24 + 64),
    "buffer": ("off, s[8:11], s6 offset:{}", 24 + 64),
    "global with base": ("v4, s[4:5] offset:{}", 24),
    "global": ("v[4:5], off offset:{}", 24),
}


def place_addresses(waves, form, offsets, address):
    waves.scalar[6] = 64
    if form == "global":
        waves.vector[4, 0] = [(address + offset) & 0xFFFFFFFF for offset in offsets]
        waves.vector[5, 0] = [(address + offset) >> 32 for offset in offsets]
    else:
        waves.vector[4, 0] = offsets


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", LOADS)
def test_global_loads(name, form):
    size, signed, half = LOADS[name]
    random = np.random.default_rng(list((name + form).encode()))
    waves, contents, address = global_waves(random)
    # Unaligned too: memory is set up to accept that.
    offsets = [int(offset) for offset in random.integers(0, 3000, 64)]
    place_addresses(waves, form, offsets, address)
    old = waves.vector[12:16, 0].copy()
    text, extra = FORMS[form]
    execute(f"{form.split()[0]}_load_{name} {registers_of(size)}, {text.format(24)}", waves)
    for lane in range(64):
        start = extra + (0 if form == "buffer" else offsets[lane])
        wanted = words_after_load(contents, start, size, signed, half, int(old[0, lane]))
        if not _ACTIVE >> lane & 1:
            wanted = old[: len(wanted), lane].tolist()
        assert waves.vector[12 : 12 + len(wanted), 0, lane].tolist() == wanted


@pytest.mark.parametrize("form", [form for form in FORMS if form != "buffer"])
@pytest.mark.parametrize("name", STORES)
def test_global_stores(name, form):
    size, first = STORES[name]
    random = np.random.default_rng(list((name + form).encode()))
    waves, contents, address = global_waves(random)
    offsets = [int(lane) * 37 for lane in random.permutation(64)]
    place_addresses(waves, form, offsets, address)
    text, extra = FORMS[form]
    operands = text.format(24).split(", ", 1)
    text = f"{registers_of(size)}, {text.format(24)}"
    if form.startswith("global"):
        text = f"{operands[0]}, {registers_of(size)}, {operands[1]}"
    execute(f"{form.split()[0]}_store_{name} {text}", waves)
    for lane in range(64):
        if _ACTIVE >> lane & 1:
            data = waves.vector[12:16, 0, lane].tobytes()[first : first + size]
            contents[extra + offsets[lane] : extra + offsets[lane] + size] = np.frombuffer(data, np.uint8)
    assert np.array_equal(waves.memory.bytes_at(address, _SIZE), contents)


def test_beyond_the_end_of_a_buffer():
    """Each word by itself reads as zero and is not written; the sum of the offsets in a lane wraps at 32 bits."""
    waves, contents, address = global_waves(np.random.default_rng(5), active=(1 << 64) - 1, records=100)
    offsets = [0, 84, 88, 92, 96, 97, 100, 2**31, 2**32 - 8, 2**32 - 4] + [0] * 54
    waves.vector[4, 0] = offsets
    execute("buffer_load_dwordx4 v[12:15], v4, s[8:11], 0 offen offset:4", waves)
    for lane, offset in enumerate(offsets):
        start = (offset + 4) % 2**32
        wanted = [
            int.from_bytes(bytes(contents[at : at + 4]), "little") if at + 4 <= 100 else 0
            for at in range(start, start + 16, 4)
        ]
        assert waves.vector[12:16, 0, lane].tolist() == wanted, offset
    waves.vector[12:16] = 0xAAAAAAAA
    execute("buffer_store_dwordx4 v[12:15], v4, s[8:11], 0 offen", waves)
    after = waves.memory.bytes_at(address, _SIZE)
    assert np.array_equal(after[100:], contents[100:])
    assert (after[96:100] == 0xAA).all()


@pytest.mark.parametrize("name", _WIDTHS)
def test_scalar_loads(name):
    waves, contents, _ = global_waves(np.random.default_rng(6))
    count = _WIDTHS[name]
    place = f"s[32:{31 + count}]" if count > 1 else "s32"
    for text in (f"s_load_{name} {place}, s[4:5], 0x20", f"s_buffer_load_{name} {place}, s[8:11], 0x20"):
        execute(text, waves)
        assert waves.scalar[32 : 32 + count, 0].tolist() == contents[32 : 32 + 4 * count].view(np.uint32).tolist()


def test_cache_control_does_nothing():
    execute("buffer_wbl2 sc1\nbuffer_inv sc0 sc1", make_waves())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("global_load_dword v12, v4, s[4:5] offset:4095", "are in no buffer"),
        ("global_load_dword v12, v4, s[4:5] offset:5000", "not between"),
        ("global_store_dword v4, v12, s[4:5] offset:-8", "are in no buffer"),
        ("buffer_load_dword v12, v4, s[8:11], 0 offen offset:4096", "not between"),
        ("buffer_load_dword v12, v4, s[8:11], 0 offen idxen", "idxen"),
        ("buffer_load_dword v12, v4, s[8:11], 0", "does not go with"),
        ("buffer_load_dwordx4 v[12:14], v4, s[8:11], 0 offen", "expected 4 vector"),
        ("s_load_dword s0, s[4:5], 0x22", "not aligned"),
        ("s_buffer_load_dword s0, s[8:11], 0x1000", "beyond the end"),
        ("global_atomic_add v4, v12, s[4:5]", "unknown instruction"),
        ("flat_load_dword v12, v[4:5]", "unknown instruction"),
    ],
)
def test_wrong_accesses(text, message):
    waves, _, _ = global_waves(np.random.default_rng(7))
    waves.vector[4] = 8 if "store" not in text else 0
    with pytest.raises(Fault, match=message):
        execute(text, waves)


def test_an_access_across_two_buffers_is_an_error():
    waves, _, address = global_waves(np.random.default_rng(8))
    other = waves.memory.allocate(64)
    waves.vector[4, 0], waves.vector[5, 0] = address & 0xFFFFFFFF, address >> 32
    waves.vector[4, 0, 40:] = other & 0xFFFFFFFF
    execute("global_load_dword v12, v[4:5], off", waves)
    waves.vector[4, 0, 41] = (other & 0xFFFFFFFF) + 64
    with pytest.raises(Fault, match="are in no buffer"):
        execute("global_load_dword v12, v[4:5], off", waves)


def local_waves(random, size=2048, grain=1, waves=1, active=_ACTIVE):
    """LDS of random bytes, as each wave would have written it before a barrier."""
    result = make_waves({12 + n: samples("u32", random) for n in range(8)}, lds_bytes=size, grain=grain, active=active)
    contents = random.integers(0, 256, size).astype(np.uint8)
    for start in range(0, size, 64):
        addresses = np.arange(start, start + 64)[None]
        result.lds.store(
            result.workgroup[:1], result.wave[:1], addresses, contents[addresses].astype(np.uint32), 1, None
        )
    result.lds.barrier(np.array([0]))
    return result, contents


def local_contents(waves, size=2048):
    return waves.lds._views[1][:size]


@pytest.mark.parametrize("name", _LOCAL_LOADS)
def test_local_loads(name):
    size, signed, half = LOADS[_LOCAL_LOADS[name]]
    random = np.random.default_rng(list(name.encode()))
    waves, contents = local_waves(random)
    step = 8 if size > 4 else size
    offsets = [int(offset) * step for offset in random.integers(0, 1024 // step, 64)]
    waves.vector[4, 0] = offsets
    old = waves.vector[12:20, 0].copy()
    execute(f"ds_read_{name} {registers_of(size)}, v4 offset:48", waves)
    for lane in range(64):
        wanted = words_after_load(contents, 48 + offsets[lane], size, signed, half, int(old[0, lane]))
        if not _ACTIVE >> lane & 1:
            wanted = old[: len(wanted), lane].tolist()
        assert waves.vector[12 : 12 + len(wanted), 0, lane].tolist() == wanted


@pytest.mark.parametrize("name", _LOCAL_STORES)
def test_local_stores(name):
    size, first = STORES[_LOCAL_STORES[name]]
    random = np.random.default_rng(list(name.encode()))
    waves, contents = local_waves(random)
    offsets = [int(lane) * 16 for lane in random.permutation(64)]
    waves.vector[4, 0] = offsets
    execute(f"ds_write_{name} v4, {registers_of(size)} offset:48", waves)
    for lane in range(64):
        if _ACTIVE >> lane & 1:
            data = waves.vector[12:16, 0, lane].tobytes()[first : first + size]
            contents[48 + offsets[lane] : 48 + offsets[lane] + size] = np.frombuffer(data, np.uint8)
    assert np.array_equal(local_contents(waves), contents)


@pytest.mark.parametrize("name", ["2_b32", "2_b64", "2st64_b32", "2st64_b64"])
def test_two_local_accesses(name):
    size = 4 if name.endswith("32") else 8
    unit = size * (64 if "st64" in name else 1)
    random = np.random.default_rng(list(name.encode()))
    waves, contents = local_waves(random)
    offsets = [int(offset) * size for offset in random.integers(0, 512 // size, 64)]
    waves.vector[4, 0] = offsets
    first, second = 3, 2
    data = "v[12:13]" if size == 4 else "v[12:15]"
    execute(f"ds_read{name} {data}, v4 offset0:{first} offset1:{second}", waves)
    for lane in range(64):
        if _ACTIVE >> lane & 1:
            got = waves.vector[12 : 12 + size // 2, 0, lane].tobytes()
            places = [offsets[lane] + unit * number for number in (first, second)]
            assert got == b"".join(bytes(contents[at : at + size]) for at in places)
    waves, contents = local_waves(random)
    waves.vector[4, 0] = [size * 3 * lane for lane in range(64)]
    data = "v12, v13" if size == 4 else "v[12:13], v[14:15]"
    if unit == 512:
        waves.vector[4, 0] = [8 * lane for lane in range(64)]
    execute(f"ds_write{name} v4, {data} offset0:0 offset1:1", waves)
    # One access comes after the other, each in the order of lanes.
    for number in (0, 1):
        for lane in range(64):
            if _ACTIVE >> lane & 1:
                start = int(waves.vector[4, 0, lane]) + number * unit
                raw = waves.vector[12:16, 0, lane].tobytes()[number * size : number * size + size]
                contents[start : start + size] = np.frombuffer(raw, np.uint8)
    assert np.array_equal(local_contents(waves), contents)


def test_an_offset_to_a_negative_local_address():
    waves, contents = local_waves(np.random.default_rng(8), active=(1 << 64) - 1)
    waves.vector[4] = (1 << 32) - 64
    execute("ds_read_b32 v12, v4 offset:80", waves)
    assert (waves.vector[12] == contents[16:20].copy().view(np.uint32)[0]).all()


@pytest.mark.parametrize(
    ("text", "address", "message"),
    [
        ("ds_read_b32 v12, v4", 2048, "of 2048 bytes"),
        ("ds_read_b32 v12, v4 offset:2045", 0, "not aligned|of 2048 bytes"),
        ("ds_read_b32 v12, v4", 2, "not aligned to 4"),
        ("ds_read_b64 v[12:13], v4", 4, "not aligned to 8"),
        ("ds_write_b128 v4, v[12:15]", 4, "not aligned to 8"),
        ("ds_write_b16 v4, v12", 1, "not aligned to 2"),
        ("ds_read_b32 v12, v4 gds", 0, "unknown modifier 'gds'"),
        ("ds_read2_b32 v[12:13], v4 offset0:256", 0, "not between"),
        ("ds_add_u32 v4, v12", 0, "unknown instruction"),
    ],
)
def test_wrong_local_accesses(text, address, message):
    waves, _ = local_waves(np.random.default_rng(9))
    waves.vector[4] = address
    with pytest.raises(Fault, match=message):
        execute(text, waves)


def test_local_memory_that_was_never_written():
    waves = make_waves({4: [4 * lane for lane in range(64)]}, lds_bytes=512, grain=4)
    execute("ds_write_b32 v4, v4", waves)
    execute("ds_read_b32 v12, v4", waves)
    with pytest.raises(Fault, match="never written"):
        execute("ds_read_b32 v12, v4 offset:4", waves)


def two_waves(**options):
    waves = make_waves({4: [4 * lane for lane in range(64)]}, lds_bytes=512, grain=4, waves=2, **options)
    waves.vector[5, 0] = waves.vector[4, 0]
    waves.vector[5, 1] = waves.vector[4, 0] + np.uint32(256)
    # v5: a place of its own for each wave; v6: that of the other wave.
    waves.vector[6] = waves.vector[5, ::-1]
    return waves


def test_a_read_of_what_another_wave_wrote_needs_a_barrier():
    waves = two_waves()
    execute("ds_write_b32 v5, v4\nds_read_b32 v12, v5", waves)
    with pytest.raises(Fault, match="written by wave 1 without a barrier"):
        execute("ds_read_b32 v12, v6", waves)
    waves.lds.barrier(np.array([0]))
    execute("ds_read_b32 v12, v6", waves)


def test_a_write_to_what_another_wave_read_needs_a_barrier():
    waves = two_waves()
    execute("ds_write_b32 v5, v4", waves)
    waves.lds.barrier(np.array([0]))
    execute("ds_read_b32 v12, v6", waves)
    with pytest.raises(Fault, match="read without a barrier"):
        execute("ds_write_b32 v5, v5", waves)
    waves.lds.barrier(np.array([0]))
    execute("ds_write_b32 v5, v5", waves)


def test_two_waves_that_write_to_one_place():
    waves = two_waves()
    waves.vector[7], waves.vector[8] = 5, np.array([[1], [2]])
    execute("ds_write_b32 v4, v7", waves)
    with pytest.raises(Fault, match=r"without a barrier|at once"):
        execute("ds_write_b32 v4, v8", waves)


@pytest.mark.parametrize("name", ["dword", "dwordx2", "dwordx3", "dwordx4"])
def test_scratch(name):
    random = np.random.default_rng(10)
    count = _WIDTHS[name]
    data = f"v[12:{11 + count}]" if count > 1 else "v12"
    back = f"v[20:{19 + count}]" if count > 1 else "v20"
    waves = make_waves({12 + n: samples("u32", random) for n in range(4)}, scratch_words=64, active=_ACTIVE)
    waves.vector[4], waves.scalar[6] = 16 * (np.arange(64) % 4).astype(np.uint32), 32
    text = f"scratch_store_{name} v4, {data}, off offset:8\nscratch_load_{name} {back}, v4, off offset:8"
    execute(text, waves)
    active = waves.mask[0]
    assert np.array_equal(waves.vector[20 : 20 + count, 0, active], waves.vector[12 : 12 + count, 0, active])
    execute(f"scratch_store_{name} off, {data}, s6\nscratch_load_{name} {back}, off, s6", waves)
    assert np.array_equal(waves.vector[20 : 20 + count, 0, active], waves.vector[12 : 12 + count, 0, active])
    assert np.array_equal(waves.scratch[8 : 8 + count, 0, active], waves.vector[12 : 12 + count, 0, active])
    for wrong in ("offset:256", "offset:2", "offset:-4"):
        with pytest.raises(Fault, match="scratch address"):
            execute(f"scratch_load_{name} {back}, off, off {wrong}", waves)

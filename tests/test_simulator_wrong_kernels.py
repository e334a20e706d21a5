# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that are wrong on purpose: good ones of the compiler, edited, and ones written by hand."""

import re
from dataclasses import replace

import numpy as np
import pytest

import prepass
from prepass.checking.numerics import compare
from prepass.simulator import SimulationError, compile_program, run_kernel, run_program

from .conftest import GFX942
from .simulator_kernels import exchange, kernel_text, right_row, tile_product
from .simulator_programs import CASES
from .test_code_object import needs_disassembler


@pytest.fixture(scope="module")
def good():
    """Programs of the stock compiler, compiled once."""
    names = ("matmul_f16", "layer_norm")
    return {case.name: (case, compile_program(case.source)) for case in CASES if case.name in names}


def run_edited(good, name, edit):
    """Whether the edited kernel still gives the right numbers. Raises as the simulator does."""
    case, program = good[name]
    edited = edit(program.assembly[0])
    assert edited != program.assembly[0], "the edit found nothing"
    inputs = case.inputs(np.random.default_rng(7))
    results = run_program(replace(program, assembly=(edited,)), inputs)
    return compare(results, [case.reference(*inputs)]).within(case.tolerance)


def without(pattern, which=0):
    """An edit that takes out one of the lines that match."""

    def edit(text):
        found = list(re.finditer(rf"^\s+{pattern}.*\n", text, re.MULTILINE))
        return text[: found[which].start()] + text[found[which].end() :]

    return edit


def test_each_wait_matters(good):
    waits = re.findall(r"^\s+s_waitcnt .*", good["matmul_f16"][1].assembly[0], re.MULTILINE)
    caught = 0
    for number in range(len(waits)):
        try:
            run_edited(good, "matmul_f16", without("s_waitcnt", number))
        except SimulationError as error:
            assert "waits for line" in str(error)
            caught += 1
    # A wait that stands before a later and stricter one, with no use between them, is not needed.
    assert caught >= 0.9 * len(waits)


def test_a_barrier_that_is_missing(good):
    # The tile is read after the first barrier; after the second the kernel ends.
    with pytest.raises(SimulationError, match=r"without a barrier|never written"):
        run_edited(good, "matmul_f16", without("s_barrier"))
    # Partial sums of the waves stand in local memory.
    with pytest.raises(SimulationError, match=r"without a barrier|never written"):
        run_edited(good, "layer_norm", without("s_barrier", 1))


def test_a_write_to_local_memory_that_is_missing(good):
    with pytest.raises(SimulationError, match="never written"):
        run_edited(good, "matmul_f16", without("ds_write"))


def test_swapped_lanes(good):
    assert not run_edited(good, "layer_norm", lambda text: text.replace("quad_perm:[1,0,3,2]", "quad_perm:[0,1,3,2]"))


def test_swapped_rows_of_the_result(good):
    def edit(text):
        first, second = re.findall(r"buffer_store_dword (v\d+),", text)[:2]
        marked = text.replace(f"buffer_store_dword {first},", "STORE,").replace(
            f"buffer_store_dword {second},", f"buffer_store_dword {first},"
        )
        return marked.replace("STORE,", f"buffer_store_dword {second},")

    assert not run_edited(good, "matmul_f16", edit)


def test_swapped_operands_of_a_matrix_instruction(good):
    def edit(text):
        return re.sub(r"(v_mfma\S+ \S+), (\S+), (\S+),", r"\1, \3, \2,", text, count=1)

    assert not run_edited(good, "matmul_f16", edit)


def test_a_buffer_that_is_too_large_for_its_memory(good):
    def edit(text):
        # The number of bytes in the descriptor of the result, and a store beyond its memory.
        text = re.sub(r"(s_mov_b32 s\d+, )0x8000\b", r"\g<1>0x100000", text)
        return re.sub(r"(buffer_store_dword v\d+, v\d+, s\[\S+\], )0 offen.*", r"\1 0x40000 offen", text, count=1)

    with pytest.raises(SimulationError, match="in no buffer"):
        run_edited(good, "matmul_f16", edit)


def tile_inputs():
    random = np.random.default_rng(3)
    a, b = random.integers(-8, 9, (32, 8)).astype(np.float16), random.integers(-8, 9, (32, 8)).astype(np.float16)
    return [a, b, np.zeros((32, 32), np.float32)]


def test_rows_of_a_32x32_result():
    buffers = tile_inputs()
    product = buffers[0].astype(np.float32) @ buffers[1].astype(np.float32).T
    assert np.array_equal(run_kernel(tile_product(right_row), buffers, (1, 1, 1))[2], product)


@pytest.mark.parametrize(
    "row",
    [lambda r, half: 16 * half + r, lambda r, half: r + 4 * half, lambda r, half: 4 * (r // 2) + 2 * half + r % 2],
)
def test_wrong_rows_of_a_32x32_result(row):
    buffers = tile_inputs()
    product = buffers[0].astype(np.float32) @ buffers[1].astype(np.float32).T
    assert not np.array_equal(run_kernel(tile_product(row), buffers, (1, 1, 1))[2], product)


def test_waves_that_exchange_numbers():
    (result,) = run_kernel(exchange(), [np.zeros(128, np.int32)], (1, 1, 1))
    assert result.tolist() == [*range(64, 128), *range(64)]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["s_waitcnt lgkmcnt(0)"], r"never written|without a barrier"),
        (["s_barrier"], r"passes a barrier while its writes to LDS"),
        (["s_waitcnt lgkmcnt(0)", "s_barrier", "s_barrier_wait 1"], "unknown instruction"),
        (["s_waitcnt lgkmcnt(0)", "s_barrier", "v_mov_b32_e32 v64, 0"], "out of range"),
        (["s_waitcnt lgkmcnt(0)", "s_barrier", "s_branch .LBB0_9"], "no such label"),
        (["s_waitcnt lgkmcnt(0)", "s_barrier", "v_add_u32_e32 v4, v5, v1"], "uses v5, which no instruction before"),
        (["s_waitcnt lgkmcnt(0)", "s_barrier", "s_mov_b32 s6, s7"], "uses s7, which no instruction before"),
        (["s_waitcnt vmcnt(0) somecnt(1)", "s_barrier"], "unknown operand 'somecnt"),
    ],
)
def test_waves_that_exchange_numbers_wrongly(lines, message):
    with pytest.raises(SimulationError, match=message) as error:
        run_kernel(exchange(lines), [np.zeros(128, np.int32)], (1, 1, 1))
    assert "kernel 'k', line" in str(error.value)


def test_an_error_names_the_line():
    text = exchange(["s_waitcnt lgkmcnt(0)"])
    with pytest.raises(SimulationError) as error:
        run_kernel(text, [np.zeros(128, np.int32)], (1, 1, 1))
    assert text.splitlines()[error.value.instruction.line - 1].strip() == "ds_read_b32 v3, v2"


LOOP = """\
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	s_load_dword s6, s[0:1], 0x8
	v_lshlrev_b32_e32 v1, 2, v0
	v_mov_b32_e32 v2, 0
	s_lshl_b32 s7, s2, 8
	s_waitcnt lgkmcnt(0)
	s_add_i32 s6, s6, s2
.LBB0_1:
	v_add_u32_e32 v2, 3, v2
	s_sub_i32 s6, s6, 1
	s_cmp_gt_i32 s6, 0
	s_cbranch_scc1 .LBB0_1
	v_cmp_gt_u32_e32 vcc, 40, v0
	s_and_saveexec_b64 s[8:9], vcc
	s_cbranch_execz .LBB0_3
	v_add_u32_e32 v2, 1000, v2
.LBB0_3:
	s_or_b64 exec, exec, s[8:9]
	v_add_u32_e32 v1, s7, v1
	global_store_dword v1, v2, s[4:5]
	s_endpgm"""


def test_workgroups_that_go_different_ways():
    text = kernel_text(LOOP, buffers=1, constants=1)
    (result,) = run_kernel(text, [np.zeros((5, 64), np.int32)], (5, 1, 1), constants=[2])
    wanted = [[3 * (2 + group) + (1000 if item < 40 else 0) for item in range(64)] for group in range(5)]
    assert result.tolist() == wanted


@pytest.mark.parametrize(
    ("buffers", "constants", "message"),
    [
        (0, [2], "0 buffers are too few"),
        (1, [], "0 constants are too few"),
        (2, [2], "1 buffers and 0 constants fewer"),
    ],
)
def test_wrong_arguments_of_a_kernel(buffers, constants, message):
    text = kernel_text(LOOP, buffers=1, constants=1)
    with pytest.raises(SimulationError, match=message):
        run_kernel(text, [np.zeros((5, 64), np.int32)] * buffers, (5, 1, 1), constants=constants)


@needs_disassembler
def test_machine_code(good, tmp_path):
    case, _ = good["matmul_f16"]
    prepass.compile(case.source, flags=[*GFX942, f"--iree-hal-dump-executable-binaries-to={tmp_path}"])
    (file,) = tmp_path.glob("*.hsaco")
    a, b = case.inputs(np.random.default_rng(7))
    result = run_kernel(file.read_bytes(), [a, b, np.zeros((128, 64), np.float32)], (2, 1, 1))[2]
    assert compare([result], [case.reference(a, b)]).within(case.tolerance)


def test_a_barrier_that_not_all_waves_reach():
    """Waves that have ended do not count, as on the hardware."""
    code = """\
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_readfirstlane_b32 s6, v0
	s_cmp_eq_u32 s6, 0
	s_cbranch_scc1 .LBB0_2
	s_barrier
.LBB0_2:
	v_lshlrev_b32_e32 v1, 2, v0
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v0, s[4:5]
	s_endpgm"""
    text = kernel_text(code, buffers=1, waves=2)
    (result,) = run_kernel(text, [np.zeros(128, np.int32)], (1, 1, 1))
    assert result.tolist() == list(range(128))

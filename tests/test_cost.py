# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The static cost model against documented rates, and against figures that were taken by hand."""

import pytest

from prepass.amdgpu.assembly import read_instruction, read_kernels
from prepass.amdgpu.cost import cost_of, loop_cost, roofline
from prepass.amdgpu.inputs import compile_to_assembly
from prepass.amdgpu.machine import GFX942 as MI300X
from prepass.errors import PrepassError

from .conftest import GFX942
from .kernel_assembly import NESTED, kernel_assembly
from .test_configure_attention import PIPELINE, attention_op


def instructions(*names):
    return [read_instruction(f"{name} v0, v1, v2", 1) for name in names]


@pytest.mark.parametrize(
    ("name", "cycles", "flops"),
    [
        ("v_mfma_f32_32x32x8_f16", 32, 16384),
        ("v_mfma_f32_16x16x16_f16", 16, 8192),
        ("v_mfma_f32_32x32x8_bf16_1k", 32, 16384),
        ("v_mfma_f32_16x16x16bf16_1k", 16, 8192),
        ("v_mfma_f32_32x32x4_2b_f16", 64, 16384),
        ("v_mfma_f32_16x16x4_4b_f16", 32, 8192),
        ("v_mfma_f32_4x4x4_16b_f16", 8, 2048),
        ("v_mfma_f32_32x32x2_f32", 64, 4096),
        ("v_mfma_f32_16x16x4_f32", 32, 2048),
        ("v_mfma_f32_16x16x8_xf32", 16, 4096),
        ("v_mfma_f64_16x16x4_f64", 32, 2048),
        ("v_mfma_f64_4x4x4_4b_f64", 16, 512),
        ("v_mfma_i32_32x32x16_i8", 32, 32768),
        ("v_mfma_i32_16x16x32_i8", 16, 16384),
        ("v_mfma_f32_32x32x16_fp8_bf8", 32, 32768),
    ],
)
def test_matrix_instructions(name, cycles, flops):
    mfma = MI300X.mfma(name)
    assert (mfma.cycles, mfma.flops) == (cycles, flops)
    # None is faster than the peak, and those that IREE uses reach it.
    per_clock = flops / cycles * MI300X.simds
    assert per_clock <= MI300X.matrix_flops[mfma.element]
    if mfma.blocks == 1:
        assert per_clock == MI300X.matrix_flops[mfma.element]


def test_an_unknown_matrix_instruction_is_an_error():
    with pytest.raises(PrepassError, match="v_mfma_f32_32x32x8_q3: not a matrix instruction of gfx942"):
        MI300X.mfma("v_mfma_f32_32x32x8_q3")


def test_peaks_are_those_of_the_data_sheet():
    # Dense TFLOP/s: 1307.4 f16 and bf16, 2614.9 int8 and fp8, 653.7 xf32, 163.4 f32, 163.4 f64 matrix.
    peaks = {element: round(MI300X.peak_flops(element) / 1e12, 1) for element in ("bf16", "i8", "xf32", "f32", "f64")}
    assert peaks == {"bf16": 1307.4, "i8": 2614.9, "xf32": 653.7, "f32": 163.4, "f64": 163.4}
    assert round(MI300X.peak_flops(None) / 1e12, 1) == 163.4


@pytest.mark.parametrize(
    ("name", "unit", "wave", "cu"),
    [
        ("v_add_f32_e32", "valu", 4, 4),
        ("v_pk_fma_f32", "valu", 4, 4),
        ("v_exp_f32_e32", "valu", 16, 16),
        ("ds_read_b128", "lds", 8, 32),
        ("ds_read2_b64", "lds", 8, 32),
        ("ds_write_b64", "lds", 4, 16),
        ("ds_read_u16", "lds", 2, 8),
        ("ds_bpermute_b32", "lds", 2, 8),
        ("buffer_load_dwordx4", "memory", 16, 64),
        ("buffer_load_dwordx2", "memory", 8, 32),
        ("buffer_load_dword", "memory", 4, 16),
        ("buffer_load_ushort", "memory", 4, 16),
        ("scratch_store_dword", "memory", 4, 16),
    ],
)
def test_rates(name, unit, wave, cu):
    cost = cost_of(instructions(name))
    assert (getattr(cost.wave, unit), getattr(cost.cu, unit)) == (wave, cu)
    assert cost.cycles == cost.serial_cycles == cu


def test_scalar_work_costs_none_of_the_units():
    assert cost_of(instructions("s_load_dwordx4", "s_waitcnt", "s_add_i32", "s_barrier")).bound == "nothing"


def test_a_loop():
    (kernel,) = read_kernels(kernel_assembly(NESTED))
    cost = loop_cost(kernel)
    assert (cost.cu.mfma, cost.cu.valu, cost.cu.transcendental, cost.cu.lds, cost.cu.memory) == (48, 20, 16, 48, 0)
    assert (cost.cycles, cost.serial_cycles) == (48, 116)
    assert cost.mfma_utilization == 1
    assert cost.serial_mfma_utilization == pytest.approx(48 / 116)
    assert cost.flops == {"f16": 16384, "bf16": 8192}
    assert cost.element == "f16"
    assert roofline(cost).intensity == float("inf")


def test_no_loop_has_no_cost():
    (kernel,) = read_kernels(kernel_assembly("\tv_mov_b32_e32 v0, 0\n\ts_endpgm"))
    assert loop_cost(kernel) is None


def test_roofline():
    # 16 bytes a lane for each MFMA: 16,384 operations for 1,024 bytes.
    found = roofline(cost_of(instructions("v_mfma_f32_32x32x8_bf16", "buffer_load_dwordx4")))
    assert (found.element, found.intensity) == ("bf16", 16)
    assert found.memory_flops["HBM"] == pytest.approx(16 * 5.3e12)
    # The L1 takes 64 clocks for four waves, the matrix cores 32.
    assert found.issue_flops == pytest.approx(found.peak_flops / 2)


def test_roofline_without_matrix_instructions():
    found = roofline(cost_of(instructions("buffer_load_dwordx4", *["v_pk_fma_f32"] * 4)))
    assert (found.element, found.intensity) == (None, 1)


@pytest.mark.parametrize(
    ("channels", "element", "value_transposed", "pipeline", "scores", "expected"),
    [
        # Stock, V as (k2, n) and as (n, k2); with the configs of prepass.
        (64, "f16", False, None, 1024, (512, 720, 928)),
        (64, "f16", True, None, 1024, (512, 596, 672)),
        (64, "f16", True, PIPELINE, 2048, (512, 546, 328)),
        (128, "bf16", True, None, 512, (1536, 1720, 1984)),
    ],
)
def test_attention_per_1024_scores(channels, element, value_transposed, pipeline, scores, expected):
    """`scores` are the queries and keys of a wave's iteration, by the tiles of the config."""
    source = attention_op(20, 4096, 4096, channels, element, value_transposed=value_transposed)
    (kernel,) = compile_to_assembly(source, pipeline=pipeline, flags=GFX942)
    cycles = kernel.hottest.cost.cu * (1024 / scores)
    assert (cycles.mfma, cycles.valu, cycles.lds) == expected

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Figures of kernels: counts, loops, occupancy, size."""

import pytest

from prepass.amdgpu.assembly import read_instruction, read_kernels
from prepass.amdgpu.code_size import instruction_bytes
from prepass.amdgpu.control_flow import ControlFlow
from prepass.amdgpu.figures import kernel_figures
from prepass.amdgpu.inputs import compile_to_assembly, read_assembly
from prepass.amdgpu.machine import GFX942
from prepass.amdgpu.metrics import METRICS, metrics_of
from prepass.amdgpu.occupancy import occupancy
from prepass.amdgpu.opcodes import Access, Kind, opcode
from prepass.errors import PrepassError

from .conftest import GFX942 as GFX942_FLAGS
from .kernel_assembly import NESTED, kernel_assembly

MATMUL = """\
func.func @FUNCTION(%a: tensor<128x256xf16>, %b: tensor<256x128xf16>) -> tensor<128x128xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x128xf32>) -> tensor<128x128xf32>
  %r = linalg.matmul ins(%a, %b : tensor<128x256xf16>, tensor<256x128xf16>) outs(%f : tensor<128x128xf32>)
      -> tensor<128x128xf32>
  return %r : tensor<128x128xf32>
}
"""


@pytest.mark.parametrize("function", ["main", '"main$async"'])
def test_counts_a_matmul(function):
    (kernel,) = compile_to_assembly(MATMUL.replace("FUNCTION", function), flags=GFX942_FLAGS)
    assert kernel.name.startswith(function.strip('"'))
    # Every product is there: each of a workgroup's waves runs the loop over K.
    assert sum(kernel.counts.mfma_kinds.values()) == kernel.counts.mfmas > 0
    assert 0 < kernel.hottest.counts.total < kernel.counts.total
    assert kernel.hottest.counts.mfmas > 0
    assert kernel.metadata.vgprs > 0
    assert kernel.spills == 0
    assert 0 < kernel.metadata.lds_bytes <= 65536


def test_text_without_kernels_has_none():
    assert read_assembly("s_endpgm\n") == []


def test_code_for_rdna_is_refused():
    with pytest.raises(PrepassError, match="the code is for gfx1100"):
        read_assembly(kernel_assembly(NESTED).replace("gfx942", "gfx1100"))


def test_a_kernel_without_metadata_is_an_error():
    text = kernel_assembly(NESTED)
    (kernel,) = read_kernels(text[: text.index("\t.amdgpu_metadata")])
    with pytest.raises(PrepassError, match="no metadata"):
        kernel_figures(kernel)


@pytest.mark.parametrize(
    ("text", "kind", "access"),
    [
        ("buffer_load_dwordx4 v[0:3], v4, s[0:3], 0 offen", Kind.MEMORY, Access("buffer", "load", 16)),
        ("buffer_load_ushort v0, v4, s[0:3], 0 offen", Kind.MEMORY, Access("buffer", "load", 2)),
        ("buffer_load_short_d16_hi v0, v4, s[0:3], 0 offen", Kind.MEMORY, Access("buffer", "load", 2)),
        ("buffer_store_byte v0, v4, s[0:3], 0 offen", Kind.MEMORY, Access("buffer", "store", 1)),
        ("global_load_dwordx3 v[0:2], v[4:5], off", Kind.MEMORY, Access("global", "load", 12)),
        ("global_load_lds_dword v[4:5], off", Kind.MEMORY, Access("global", "load", 4)),
        ("global_load_ubyte_d16 v0, v[4:5], off", Kind.MEMORY, Access("global", "load", 1)),
        ("flat_load_sshort v0, v[4:5]", Kind.MEMORY, Access("flat", "load", 2)),
        ("scratch_store_dwordx2 off, v[0:1], s32", Kind.MEMORY, Access("scratch", "store", 8)),
        ("global_atomic_pk_add_f16 v0, v1, s[0:1]", Kind.MEMORY, Access("global", "atomic", 4)),
        ("buffer_atomic_add_f64 v[0:1], v2, s[0:3], 0 offen", Kind.MEMORY, Access("buffer", "atomic", 8)),
        ("s_load_dwordx8 s[0:7], s[0:1], 0x0", Kind.MEMORY, Access("scalar", "load", 32)),
        ("s_buffer_load_dword s0, s[0:3], 0x0", Kind.MEMORY, Access("scalar", "load", 4)),
        ("ds_read_b128 v[0:3], v4", Kind.LDS, Access("lds", "load", 16)),
        ("ds_read2_b32 v[0:1], v4 offset1:1", Kind.LDS, Access("lds", "load", 8)),
        ("ds_read2st64_b64 v[0:3], v4 offset1:1", Kind.LDS, Access("lds", "load", 16)),
        ("ds_read_u8_d16_hi v0, v4", Kind.LDS, Access("lds", "load", 1)),
        ("ds_write_b16_d16_hi v0, v4", Kind.LDS, Access("lds", "store", 2)),
        ("ds_add_rtn_f32 v0, v1, v2", Kind.LDS, Access("lds", "atomic", 4)),
        ("ds_swizzle_b32 v0, v1 offset:0x1f", Kind.LDS, None),
        ("v_mfma_i32_32x32x16_i8 v[0:15], v[16:17], v[18:19], 0", Kind.MFMA, None),
        ("v_accvgpr_read_b32 v0, a0", Kind.VALU, None),
        ("v_cmp_lt_f32_e32 vcc, v0, v1", Kind.VALU, None),
        ("s_mul_i32 s0, s1, s2", Kind.SALU, None),
        ("s_and_saveexec_b64 s[0:1], vcc", Kind.SALU, None),
        ("s_cbranch_execz .L", Kind.BRANCH, None),
        ("s_barrier", Kind.BARRIER, None),
        ("s_waitcnt vmcnt(0)", Kind.WAIT, None),
        ("buffer_inv sc1", Kind.OTHER, None),
    ],
)
def test_kinds(text, kind, access):
    what = opcode(read_instruction(text, 1))
    assert (what.kind, what.access) == (kind, access)


@pytest.mark.parametrize(
    ("name", "transcendental", "packed", "flops"),
    [
        ("v_exp_f32_e32", True, False, 0),
        ("v_rcp_iflag_f32_e32", True, False, 0),
        ("v_fma_f32", False, False, 2),
        ("v_fmac_f16_e32", False, False, 2),
        ("v_add_f32_e32", False, False, 1),
        ("v_max3_f32", False, False, 1),
        ("v_pk_fma_f32", False, True, 4),
        ("v_pk_mul_f16", False, True, 2),
        ("v_dot2_f32_f16", False, False, 4),
        ("v_cvt_f32_f16_e32", False, False, 0),
        ("v_add_u32_e32", False, False, 0),
    ],
)
def test_kinds_of_vector_instructions(name, transcendental, packed, flops):
    what = opcode(read_instruction(f"{name} v0, v1, v2", 1))
    assert (what.kind, what.transcendental, what.packed, what.flops) == (Kind.VALU, transcendental, packed, flops)


def test_nested_loops():
    (kernel,) = read_kernels(kernel_assembly(NESTED))
    outer, inner = ControlFlow(kernel).loops
    assert (outer.label, outer.depth, outer.innermost) == (".LBB0_1", 1, False)
    assert (inner.label, inner.depth, inner.innermost) == (".LBB0_2", 2, True)
    assert inner.blocks < outer.blocks
    flow = ControlFlow(kernel)
    assert flow.hottest == inner
    assert flow.instructions(inner)[0].name == "ds_read2_b64"
    assert flow.instructions(outer)[0].name == "buffer_load_dwordx4"


LOOPS = {
    # Of two loops side by side, the one with MFMAs, though it is shorter.
    ".LBB0_2": """\
.LBB0_1:
	v_add_f32_e32 v0, v0, v1
	v_add_f32_e32 v0, v0, v1
	v_add_f32_e32 v0, v0, v1
	s_cbranch_scc1 .LBB0_1
.LBB0_2:
	v_mfma_f32_16x16x16_f16 v[4:7], v[0:1], v[2:3], v[4:7]
	s_cbranch_scc1 .LBB0_2
	s_endpgm
""",
    # A loop around one that only copies: what counts is where the MFMAs are.
    ".LBB0_6": """\
.LBB0_6:
	v_mfma_f32_16x16x16_f16 v[4:7], v[0:1], v[2:3], v[4:7]
.LBB0_7:
	ds_write_b32 v0, v1
	s_cbranch_scc1 .LBB0_7
	s_cbranch_scc1 .LBB0_6
	s_endpgm
""",
    # A jump forward and one backward around nothing that repeats, and a loop left in its middle.
    ".LBB0_4": """\
	s_branch .LBB0_2
.LBB0_1:
	s_branch .LBB0_3
.LBB0_2:
	s_branch .LBB0_1
.LBB0_3:
	v_mov_b32_e32 v0, 0
.LBB0_4:
	s_cbranch_vccz .LBB0_5
	s_branch .LBB0_4
.LBB0_5:
	s_endpgm
""",
    # No loop.
    None: """\
	s_cbranch_scc1 .LBB0_1
	v_mov_b32_e32 v0, 0
.LBB0_1:
	s_endpgm
""",
}


@pytest.mark.parametrize("label", LOOPS)
def test_hottest_loop(label):
    (kernel,) = read_kernels(kernel_assembly(LOOPS[label]))
    hottest = ControlFlow(kernel).hottest
    assert (hottest.label if hottest else None) == label


def test_what_branches_may_skip():
    body = """\
.LBB0_1:
	v_add_f32_e32 v0, v0, v1
	s_cbranch_execz .LBB0_2
	v_exp_f32_e32 v0, v0
.LBB0_2:
	v_add_f32_e32 v0, v0, v1
	s_cbranch_scc1 .LBB0_1
	s_cbranch_scc1 .LBB0_3
	v_exp_f32_e32 v0, v0
.LBB0_3:
	v_add_f32_e32 v0, v0, v1
	s_endpgm
"""
    (kernel,) = read_assembly(kernel_assembly(body))
    assert (kernel.hottest.cost.cycles, kernel.hottest.least_cost.cycles) == (24, 8)
    assert (kernel.cost.cycles, kernel.least_cost.cycles) == (44, 12)
    values = metrics_of(kernel)
    assert (values["loop.cycles"], values["loop.least_cycles"], values["least_cycles"]) == (24, 8, 12)


def test_metrics():
    (kernel,) = read_assembly(kernel_assembly(NESTED, spills=3, private_bytes=12))
    values = metrics_of(kernel)
    expected = {
        "spills": 3, "scratch_bytes": 12, "scratch_loads": 1, "vgprs": 64, "agprs": 16, "sgprs": 20, "loops": 2,
        "loads": 2, "loads_16b": 1, "loads_2b": 1, "load_width": 9, "stores_2b": 1, "atomics": 1, "scalar_loads": 1,
        "mfma": 2, "valu": 3, "trans": 1, "packed": 1, "lds_reads": 2, "lds_writes_16b": 1, "lane_swaps": 1,
        "barriers": 1, "waits": 2, "branches": 4, "salu": 2, "instructions": 24, "workgroup": 256,
        "loop.loads": 0, "loop.mfma": 2, "loop.lds_reads_16b": 1, "loop.lds_reads_2b": 1, "loop.instructions": 10,
    }  # fmt: skip
    assert {name: values[name] for name in expected} == expected
    assert kernel.counts.mfma_kinds == {"f32_32x32x8_f16": 1, "f32_16x16x16_bf16": 1}


def test_metrics_of_an_unknown_gpu_are_left_out():
    text = kernel_assembly(NESTED).replace("gfx942", "gfx90a")
    (kernel,) = read_assembly(text)
    assert kernel.architecture == "gfx90a"
    missing = set(METRICS) - set(metrics_of(kernel))
    assert missing == {"waves", *(name for name, metric in METRICS.items() if metric.scope == "cost")}


@pytest.mark.parametrize(
    ("facts", "waves", "limit"),
    [
        ({"vgprs": 64}, 8, "wave slots"),
        ({"vgprs": 65}, 7, "VGPRs"),
        ({"vgprs": 128}, 4, "VGPRs"),
        ({"vgprs": 166}, 3, "VGPRs"),
        ({"vgprs": 512}, 1, "VGPRs"),
        ({"sgprs": 102}, 7, "SGPRs"),
        ({"lds_bytes": 17664}, 3, "LDS"),
        ({"lds_bytes": 65536}, 1, "LDS"),
        ({"lds_bytes": 32769, "work_items": 64}, 0.25, "LDS"),
        # Six waves: two workgroups do not fit into twelve slots of three SIMDs' worth.
        ({"vgprs": 168, "work_items": 384}, 3, "VGPRs"),
        ({"vgprs": 256, "work_items": 384}, 1.5, "VGPRs"),
        ({"work_items": 128}, 8, "wave slots"),
    ],
)
def test_occupancy(facts, waves, limit):
    (kernel,) = read_kernels(kernel_assembly(NESTED, **facts))
    found = occupancy(GFX942, kernel.metadata)
    assert (found.waves_per_simd, found.limit) == (waves, limit)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("s_endpgm", 4),
        ("s_movk_i32 s0, 0x4800", 4),
        ("s_mov_b32 s0, 64", 4),
        ("s_mov_b32 s0, 65", 8),
        ("s_mov_b32 s0, -16", 4),
        ("s_mov_b32 s0, 0xfe5163ab", 8),
        ("s_add_u32 s0, s0, symbol@rel32@lo+4", 8),
        ("s_waitcnt vmcnt(0) lgkmcnt(0)", 4),
        ("s_cmpk_lt_u32 s0, 0x1000", 4),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3", 8),
        ("s_load_dword s0, s[0:1], 0x0", 8),
        ("v_add_f32_e32 v0, v0, v1", 4),
        ("v_add_f32_e32 v0, 1.0, v1", 4),
        ("v_mul_f32_e32 v0, 0.15915494, v1", 4),
        ("v_add_u32_e32 v0, 0x4000, v1", 8),
        ("v_add_f32_e64 v0, |v0|, v1", 8),
        ("v_mov_b32_dpp v0, v1 quad_perm:[1,0,3,2]", 8),
        ("v_mov_b64_e32 v[0:1], s[2:3]", 4),
        ("v_readfirstlane_b32 s0, v0", 4),
        ("v_fmamk_f32 v0, v1, 0x37d75334, v2", 8),
        ("v_pk_mul_f32 v[0:1], v[2:3], v[4:5]", 8),
        ("v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]", 8),
        ("v_cndmask_b32_e32 v0, 0, v1, vcc", 4),
        ("ds_read_b128 v[0:3], v4", 8),
        ("buffer_load_dword v0, v1, s[0:3], 0 offen", 8),
    ],
)
def test_code_size(text, size):
    assert instruction_bytes(read_instruction(text, 1)) == size

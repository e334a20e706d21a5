# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Assembly of small kernels, written by hand."""

_KERNEL = """\
	.amdgcn_target "amdgcn-amd-amdhsa-unknown-gfx942"
	.text
{name}:
{body}
.Lfunc_end0:
	.section .rodata
	.amdhsa_kernel {name}
		.amdhsa_next_free_vgpr {vgprs}
	.end_amdhsa_kernel
	.amdgpu_metadata
---
amdhsa.kernels:
  - .agpr_count:     {agprs}
    .args:           []
    .group_segment_fixed_size: {lds_bytes}
    .kernarg_segment_size: 24
    .max_flat_workgroup_size: {work_items}
    .name:           {name}
    .private_segment_fixed_size: {private_bytes}
    .reqd_workgroup_size:
      - {work_items}
      - 1
      - 1
    .sgpr_count:     {sgprs}
    .sgpr_spill_count: 0
    .symbol:         {name}.kd
    .vgpr_count:     {vgprs}
    .vgpr_spill_count: {spills}
    .wavefront_size: 64
...
	.end_amdgpu_metadata
"""

# A loop of two blocks around a loop of one, and a branch that skips both.
NESTED = """\
	s_load_dwordx4 s[0:3], s[0:1], 0x0
	v_mov_b32_e32 v1, 0
	s_cbranch_scc0 .LBB0_4
.LBB0_1:
	buffer_load_dwordx4 v[4:7], v1, s[0:3], 0 offen
	s_waitcnt vmcnt(0)
	ds_write_b128 v1, v[4:7]
	s_barrier
.LBB0_2:
	ds_read2_b64 v[8:11], v1 offset1:2
	ds_read_u16_d16 v12, v1
	ds_bpermute_b32 v13, v1, v12
	s_waitcnt lgkmcnt(0)
	v_mfma_f32_32x32x8_f16 a[0:15], v[8:9], v[10:11], a[0:15]
	v_mfma_f32_16x16x16_bf16 v[16:19], v[8:9], v[10:11], v[16:19]
	v_exp_f32_e32 v14, v13
	v_pk_fma_f32 v[20:21], v[8:9], v[10:11], v[20:21]
	s_cmp_lt_i32 s4, s5
	s_cbranch_scc1 .LBB0_2
	s_add_i32 s4, s4, 1
	s_cbranch_scc1 .LBB0_1
.LBB0_4:
	global_load_ushort v2, v1, s[0:1]
	global_store_short_d16_hi v1, v2, s[0:1]
	scratch_load_dword v3, off, s32
	global_atomic_add_f32 v1, v3, s[0:1]
	s_endpgm
"""


def kernel_assembly(body: str, **facts: object) -> str:
    """The text of a `.rocmasm` file with one kernel; `facts` are of its metadata."""
    given = {
        "name": "kernel",
        "vgprs": 64,
        "agprs": 16,
        "sgprs": 20,
        "lds_bytes": 1024,
        "private_bytes": 0,
        "spills": 0,
        "work_items": 256,
        **facts,
    }
    return _KERNEL.format(body=body.rstrip("\n"), **given)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels written by hand, for the simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def kernel_text(
    code: str, *, buffers: int, waves: int = 1, lds: int = 0, vgprs: int = 64, agprs: int = 0, constants: int = 0
) -> str:
    """Assembly of the kernel `k` with what the compiler writes around code.

    `s[0:1]` holds the address of the arguments, `s2` the workgroup, `v0` the work item.
    """
    sizes = [(8, "global_buffer")] * buffers + [(4, "by_value")] * constants
    offsets = [sum(size for size, _ in sizes[:number]) for number in range(len(sizes))]
    arguments = "".join(
        f"      - .offset: {offset}\n        .size: {size}\n        .value_kind: {kind}\n"
        for offset, (size, kind) in zip(offsets, sizes, strict=True)
    )
    return f"""\
	.text
k:
{code}
.Lfunc_end0:
	.amdhsa_kernel k
		.amdhsa_group_segment_fixed_size {lds}
		.amdhsa_kernarg_size {sum(size for size, _ in sizes)}
		.amdhsa_user_sgpr_count 2
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_next_free_vgpr {vgprs + agprs}
		.amdhsa_next_free_sgpr 32
		.amdhsa_accum_offset {vgprs}
		.amdhsa_float_denorm_mode_32 3
		.amdhsa_float_denorm_mode_16_64 3
	.end_amdhsa_kernel
	.amdgpu_metadata
---
amdhsa.kernels:
  - .args:
{arguments}    .group_segment_fixed_size: {lds}
    .kernarg_segment_size: {sum(size for size, _ in sizes)}
    .name: k
    .private_segment_fixed_size: 0
    .reqd_workgroup_size:
      - {64 * waves}
      - 1
      - 1
    .wavefront_size: 64
...
	.end_amdgpu_metadata
"""


def right_row(register: int, half: int) -> int:
    """The row of a 32x32 result in a register of lanes 0 to 31 (half 0) or 32 to 63."""
    return 8 * (register // 4) + 4 * half + register % 4


def tile_product(row: Callable[[int, int], int] = right_row) -> str:
    """D = A · B with one 32x32x8 instruction: A is 32x8 f16, B is given as its transpose, D is 32x32 f32."""
    # Rows of one register are the same distance apart in both halves of the wave.
    step = row(0, 1) - row(0, 0)
    stores = "\n".join(f"\tglobal_store_dword v4, v{16 + r}, s[8:9] offset:{128 * row(r, 0)}" for r in range(16))
    return kernel_text(
        f"""\
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	s_load_dwordx2 s[8:9], s[0:1], 0x10
	v_and_b32_e32 v1, 31, v0
	v_lshrrev_b32_e32 v2, 5, v0
	v_lshlrev_b32_e32 v3, 4, v1
	v_lshl_or_b32 v3, v2, 3, v3
	s_waitcnt lgkmcnt(0)
	global_load_dwordx2 v[8:9], v3, s[4:5]
	global_load_dwordx2 v[10:11], v3, s[6:7]
	v_mul_u32_u24_e32 v4, {128 * step}, v2
	v_lshl_add_u32 v4, v1, 2, v4
	s_waitcnt vmcnt(0)
	v_mfma_f32_32x32x8_f16 v[16:31], v[8:9], v[10:11], 0
{stores}
	s_endpgm""",
        buffers=3,
    )


def exchange(lines: Sequence[str] | None = None) -> str:
    """Two waves that write their numbers to LDS and read each other's; `lines` replaces what stands between."""
    between = ["s_waitcnt lgkmcnt(0)", "s_barrier"] if lines is None else lines
    middle = "\n".join(f"\t{line}" for line in between)
    return kernel_text(
        f"""\
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	v_xor_b32_e32 v2, 0x100, v1
	ds_write_b32 v1, v0
{middle}
	ds_read_b32 v3, v2
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v3, s[4:5]
	s_endpgm""",
        buffers=1,
        waves=2,
        lds=512,
    )

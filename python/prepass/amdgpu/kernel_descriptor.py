# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel descriptor of a code object, as the directives that an assembler would make it from.

Source: "AMDGPU Usage", section "Kernel Descriptor", https://llvm.org/docs/AMDGPUUsage.html
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

SIZE = 64

# Directive, byte offset of a 32-bit word, lowest bit, bits; for gfx90a and gfx942.
_FIELDS = (
    ("group_segment_fixed_size", 0, 0, 32),
    ("private_segment_fixed_size", 4, 0, 32),
    ("kernarg_size", 8, 0, 32),
    ("tg_split", 44, 16, 1),
    ("float_round_mode_32", 48, 12, 2),
    ("float_round_mode_16_64", 48, 14, 2),
    ("float_denorm_mode_32", 48, 16, 2),
    ("float_denorm_mode_16_64", 48, 18, 2),
    ("dx10_clamp", 48, 21, 1),
    ("ieee_mode", 48, 23, 1),
    ("fp16_overflow", 48, 26, 1),
    ("enable_private_segment", 52, 0, 1),
    ("user_sgpr_count", 52, 1, 5),
    ("system_sgpr_workgroup_id_x", 52, 7, 1),
    ("system_sgpr_workgroup_id_y", 52, 8, 1),
    ("system_sgpr_workgroup_id_z", 52, 9, 1),
    ("system_sgpr_workgroup_info", 52, 10, 1),
    ("system_vgpr_workitem_id", 52, 11, 2),
    ("exception_fp_ieee_invalid_op", 52, 24, 1),
    ("exception_fp_denorm_src", 52, 25, 1),
    ("exception_fp_ieee_div_zero", 52, 26, 1),
    ("exception_fp_ieee_overflow", 52, 27, 1),
    ("exception_fp_ieee_underflow", 52, 28, 1),
    ("exception_fp_ieee_inexact", 52, 29, 1),
    ("exception_int_div_zero", 52, 30, 1),
    ("user_sgpr_dispatch_ptr", 56, 1, 1),
    ("user_sgpr_queue_ptr", 56, 2, 1),
    ("user_sgpr_kernarg_segment_ptr", 56, 3, 1),
    ("user_sgpr_dispatch_id", 56, 4, 1),
    ("user_sgpr_private_segment_size", 56, 6, 1),
    ("uses_dynamic_stack", 56, 11, 1),
    ("user_sgpr_kernarg_preload_length", 56, 16, 7),
    ("user_sgpr_kernarg_preload_offset", 56, 23, 9),
)


@dataclass(frozen=True)
class KernelDescriptor:
    """A descriptor.

    Attributes:
      directives: As in `prepass.amdgpu.assembly.Kernel`. Register counts are rounded up to
        their granules, as hardware allocates them.
      entry: Where the code begins, from the descriptor's own address.
    """

    directives: dict[str, int]
    entry: int


def read_descriptor(data: bytes) -> KernelDescriptor:
    """Read the 64 bytes of a descriptor."""
    directives = {name: _bits(data, offset, low, count) for name, offset, low, count in _FIELDS}
    directives["next_free_vgpr"] = 8 * (_bits(data, 48, 0, 6) + 1)
    directives["next_free_sgpr"] = 8 * (_bits(data, 48, 6, 4) + 1)
    directives["accum_offset"] = 4 * (_bits(data, 44, 0, 6) + 1)
    return KernelDescriptor(directives, struct.unpack_from("<q", data, 16)[0])


def _bits(data: bytes, offset: int, low: int, count: int) -> int:
    return struct.unpack_from("<I", data, offset)[0] >> low & ((1 << count) - 1)

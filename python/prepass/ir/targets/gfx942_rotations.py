# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gfx942 (MI300): how the lanes of a wave share the channels of a rotary embedding.

Figures are static, read from the assembly of iree-base-compiler 3.13.0; nothing here has run on the hardware. They are
for 24×4608×128 as halves, x · cos + cat(-x1, x0) · sin; loads are of one lane, instructions by channel it writes.

| type | a lane computes           | loads  | stores | instructions a channel |
|------|---------------------------|--------|--------|------------------------|
| f16  | 4 channels, the default   | 4 × 8  | 1 × 8  | 20.5                   |
| f16  | 8 channels of one half    | 4 × 16 | 1 × 16 | 14.2                   |
| f16  | 8 channels of each half   | 6 × 16 | 2 × 16 | 4.6                    |
| bf16 | 4 channels, the default   | 4 × 8  | 1 × 8  | 42.8                   |
| bf16 | 8 channels of one half    | 4 × 16 | 1 × 16 | 36.2                   |
| bf16 | 8 channels of each half   | 6 × 16 | 2 × 16 | 28.6                   |

With both halves in a lane its channels are loaded once, and which half it computes needs no select. bf16 has no
arithmetic on gfx942: each product and the sum are rounded in some eight instructions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from iree.compiler import ir

from prepass.ir.rope.kernel import RotationKernel
from prepass.ir.targets.attention_shape import load_dialects

_LOAD_BYTES = 16
_DEFAULT_ELEMENTS = 4
# Of one lane: with more, its registers limit the waves on a SIMD.
_MOST_CHANNELS = 64
_WAVE = 64
_WORKGROUPS = (_WAVE, 2 * _WAVE, 4 * _WAVE)


def rotation_attributes(kernel: RotationKernel) -> dict[str, ir.Attribute] | None:
    """The lowering config under which a lane loads 16 bytes at once.

    Empty where IREE's default, 4 elements a lane, does. None where rows do not split into such vectors, or are
    too few to fill half of a wave.
    """
    elements = _LOAD_BYTES // kernel.narrowest
    if elements <= _DEFAULT_ELEMENTS and kernel.blocks is None:
        return {}
    if kernel.width % elements:
        return None
    blocks = [] if kernel.blocks is None else [_largest_divisor(kernel.blocks, _MOST_CHANNELS // elements)]
    steps = [] if kernel.blocks is None else [kernel.blocks // blocks[0]]
    loops = [*kernel.rows, *steps, kernel.width // elements]
    lanes = max((_lanes(loops, size) for size in _WORKGROUPS), key=_used)
    if _used(lanes) < 0.5:
        return None
    thread = [*[1] * len(kernel.rows), *blocks, elements]
    workgroup = [count * size for count, size in zip(lanes, thread, strict=True)]
    return {"compilation_info": _compilation_info(thread, workgroup, _threads(lanes))}


def _lanes(loops: Sequence[int | None], most: int) -> list[int]:
    """Along each loop, the lanes of a workgroup of at most so many; they divide the loop, as IREE masks nothing."""
    lanes: list[int] = []
    for extent in reversed(loops):
        count = 1 if extent is None else _largest_divisor(extent, most)
        lanes.insert(0, count)
        most //= count
    return lanes


def _largest_divisor(number: int, most: int) -> int:
    return max(n for n in range(1, most + 1) if number % n == 0)


def _threads(lanes: Sequence[int]) -> int:
    """The threads of a workgroup: whole waves."""
    return -(-math.prod(lanes) // _WAVE) * _WAVE


def _used(lanes: Sequence[int]) -> float:
    """How much of its threads a workgroup uses."""
    return math.prod(lanes) / _threads(lanes)


def _compilation_info(thread: list[int], workgroup: list[int], threads: int) -> ir.Attribute:
    load_dialects("iree_codegen", "iree_gpu")
    # The attributes of iree_gpu have no Python builders that take these.
    return ir.Attribute.parse(
        "#iree_codegen.compilation_info<"
        f"lowering_config = #iree_gpu.lowering_config<{{thread = {thread}, workgroup = {workgroup}}}>, "
        "translation_info = <pipeline = #iree_gpu.pipeline<TileAndFuse> "
        f"workgroup_size = [{threads}, 1, 1] subgroup_size = {_WAVE}>>"
    )

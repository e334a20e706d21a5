# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gfx942 (MI300): how the lanes of a workgroup share what a reduction reads.

A workgroup makes one result, and the positions of an image are spread over its lanes, each of which loads up to 16
bytes of channels. IREE's own config spreads only the innermost loop, the channels of a group: of the 4 to 16 there are,
one lane in 64 or two load, one position at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.targets.attention_shape import load_dialects

_LOAD_BYTES = 16
_WAVE = 64
_MOST_WAVES = 16


@dataclass(frozen=True)
class ReductionLoops:
    """The loops of a reduction over dims of one operand.

    Attributes:
      sizes: The trip count of each loop.
      order: The loops in the order of the operand's dims.
      reduced: The loops that are reduced.
      element_bytes: Of the operand.
    """

    sizes: tuple[int, ...]
    order: tuple[int, ...]
    reduced: frozenset[int]
    element_bytes: int


@dataclass(frozen=True)
class ReductionTile:
    """What a workgroup reads at once: along each loop, elements of a lane, lanes of a wave, waves."""

    thread: tuple[int, ...]
    lanes: tuple[int, ...]
    waves: tuple[int, ...]

    def of(self, loops: Iterable[int]) -> ReductionTile:
        """The same by the loops of another op."""
        picked = ([part[loop] for loop in loops] for part in (self.thread, self.lanes, self.waves))
        return ReductionTile(*map(tuple, picked))


def reduction_tile(loops: ReductionLoops) -> ReductionTile:
    """As many lanes as the loops that are reduced divide into, the innermost first."""
    count = len(loops.sizes)
    thread = [int(loop in loops.reduced) for loop in range(count)]
    lanes, waves = [1] * count, [1] * count
    innermost = loops.order[-1]
    if innermost in loops.reduced:
        thread[innermost] = math.gcd(loops.sizes[innermost], max(1, _LOAD_BYTES // loops.element_bytes))
    for parts, most in ((lanes, _WAVE), (waves, _MOST_WAVES)):
        for loop in reversed(loops.order):
            if loop in loops.reduced:
                # A power of two, as `most` is one.
                parts[loop] = math.gcd(loops.sizes[loop] // (thread[loop] * lanes[loop]), most)
                most //= parts[loop]
    return ReductionTile(tuple(thread), tuple(lanes), tuple(waves))


def reduction_config(tile: ReductionTile) -> dict[str, ir.Attribute]:
    """For a reduction that is not the last of its dispatch."""
    return {"lowering_config": _lowering_config(tile, "partial_reduction")}


def elementwise_config(tile: ReductionTile) -> dict[str, ir.Attribute]:
    """For an op behind the reductions, in the same tiles."""
    return {"lowering_config": _lowering_config(tile, "serial")}


def last_reduction_config(tile: ReductionTile) -> dict[str, ir.Attribute]:
    """For the last reduction, which is what IREE distributes a dispatch by."""
    workgroup = [int(elements == 0) for elements in tile.thread]
    config = _lowering_config(tile, "partial_reduction", f", workgroup = {workgroup}")
    info = (
        f"#iree_codegen.compilation_info<lowering_config = {config}, "
        "translation_info = <pipeline = #iree_gpu.pipeline<VectorDistribute> "
        f"workgroup_size = [{_WAVE * math.prod(tile.waves)}, 1, 1] subgroup_size = {_WAVE}, "
        "{gpu_pipeline_options = #iree_gpu.pipeline_options<"
        "no_reduce_shared_memory_bank_conflicts = false, use_igemm_convolution = false>}>>"
    )
    return {"compilation_info": ir.Attribute.parse(info)}


def _lowering_config(tile: ReductionTile, level: str, more: str = "") -> ir.Attribute:
    load_dialects("iree_codegen", "iree_gpu")
    at_once = [math.prod(parts) for parts in zip(tile.thread, tile.lanes, tile.waves, strict=True)]
    loops = list(range(len(at_once)))
    # The attributes of iree_gpu have no Python builders that take these.
    return ir.Attribute.parse(
        f"#iree_gpu.lowering_config<{{{level} = {at_once}, thread = {list(tile.thread)}, "
        f"lane_basis = [{list(tile.lanes)}, {loops}], subgroup_basis = [{list(tile.waves)}, {loops}]{more}}}>"
    )

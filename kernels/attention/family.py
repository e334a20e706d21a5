# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The members of the family, by element type and head dim, and when each applies."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from typing import ClassVar

from iree.compiler import ir

from prepass.amdgpu.machine import GFX942
from prepass.ir.kernels import ATTENTION, Example, ExpectedFigures, Kernel, KernelDescription, KernelUse
from prepass.ir.kernels.conditions import check_alone, check_in_memory
from prepass.ir.kernels.config import compilation_info
from prepass.ir.match import NoMatch
from prepass.ir.targets import Target
from prepass.kernels.attention.build import build_attention
from prepass.kernels.attention.examples import attention_source
from prepass.kernels.attention.operands import workgroup_tile
from prepass.kernels.attention.problem import AttentionProblem, read_problem
from prepass.kernels.attention.tile import BLOCK, CHUNK, AttentionTile


@dataclass(frozen=True)
class AttentionKernel(Kernel):
    """Attention for one element type and head dim.

    Attributes:
      element: Of Q, K and V: "f16" or "bf16".
      head_dim: Channels of Q, K and V, a multiple of 8.
      waves: Of a workgroup, 32 queries each; fewer where there are fewer queries.
      keys: Of an iteration, a multiple of 32.
      figures: With V as (n, k2).
      fewest_waves: Of a workgroup where more would leave CUs idle; None where fewer are no better.
    """

    kind = ATTENTION
    tunable: ClassVar = {"waves": (4, 6, 8), "keys": (32, 64, 96, 128)}

    element: str
    head_dim: int
    waves: int
    keys: int
    figures: ExpectedFigures
    fewest_waves: int | None = None

    @property
    def description(self) -> KernelDescription:
        """See `Kernel.description`."""
        tile = self._tile(self.waves)
        return KernelDescription(
            summary=f"Attention of {self.element} with a head dim of {self.head_dim}, in its online form.",
            targets=(GFX942.architecture,),
            element_types=(self.element,),
            conditions=(
                f"Q, K and V have {self.head_dim} channels, those of Q and of the result innermost",
                "Q, K and V, and a mask, are in memory, not computed in the same dispatch",
                f"of K and V either the channels are innermost, or the keys, a multiple of {CHUNK}",
                "any number of queries and of keys, static or dynamic, with a mask not both dynamic",
                "there is a loop over queries, which IREE drops where there is one",
                "K and V may be shared by groups of heads: a loop that only Q and the result have",
                "the region leaves the scores as they are; the scale is any number",
            ),
            masks=("added to the scores, f16, bf16 or f32, its keys innermost, broadcast along any other loop",),
            tile={"queries": tile.rows},
            step={"keys": tile.keys},
            workgroup_size=tile.threads,
            lds_bytes=tile.lds_bytes,
            figures=self.figures,
            reason="IREE's own code reads LDS more, rounds weights one by one, and uses no matrix instructions where "
            "keys or channels are no multiple of 16.",
        )

    def match(self, op: ir.Operation, target: Target) -> KernelUse:
        """See `Kernel.match`."""
        problem = read_problem(op)
        self._check(op, problem)
        tile = self._tile(self._waves(problem))
        digest = hashlib.sha256(repr((problem, tile)).encode()).hexdigest()[:12]
        function = f"prepass_attention_{self.element}_{self.head_dim}_{digest}"
        translation = {
            "llvm_func_attrs": ir.DictAttr.get({"amdgpu-waves-per-eu": ir.StringAttr.get(str(_waves_per_simd(tile)))}),
            # It saves fix-ups around every exponential. The attribute has no builder.
            "iree_codegen.denormal_fp_math_f32": ir.Attribute.parse('#iree_codegen.denormal_fp_math<"preserve-sign">'),
        }
        info = compilation_info(workgroup_tile(problem, tile), tile.threads, translation=translation)
        return KernelUse(function, info, functools.partial(build_attention, function, problem, tile))

    def examples(self) -> tuple[Example, ...]:
        """See `Kernel.examples`."""
        return tuple(
            Example(f"{name} {self.element}", attention_source(*sizes, self.head_dim, self.element, **form))
            for name, sizes, form in (
                (f"40x1024x{self.head_dim}", (40, 1024, 1024), {"value_transposed": True}),
                (f"20x4096x{self.head_dim}", (20, 4096, 4096), {"value_transposed": True}),
                (f"20x4096x{self.head_dim}, 77 keys", (20, 4096, 77), {}),
                (f"20x1024x{self.head_dim}, a mask of f32", (20, 1024, 1024), {"mask": "f32"}),
            )
        )

    def _check(self, op: ir.Operation, problem: AttentionProblem) -> None:
        elements = {problem.query.element, problem.key.element, problem.value.element}
        if elements != {self.element}:
            raise NoMatch(f"Q, K and V are of type {' and '.join(sorted(elements))}, not {self.element}", op)
        for channels in (problem.key_channels, problem.value_channels):
            if channels != self.head_dim:
                raise NoMatch(f"the head dim is {channels}, not {self.head_dim}", op)
        if problem.mask is not None and problem.rows is None and problem.keys is None:
            raise NoMatch("queries and keys are dynamic, which with a mask takes too many registers", op)
        check_in_memory(op, (0, 1, 2) if problem.mask is None else (0, 1, 2, 4))
        check_alone(op)

    def _waves(self, problem: AttentionProblem) -> int:
        """Of a workgroup: the fewest where no CU has two workgroups then."""
        if problem.rows is None:
            return self.waves
        blocks, fewest = -(-problem.rows // BLOCK), self.fewest_waves or self.waves
        alone = problem.heads is not None and problem.heads * -(-blocks // fewest) <= GFX942.compute_units
        return min(fewest if alone else self.waves, blocks)

    def _tile(self, waves: int) -> AttentionTile:
        return AttentionTile(waves, self.keys, self.head_dim, self.head_dim)


def _waves_per_simd(tile: AttentionTile) -> int:
    """What the register allocator is to leave room for: two waves, where workgroups that fit into LDS have as many."""
    waves = GFX942.lds_bytes // tile.lds_bytes * tile.waves
    return min(2, max(1, waves // GFX942.simds))


def _member(
    element: str,
    head_dim: int,
    waves: int,
    keys: int,
    cycles: tuple[int, int, int],
    vgprs: int,
    fewest_waves: int | None = None,
) -> AttentionKernel:
    """A member; `cycles` are those of the matrix cores, the VALU and LDS."""
    mfma, valu, lds = cycles
    figures = ExpectedFigures(per="1,024 scores", mfma=mfma, valu=valu, lds=lds, vgprs=vgprs)
    name = f"attention-{element}-{head_dim}"
    return AttentionKernel(name, element, head_dim, waves, keys, figures, fewest_waves, by_default=True)


# One wave on a SIMD computes less at once than two. With many channels, whose products take longest, that is less of a
# loss than idle CUs; with 64 or 96, LLVM would also load the next tile too late.
F16_40 = _member("f16", 40, 8, 64, (416, 448, 244), 112)
F16_64 = _member("f16", 64, 6, 96, (512, 439, 301), 146)
F16_72 = _member("f16", 72, 6, 64, (672, 478, 404), 150)
F16_80 = _member("f16", 80, 5, 64, (704, 484, 420), 142)
F16_96 = _member("f16", 96, 6, 64, (768, 484, 452), 146)
F16_128 = _member("f16", 128, 8, 64, (1024, 504, 580), 248, fewest_waves=4)
BF16_40 = _member("bf16", 40, 8, 64, (416, 524, 244), 118)
BF16_64 = _member("bf16", 64, 6, 96, (512, 505, 301), 150)
BF16_72 = _member("bf16", 72, 6, 64, (672, 540, 404), 158)
BF16_80 = _member("bf16", 80, 5, 64, (704, 550, 420), 153)
BF16_96 = _member("bf16", 96, 6, 64, (768, 552, 452), 156)
BF16_128 = _member("bf16", 128, 6, 96, (1024, 552, 600), 223, fewest_waves=4)

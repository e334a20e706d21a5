# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a workgroup computes, and how its waves share it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from prepass.amdgpu.machine import GFX942
from prepass.kernels.implicit_product.problem import Problem

LANES = GFX942.wave_size
# The matrix instruction: 32x32 results, 8 terms, of which a lane holds 4; two share a read of 8.
BLOCK, TERMS, PER_LANE = 32, 8, 4
MFMA_CYCLES = GFX942.mfma("v_mfma_f32_32x32x8_f16").cycles
STEP = 2 * TERMS
# Channels that a lane stores at once: 16 bytes of f16 or bf16.
TOGETHER = 8
ELEMENT_BYTES, SUM_BYTES = 2, 4
# Rows of LDS are 16 bytes longer than what they hold: 8 neighbouring rows start in different banks then.
PADDING = 8


@dataclass(frozen=True)
class Side:
    """One operand of the product, pixels or filters: rows of `depth` terms.

    Attributes:
      waves: How many waves lie along it.
      blocks: How many blocks of 32 rows a wave has.
    """

    waves: int
    blocks: int

    @property
    def span(self) -> int:
        """Rows of a wave."""
        return self.blocks * BLOCK

    @property
    def rows(self) -> int:
        """Rows of the workgroup."""
        return self.waves * self.span


@dataclass(frozen=True)
class Tile:
    """The tile of a workgroup: pixels by filters.

    Attributes:
      depth: The terms of an iteration, channels of one tap.
      parts: Into how many parts these are cut. The waves of different parts compute the same results, of other terms.
    """

    pixels: Side
    filters: Side
    depth: int
    parts: int = 1

    @property
    def waves(self) -> int:
        """Waves of the workgroup."""
        return self.parts * self.pixels.waves * self.filters.waves

    @property
    def threads(self) -> int:
        """Work items of the workgroup."""
        return self.waves * LANES

    @property
    def blocks(self) -> int:
        """32x32 results of a wave."""
        return self.pixels.blocks * self.filters.blocks

    @property
    def row_elements(self) -> int:
        """Elements of a row in LDS."""
        return self.depth + PADDING

    @property
    def lds_bytes(self) -> int:
        """LDS of the workgroup."""
        staged = (self.pixels.rows + self.filters.rows) * self.row_elements * ELEMENT_BYTES
        sums = self.waves * self.blocks * BLOCK * BLOCK * SUM_BYTES if self.parts > 1 else 0
        return staged + sums

    def copy_width(self, side: Side) -> int:
        """The widest vector, up to 16 bytes, of which each thread copies equally many."""
        return next(width for width in (8, 4, 2) if side.rows * self.depth % (width * self.threads) == 0)

    def copies(self, side: Side) -> int:
        """Vectors of a side that a thread copies to LDS in an iteration."""
        return side.rows * self.depth // (self.copy_width(side) * self.threads)

    def workgroups(self, problem: Problem) -> tuple[int, int]:
        """How many tiles cover the pixels and the filters."""
        return -(-problem.pixels // self.pixels.rows), -(-problem.filters // self.filters.rows)

    @property
    def matrix_cycles(self) -> int:
        """Of the matrix cores of a CU, for an iteration of a workgroup, by the cost model."""
        waves = -(-self.waves // GFX942.simds)
        return waves * self.blocks * (self.depth // (TERMS * self.parts)) * MFMA_CYCLES

    @property
    def lds_cycles(self) -> int:
        """Of the LDS of a CU, for an iteration of a workgroup, by the cost model."""
        read = self.pixels.waves * self.filters.waves * (self.pixels.span + self.filters.span)
        written = self.pixels.rows + self.filters.rows
        return (read + written) * self.depth * ELEMENT_BYTES // GFX942.lds_clock_bytes

    def busiest(self, problem: Problem) -> float:
        """Cycles for a channel of a tap on the CU that has most workgroups.

        As if matrix cores and LDS took turns: few waves, between barriers, overlap little.
        """
        pixels, filters = self.workgroups(problem)
        workgroups = -(-pixels * filters // GFX942.compute_units)
        return workgroups * (self.matrix_cycles + self.lds_cycles) / self.depth


def best_tile(problem: Problem, tiles: Iterable[Tile]) -> Tile:
    """The tile with which the busiest CU is done first, and of equals the first."""
    return min(tiles, key=lambda tile: tile.busiest(problem))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Facts of AMD GPUs that figures and costs are made from: one table per architecture.

Sources:

- "AMD CDNA 3 Architecture", white paper: compute units, operations per clock and CU, caches,
  Infinity Cache bandwidth.
- rocprofiler-compute, analysis configs of gfx942, "System Speed-of-Light": LDS and L2 bandwidth.
- "AMD Instinct MI300X" data sheet: 304 CUs, 2,100 MHz peak engine clock, 5.3 TB/s.
- "AMD Instinct MI300 Instruction Set Architecture" (CDNA3), sections 2 and 3: registers, LDS.
- LLVM, `AMDGPUBaseInfo.cpp` and `SISchedule.td` (SIDPGFX942FullSpeedModel): allocation
  granules, passes of each MFMA, rate of each kind of VALU instruction.
- AMD Matrix Instruction Calculator, https://github.com/ROCm/amd_matrix_instruction_calculator:
  shapes and cycles of each MFMA.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from prepass.errors import PrepassError

_MFMA = re.compile(r"v_s?mfmac?_[a-z]+\d+_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_?(?:(?P<blocks>\d+)b_)?(?P<type>\w+)$")


@dataclass(frozen=True)
class Mfma:
    """A matrix instruction: `blocks` products of m×k by k×n.

    Attributes:
      element: Type of the factors: `f16`, `bf16`, `f32`, `xf32`, `f64`, `i8`, `fp8`, `bf8`.
      cycles: How long it keeps the matrix core of its SIMD.
    """

    m: int
    n: int
    k: int
    blocks: int
    element: str
    cycles: int

    @property
    def flops(self) -> int:
        """Operations of the wave, a multiplication and an addition counted as two."""
        return 2 * self.m * self.n * self.k * self.blocks


@dataclass(frozen=True)
class Machine:
    """A GPU.

    Attributes:
      compute_units: Of the whole GPU.
      clock_hz: Peak engine clock.
      wave_slots: Most waves that a SIMD holds.
      vgprs: Vector registers of a lane that the waves of a SIMD share, accumulation registers included.
      sgpr_waves: Waves per SIMD for at most so many scalar registers.
      barrier_workgroups: Most workgroups of several waves on a CU.
      lds_bytes: Of a CU.
      lds_clock_bytes: What the LDS moves in a clock.
      l1_clock_bytes: What the vector L1 cache of a CU moves in a clock.
      address_lanes: Lanes whose addresses are processed in a clock.
      matrix_flops: Operations of the matrix cores of a CU in a clock, by type of the factors.
      vector_flops: Operations of the VALUs of a CU in a clock, f32.
      bandwidths: Bytes per second of the whole GPU, from the farthest memory to the nearest.
    """

    name: str
    architecture: str
    compute_units: int
    clock_hz: float
    simds: int
    wave_size: int
    wave_slots: int
    vgprs: int
    vgpr_granule: int
    sgpr_waves: tuple[tuple[int, int], ...]
    barrier_workgroups: int
    lds_bytes: int
    lds_granule: int
    lds_clock_bytes: int
    l1_clock_bytes: int
    address_lanes: int
    valu_cycles: int
    transcendental_cycles: int
    matrix_flops: Mapping[str, int] = field(hash=False)
    vector_flops: int
    bandwidths: Mapping[str, float] = field(hash=False)

    def peak_flops(self, element: str | None) -> float:
        """Operations per second of the matrix cores for a type, or of the VALUs in f32 for None."""
        per_clock = self.vector_flops if element is None else self.matrix_flops[element]
        return per_clock * self.compute_units * self.clock_hz

    def mfma(self, name: str) -> Mfma:
        """A matrix instruction by its name.

        Raises PrepassError for a name that cannot be read.
        """
        match = _MFMA.match(name)
        elements = (
            [part for part in match["type"].removesuffix("_1k").split("_") if part in self.matrix_flops]
            if match
            else []
        )
        if match is None or not elements:
            raise PrepassError(f"{name}: not a matrix instruction of {self.architecture}")
        m, n, k, blocks = (int(match[part] or 1) for part in ("m", "n", "k", "blocks"))
        return Mfma(m, n, k, blocks, elements[0], _mfma_cycles(m, k, blocks, elements[0]))


def _mfma_cycles(m: int, k: int, blocks: int, element: str) -> int:
    """Four for each pass."""
    if m == 4:
        return 16 if element == "f64" else 8
    if element in ("f32", "f64") or blocks > 1:
        return 64 if m == 32 else 32
    return 32 if m == 32 else 16


GFX942 = Machine(
    name="MI300X",
    architecture="gfx942",
    compute_units=304,
    clock_hz=2.1e9,
    simds=4,
    wave_size=64,
    wave_slots=8,
    vgprs=512,
    vgpr_granule=8,
    sgpr_waves=((100, 8), (112, 7)),
    barrier_workgroups=16,
    lds_bytes=65536,
    lds_granule=512,
    lds_clock_bytes=128,
    # Assumed, as on GCN: what reaches registers. rocprofiler-compute takes 128 for the peak of the cache.
    l1_clock_bytes=64,
    # Assumed, as on GCN: a quarter of a wave.
    address_lanes=16,
    # A SIMD has 16 lanes; packed f32 does twice the work in the same time.
    valu_cycles=4,
    transcendental_cycles=16,
    matrix_flops={
        "f64": 256,
        "f32": 256,
        "xf32": 1024,
        "f16": 2048,
        "bf16": 2048,
        "fp8": 4096,
        "bf8": 4096,
        "i8": 4096,
    },
    vector_flops=256,
    bandwidths={
        "HBM": 5.3e12,
        "Infinity Cache": 17.2e12,
        # 16 channels of 128 bytes a clock in each of eight XCDs.
        "L2": 8 * 16 * 128 * 2.1e9,
        "L1": 304 * 64 * 2.1e9,
    },
)

_MACHINES = {machine.architecture: machine for machine in (GFX942,)}


def machine_for(architecture: str) -> Machine | None:
    """The facts of an architecture such as `gfx942`, or None where they are not known."""
    return _MACHINES.get(architecture)

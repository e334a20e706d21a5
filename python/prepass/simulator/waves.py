# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The registers of waves that run the same instructions at the same time.

Source: "AMD Instinct MI300 Instruction Set Architecture Reference Guide" (CDNA3), chapter 3, "Kernel State".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prepass.simulator.lds import Lds
from prepass.simulator.memory import Memory

LANES = 64
# Numbers of scalar registers as operands encode them; `s0` is 0.
VCC, M0, EXEC = 106, 124, 126
SCALAR_REGISTERS = 128
# What registers hold before they are written: a NaN as f32 and as either f16 half, and no valid address.
POISON = np.uint32(0x7FD17E5A)


class Waves:
    """`count` waves in lockstep.

    Attributes:
      vector: Vector registers, uint32[registers, count, 64]; accumulation registers follow the others.
      scalar: Scalar registers, uint32[128, count], VCC, M0 and EXEC among them.
      scc: The scalar condition code, bool[count].
      mask: EXEC as bool[count, 64]; `full` says that it is all true.
      flush: For "f32" and "f16" (and f64), whether denormal inputs and results count as zero.
      scratch: Memory of each lane for itself, uint32[words, count, 64].
      workgroup: Of each wave, as a row of `lds`.
      wave: Of each wave, its number in the workgroup.
      at: The block that runs next.
    """

    def __init__(
        self,
        vector: np.ndarray,
        scalar: np.ndarray,
        scc: np.ndarray,
        scratch: np.ndarray,
        workgroup: np.ndarray,
        wave: np.ndarray,
        lds: Lds,
        memory: Memory,
        denormals: int,
    ) -> None:
        self.vector = vector
        self.scalar = scalar
        self.scc = scc
        self.scratch = scratch
        self.workgroup = workgroup
        self.wave = wave
        self.lds = lds
        self.memory = memory
        self.at = 0
        self.count = len(workgroup)
        self.set_denormals(denormals)
        self._make_views()
        self.exec_changed()

    def _make_views(self) -> None:
        # A view costs more than a small operation on it, so there is one of each type.
        self.vector_i32 = self.vector.view(np.int32)
        self.vector_f32 = self.vector.view(np.float32)
        self.vector_f16 = self.vector.view(np.float16)
        self.scalar_columns = self.scalar[:, :, None]
        self.scalar_i32 = self.scalar.view(np.int32)

    def set_denormals(self, mode: int) -> None:
        """Set the four bits of MODE that say for f32 (low two), f16 and f64 whether denormals are allowed."""
        self.denormals = mode
        # The low bit allows them as inputs, the high one as results.
        self.flush_inputs = {"f32": not mode & 1, "f16": not mode & 4, "f64": not mode & 4}
        self.flush_results = {"f32": not mode & 2, "f16": not mode & 8, "f64": not mode & 8}

    def exec_changed(self) -> None:
        """Bring `mask` up to date after a write to EXEC."""
        self.mask = lanes_of(self.scalar[EXEC], self.scalar[EXEC + 1])
        self.full = bool(self.mask.all())

    def write(self, register: int, value: np.ndarray) -> None:
        """Write a vector register in the active lanes; the value is uint32 and broadcasts."""
        if self.full:
            self.vector[register] = value
        else:
            np.copyto(self.vector[register], value, where=self.mask)

    def select(self, chosen: np.ndarray, at: int) -> Waves:
        """The waves where `chosen` is true, a copy that goes on at block `at`."""
        waves = Waves(
            np.ascontiguousarray(self.vector[:, chosen]),
            np.ascontiguousarray(self.scalar[:, chosen]),
            self.scc[chosen],
            np.ascontiguousarray(self.scratch[:, chosen]),
            self.workgroup[chosen],
            self.wave[chosen],
            self.lds,
            self.memory,
            self.denormals,
        )
        waves.at = at
        return waves


def merge(parts: Sequence[Waves]) -> Waves:
    """One group of all the waves; they have reached the same block and the same MODE."""
    first = parts[0]
    waves = Waves(
        np.concatenate([part.vector for part in parts], axis=1),
        np.concatenate([part.scalar for part in parts], axis=1),
        np.concatenate([part.scc for part in parts]),
        np.concatenate([part.scratch for part in parts], axis=1),
        np.concatenate([part.workgroup for part in parts]),
        np.concatenate([part.wave for part in parts]),
        first.lds,
        first.memory,
        first.denormals,
    )
    waves.at = first.at
    return waves


def lanes_of(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The bits of a pair of scalar registers, bool[count, 64], lane 0 first."""
    words = np.stack([low, high], axis=-1)
    return np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little").view(bool)


def bits_of(lanes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The reverse of `lanes_of`."""
    words = np.packbits(lanes, axis=-1, bitorder="little").view(np.uint32)
    return words[:, 0], words[:, 1]

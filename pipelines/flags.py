# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Flags that several pipelines are meant to be compiled with."""

from prepass.pipeline.named import CPU, Flag

DATA_TILING = Flag(
    "--iree-opt-data-tiling=true",
    "Matrices are packed into the tiles that the processor reads: a transformer block of SDXL takes half the time.",
    CPU,
)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which forms of contractions a target computes fast. docs/unit-dims.md has the measurements."""

from __future__ import annotations

from prepass.ir.targets.target import Target


def wants_batch_of_one(target: Target) -> bool:
    """Whether a target computes a batch of one matrix faster than the matrix alone.

    At O0 IREE gives llvm-cpu the batch with the weight transposed in memory, and the matrix
    with one that is read transposed, in bf16 at a fraction of the speed. From O2 on IREE
    drops the batch itself, and the kernels are the same.
    """
    return target.backend == "llvm-cpu"

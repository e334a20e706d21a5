# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which forms of contractions a target computes fast. docs/contractions.md has the measurements."""

from __future__ import annotations

from prepass.ir.targets.target import Target


def wants_batch_of_one(target: Target) -> bool:
    """Whether a target computes a batch of one matrix faster than the matrix alone.

    At O0 IREE gives llvm-cpu the batch with the weight transposed in memory, and the matrix
    with one that is read transposed, and with a bias and casts in the loop, at half the speed
    or, in bf16, a tenth. From O2 on IREE drops the batch itself.
    """
    return target.backend == "llvm-cpu"

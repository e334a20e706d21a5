# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ROCm kernels and the table of their names. A kernel is imported when the table is first read.

The first kernel of the table that matches an op is taken, so the better of two stands above the other.
"""

KERNELS: dict[str, str] = {
    "convolution": "prepass.kernels.convolution.kernel:CONVOLUTION_KERNEL",
    "skinny-matmul": "prepass.kernels.convolution.skinny_matmul:SKINNY_MATMUL",
    "staged-matmul": "prepass.kernels.convolution.staged_matmul:STAGED_MATMUL",
    "direct-matmul": "prepass.kernels.contraction.matmul:MATMUL",
}

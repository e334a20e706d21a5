# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ROCm kernels and the table of their names. A kernel is imported when the table is first read.

The first kernel of the table that matches an op is taken, so the better of two stands above the other.
"""

KERNELS: dict[str, str] = {
    "attention-f16-40": "prepass.kernels.attention.family:F16_40",
    "attention-f16-64": "prepass.kernels.attention.family:F16_64",
    "attention-f16-72": "prepass.kernels.attention.family:F16_72",
    "attention-f16-80": "prepass.kernels.attention.family:F16_80",
    "attention-f16-96": "prepass.kernels.attention.family:F16_96",
    "attention-f16-128": "prepass.kernels.attention.family:F16_128",
    "attention-bf16-40": "prepass.kernels.attention.family:BF16_40",
    "attention-bf16-64": "prepass.kernels.attention.family:BF16_64",
    "attention-bf16-72": "prepass.kernels.attention.family:BF16_72",
    "attention-bf16-80": "prepass.kernels.attention.family:BF16_80",
    "attention-bf16-96": "prepass.kernels.attention.family:BF16_96",
    "attention-bf16-128": "prepass.kernels.attention.family:BF16_128",
    "convolution": "prepass.kernels.convolution.kernel:CONVOLUTION_KERNEL",
    "skinny-matmul": "prepass.kernels.contraction.skinny_matmul:SKINNY_MATMUL",
    "staged-matmul": "prepass.kernels.contraction.staged_matmul:STAGED_MATMUL",
    "direct-matmul": "prepass.kernels.contraction.matmul:MATMUL",
}

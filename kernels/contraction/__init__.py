# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels for matrix products.

`matmul` stands alone, and loads from memory to registers; `staged_matmul` and `skinny_matmul` go through LDS, as
implicit products of single pixels.
"""

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention in its online form, a family of kernels by element type and head dim.

`family` has the members and their descriptions; `problem` reads an op, `tile` lays out a workgroup, and the others
build the function: `staging` copies K and V to LDS, `scores` multiplies Q by K and masks, `softmax` keeps the running
maximum and sum, `values` multiplies by V, and `build` joins them.
"""

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions with channels innermost, as implicit matrix products, and matrix products as convolutions of a pixel.

`problem` says what is computed; `match`, `read_problem`, `steps` and `views` read it from a dispatch; `tile` cuts it to
workgroups; `rewrite` makes the new body of the dispatch from `stage` (memory to LDS), `product` (LDS to sums) and
`epilogue` (sums to memory), and `launch` its workgroup count. `implicit_product` joins these; `kernel`,
`staged_matmul` and `skinny_matmul` are the kernels.
"""

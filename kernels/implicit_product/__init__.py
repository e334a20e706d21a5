# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of pixels by filters, what kernels for convolutions and for matrix products share.

A matrix product is a convolution of single pixels: rows count as pixels, columns as filters, terms as channels.

`problem` says what is computed; `match`, `read_problem`, `steps` and `views` read it from a dispatch; `tile` cuts it to
workgroups; `rewrite` makes the new body of the dispatch from `stage` (memory to LDS), `product` (LDS to sums) and
`epilogue` (sums to memory), and `launch` its workgroup count. `kernel` joins these, and is what kernels derive from.
"""

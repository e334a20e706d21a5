# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions with channels innermost, as implicit matrix products.

`problem` says what is computed, `views`, `match` and `steps` read it from a dispatch, `tile` cuts it to workgroups, and
`rewrite` makes the new body of the dispatch from `stage` (memory to LDS), `product` (LDS to sums) and `epilogue`
(sums to memory). `kernel` is the family.
"""

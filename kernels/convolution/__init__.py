# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel for convolutions with channels innermost, an implicit matrix product."""

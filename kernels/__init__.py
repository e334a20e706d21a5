# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ROCm kernels and the table that says when each applies."""

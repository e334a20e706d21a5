# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Code for AMD GPUs as the compiler writes it."""

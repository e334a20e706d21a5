# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention: recognised in a program, built as one op, and read back from it."""

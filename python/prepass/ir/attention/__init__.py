# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention: recognized in a program, built as one op, and read back from it."""

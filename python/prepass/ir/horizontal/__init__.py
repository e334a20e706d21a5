# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Horizontal fusion: contractions that share an operand, computed by one op."""

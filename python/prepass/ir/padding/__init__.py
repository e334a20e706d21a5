# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors with a margin of one number around them."""

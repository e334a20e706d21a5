# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes, their options, and pipelines of them."""

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checking that results stay the same, and counting what changed."""

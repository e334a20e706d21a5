# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops without their loops and dims of extent 1."""

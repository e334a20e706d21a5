# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The host's side of a program: what it dispatches, on which buffers, in which order."""

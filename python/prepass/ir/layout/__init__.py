# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layout of every tensor of a function, chosen at once: what is the same axis, what goes last, and what follows."""

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Casts between element types: of scalars in bodies, of whole tensors, and computing in a wider type."""

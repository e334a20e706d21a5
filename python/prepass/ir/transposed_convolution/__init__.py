# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transposed convolutions: recognized as exporters write them, and built as convolutions of their phases."""

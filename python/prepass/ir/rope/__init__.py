# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rotary embeddings: recognized in a program whatever their spelling, and built in a form that vectorizes."""

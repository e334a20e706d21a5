# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Driving IREE phase by phase in one process."""

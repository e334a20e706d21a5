# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints a tuning table for the attention of configure_attention.mlir, made with the IREE that is installed.

Its choice is a config, or with the argument `default` IREE's own.
"""

import sys

from iree.compiler import version

from prepass.ir.targets.attention_shape import AttentionShape
from prepass.ir.targets.gfx942 import AttentionTile
from prepass.ir.targets.tuning_table import ATTENTION, Choice, Entry, TuningTable

shape = AttentionShape((4,), 1024, 64, 64, 1024, "f16", value_transposed=True)
choice = Choice() if "default" in sys.argv else Choice(AttentionTile(waves=2, rows=16, keys=32))
print(TuningTable("gfx942", version.VERSION, (Entry(ATTENTION, shape, choice),)).text(), end="")

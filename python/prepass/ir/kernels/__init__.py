# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What kernels stand on: their description, builders for their MLIR, and how they get into a program.

`kernel` says what a kernel is, `kinds` what ops they are for, `builders` makes their MLIR, `config` the config that
an op needs, `select` chooses one for an op and `inject` puts it into the executable.
"""

from prepass.ir.kernels.kernel import (
    DispatchUse,
    Example,
    ExpectedFigures,
    Kernel,
    KernelDescription,
    KernelUse,
    OpKind,
)
from prepass.ir.kernels.kinds import ATTENTION, CONTRACTION, CONVOLUTION

__all__ = [
    "ATTENTION",
    "CONTRACTION",
    "CONVOLUTION",
    "DispatchUse",
    "Example",
    "ExpectedFigures",
    "Kernel",
    "KernelDescription",
    "KernelUse",
    "OpKind",
]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MLIR passes in Python for the preprocessing pipeline of IREE.

import prepass
vmfb = prepass.compile("model.mlir", pipeline="builtin.module(prepass-raise-attention)", flags=[...])
"""

from typing import TYPE_CHECKING

from prepass import turbine
from prepass.compiler.api import compile
from prepass.compiler.runtime import load, run
from prepass.errors import CompileError, PassFailure, PipelineError, PrepassError
from prepass.pipeline.base import Pass, PassContext
from prepass.pipeline.builder import Pipeline
from prepass.pipeline.options import option

if TYPE_CHECKING:
    from prepass.analysis.analyze import analyze

__version__ = "0.1.0"

__all__ = [
    "CompileError",
    "Pass",
    "PassContext",
    "PassFailure",
    "Pipeline",
    "PipelineError",
    "PrepassError",
    "analyze",
    "compile",
    "load",
    "option",
    "run",
    "turbine",
]


def __getattr__(name: str) -> object:
    # Programs that compile need none of it, and start without.
    if name == "analyze":
        from prepass.analysis.analyze import analyze

        return analyze
    raise AttributeError(f"module 'prepass' has no attribute '{name}'")

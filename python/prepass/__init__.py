# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MLIR passes in Python for the preprocessing pipeline of IREE.

import prepass
vmfb = prepass.compile("model.mlir", pipeline="builtin.module(prepass-raise-attention)", flags=[...])
"""

from prepass import turbine
from prepass.analysis.analyze import analyze
from prepass.compiler.api import compile
from prepass.compiler.runtime import load, run
from prepass.errors import CompileError, PassFailure, PipelineError, PrepassError
from prepass.pipeline.base import Pass, PassContext
from prepass.pipeline.builder import Pipeline
from prepass.pipeline.options import option

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

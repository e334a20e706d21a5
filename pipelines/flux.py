# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pipeline for diffusion transformers such as Flux.

The counts in the reasons are static: dispatches of one double and one single block of Flux with what is around them,
for gfx942 without an optimization level, each step or flag added to those above it. O3 gives the same in the end.
"""

from prepass.pipeline.named import ROCM, Flag, NamedPipeline, Step
from prepass.pipelines.flags import DATA_TILING

PIPELINE = NamedPipeline(
    "prepass-flux",
    "Diffusion transformers, such as Flux.",
    (
        Step("prepass-default", "What is safe on any model: 96 dispatches become 53."),
        Step(
            "prepass-select-kernels",
            "Attention by kernels: 1,024 scores of bf16 with 128 channels take 552 cycles of the vector ALU and 600 of "
            "LDS, not 956 and 656, beside 1024 of the matrix cores.",
        ),
    ),
    (
        Flag(
            "--iree-dispatch-creation-enable-aggressive-fusion=true",
            "A norm is one dispatch, as elementwise ops with several users join their producers: 47; "
            "llvm-cpu does not compile some of what that makes of dynamic shapes.",
            ROCM,
        ),
        Flag(
            "--iree-opt-outer-dim-concat=true",
            "What is joined in the outermost dim is written in place: 46, and 286 MB of transient memory, not 399.",
            ROCM,
        ),
        DATA_TILING,
    ),
)

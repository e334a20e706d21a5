# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pipeline for diffusion transformers such as Flux.

The counts in the reasons are static: dispatches of one double and one single block of Flux with what is around them,
for gfx942 without an optimization level, each step or flag added to those above it.
"""

from prepass.pipeline.named import Flag, NamedPipeline, Step

PIPELINE = NamedPipeline(
    "prepass-flux",
    "Diffusion transformers, such as Flux.",
    (Step("prepass-default", "What is safe on any model: 96 dispatches become 61."),),
    (
        Flag(
            "--iree-dispatch-creation-enable-aggressive-fusion=true",
            "A norm is one dispatch, as elementwise ops with several users join their producers: 54.",
        ),
        Flag(
            "--iree-opt-generalize-matmul=true",
            "The last block computes only the rows that are read, in the layout they are read in: 53.",
        ),
    ),
)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pipeline for transformers: language models and text encoders.

The counts in the reasons are static: dispatches of CLIP-L for gfx942 without an optimization level, each step or flag
added to those above it.
"""

from prepass.pipeline.named import Flag, NamedPipeline, Step

PIPELINE = NamedPipeline(
    "prepass-llm",
    "Transformers, such as language models and text encoders.",
    (Step("prepass-default", "What is safe on any model: 199 dispatches become 163."),),
    (
        Flag(
            "--iree-dispatch-creation-enable-aggressive-fusion=true",
            "A LayerNorm is one dispatch, as elementwise ops with several users join their producers: 135.",
        ),
        Flag(
            "--iree-opt-generalize-matmul=true",
            "A projection writes its result in the layout of heads: 111.",
        ),
    ),
)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pipeline for transformers: language models and text encoders.

The counts in the reasons are static: dispatches of CLIP-L for gfx942 without an optimization level, each step or flag
added to those above it. O3 gives the same in the end.
"""

from prepass.pipeline.named import ROCM, Flag, NamedPipeline, Step
from prepass.pipelines.flags import DATA_TILING

PIPELINE = NamedPipeline(
    "prepass-llm",
    "Transformers, such as language models and text encoders.",
    (
        Step("canonicalize", "Folds what exporters leave behind, before attention is looked for."),
        Step("cse", "Equal producers become one value, and matchers compare values by identity."),
        Step("prepass-raise-attention", "Keys can be padded once attention is one op."),
        Step(
            "prepass-pad-attention-keys",
            "Attention of 1500 frames uses matrix instructions, for a copy of what K and V are computed from; before "
            "the projections are joined.",
        ),
        Step("prepass-default", "What is safe on any model: 199 dispatches become 115."),
        Step(
            "prepass-select-kernels{kernels=attention-f16-64,attention-bf16-64,skinny-matmul}",
            "Attention of 64 channels with 439 cycles of the vector ALU for 1,024 scores, not 546, and linear layers "
            "of few rows; with 128 channels and a mask, what prepass-configure-attention makes is as good in f16.",
        ),
    ),
    (
        Flag(
            "--iree-dispatch-creation-enable-aggressive-fusion=true",
            "A LayerNorm is one dispatch, as elementwise ops with several users join their producers: 87; "
            "llvm-cpu does not compile some of what that makes of dynamic shapes.",
            ROCM,
        ),
        DATA_TILING,
    ),
)

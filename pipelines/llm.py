# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pipeline for transformers: language models and text encoders.

The counts in the reasons are static: dispatches of CLIP-L for gfx942 without an optimization level, each step or flag
added to those above it, where no other model is named. O3 gives the same in the end.
"""

from prepass.pipeline.named import ROCM, Flag, NamedPipeline, Step

PIPELINE = NamedPipeline(
    "prepass-llm",
    "Transformers, such as language models and text encoders.",
    (
        Step("prepass-default", "What is safe on any model: 199 dispatches become 163."),
        Step(
            "prepass-pad-attention-keys",
            "Attention of 1500 frames uses matrix instructions, for a copy of what K and V are computed from; before "
            "the next steps, so that the projections are joined that read the copy.",
        ),
        Step("cse", "Keys and values of one tensor are padded once."),
        Step(
            "prepass-fuse-horizontal-contractions",
            "Q, K and V are one dispatch, in the layout of heads: 115; their weights are packed once, at load.",
        ),
        Step(
            "prepass-fold-contraction-layouts",
            "So is what has no other beside it: the block of a cross attention takes 4 dispatches, 5 without.",
        ),
        Step("canonicalize", "Removes reshapes that only the separate projections needed."),
        Step("cse", "Packed weights and inits that are equal become one."),
    ),
    (
        Flag(
            "--iree-dispatch-creation-enable-aggressive-fusion=true",
            "A LayerNorm is one dispatch, as elementwise ops with several users join their producers: 87; "
            "llvm-cpu does not compile some of what that makes of dynamic shapes.",
            ROCM,
        ),
    ),
)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pipeline to start with: safe on any model and any target."""

from prepass.pipeline.named import NamedPipeline, Step

PIPELINE = NamedPipeline(
    "prepass-default",
    "Everything of prepass that is safe on any model and any target.",
    (
        Step(
            "prepass-strip-assertions{scope=linalg}",
            "Assertions in kernels report nothing, but keep equal work apart; those of functions stay.",
        ),
        Step("prepass-merge-constants", "Equal tables under several names become one value in the next cse."),
        Step("canonicalize", "Folds what exporters leave behind, so that patterns meet fewer spellings."),
        Step("cse", "Equal producers become one value, and matchers compare values by identity."),
        Step("prepass-raise-attention", "One attention op in place of two contractions and a softmax between them."),
        Step("prepass-decompose-attention", "A CPU is faster with two contractions where all scores fit its cache."),
        Step("prepass-transpose-attention-keys", "A CPU's kernel would transpose each tile of K for a few queries."),
        Step(
            "prepass-fuse-query-rope",
            "On gfx942 a query is rotated in its attention: with the next step Flux takes 17 dispatches less.",
        ),
        Step("prepass-canonicalize-rope", "Rotary embeddings are one dispatch each, and load rows: 3 to 11 otherwise."),
        Step("prepass-split-gated-projections", "The gate of a feed-forward block fuses with a projection."),
        Step(
            "prepass-promote-accumulators",
            "Sums in f16 overflow, contractions in f16 do not compile for gfx942; after raising, which removes some.",
        ),
        Step(
            "prepass-simplify-casts", "Contractions read narrow operands, and the two means of a GroupNorm come equal."
        ),
        Step(
            "prepass-fold-unit-dims",
            "Linear layers of batch 1 fuse with casts and biases at every level: CLIP-L takes 163 dispatches, not 199.",
        ),
        Step("canonicalize", "Removes reshapes and fills that only the decomposed form needed."),
        Step("cse", "The equal means become one, which saves each GroupNorm a dispatch."),
        Step(
            "prepass-fuse-horizontal-contractions",
            "Q, K and V, gates, and all projections of a prompt or time step: the UNet of SDXL takes 963 dispatches, "
            "not 1327.",
        ),
        Step(
            "prepass-fold-contraction-layouts",
            "Contractions that are on their own write heads themselves, and no weight is copied for each batch.",
        ),
        Step(
            "prepass-configure-reductions",
            "On gfx942, a norm over the outermost dim would take the compiler forever where it is one dispatch.",
        ),
        Step(
            "prepass-vectorize-lookups", "Embeddings load whole rows; last, as the form is no longer a plain generic."
        ),
    ),
)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The passes of prepass. A pass is imported when a pipeline first names it."""

PASSES: dict[str, str] = {
    "prepass-canonicalize-rope": "prepass.passes.canonicalize_rope:CanonicalizeRopePass",
    "prepass-configure-attention": "prepass.passes.configure_attention:ConfigureAttentionPass",
    "prepass-configure-contractions": "prepass.passes.configure_contractions:ConfigureContractionsPass",
    "prepass-configure-convolutions": "prepass.passes.configure_convolutions:ConfigureConvolutionsPass",
    "prepass-configure-reductions": "prepass.passes.configure_reductions:ConfigureReductionsPass",
    "prepass-configure-rope": "prepass.passes.configure_rope:ConfigureRopePass",
    "prepass-decompose-attention": "prepass.passes.decompose_attention:DecomposeAttentionPass",
    "prepass-decompose-transposed-convolutions": (
        "prepass.passes.decompose_transposed_convolutions:DecomposeTransposedConvolutionsPass"
    ),
    "prepass-fold-contraction-layouts": "prepass.passes.fold_contraction_layouts:FoldContractionLayoutsPass",
    "prepass-fold-padding": "prepass.passes.fold_padding:FoldPaddingPass",
    "prepass-fold-unit-dims": "prepass.passes.fold_unit_dims:FoldUnitDimsPass",
    "prepass-fuse-horizontal-contractions": (
        "prepass.passes.fuse_horizontal_contractions:FuseHorizontalContractionsPass"
    ),
    "prepass-fuse-query-rope": "prepass.passes.fuse_query_rope:FuseQueryRopePass",
    "prepass-guard-padding": "prepass.passes.guard_padding:GuardPaddingPass",
    "prepass-merge-constants": "prepass.passes.merge_constants:MergeConstantsPass",
    "prepass-pad-attention-keys": "prepass.passes.pad_attention_keys:PadAttentionKeysPass",
    "prepass-pad-input-channels": "prepass.passes.pad_input_channels:PadInputChannelsPass",
    "prepass-pad-output-channels": "prepass.passes.pad_output_channels:PadOutputChannelsPass",
    "prepass-promote-accumulators": "prepass.passes.promote_accumulators:PromoteAccumulatorsPass",
    "prepass-raise-attention": "prepass.passes.raise_attention:RaiseAttentionPass",
    "prepass-select-kernels": "prepass.passes.select_kernels:SelectKernelsPass",
    "prepass-simplify-casts": "prepass.passes.simplify_casts:SimplifyCastsPass",
    "prepass-split-gated-projections": "prepass.passes.split_gated_projections:SplitGatedProjectionsPass",
    "prepass-strip-assertions": "prepass.passes.strip_assertions:StripAssertionsPass",
    "prepass-transpose-attention-keys": "prepass.passes.transpose_attention_keys:TransposeAttentionKeysPass",
    "prepass-transpose-convolutions": "prepass.passes.transpose_convolutions:TransposeConvolutionsPass",
    "prepass-unfold-patches": "prepass.passes.unfold_patches:UnfoldPatchesPass",
    "prepass-vectorize-lookups": "prepass.passes.vectorize_lookups:VectorizeLookupsPass",
}

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pipeline for diffusion models with convolutions: the UNet and the VAE of SDXL.

The counts in the reasons are static, for gfx942: the decoder of the VAE at a latent of 64x64, with all flags and
without the one.
"""

from prepass.pipeline.named import ROCM, Flag, NamedPipeline, Step
from prepass.pipelines.flags import DATA_TILING

PIPELINE = NamedPipeline(
    "prepass-sdxl",
    "Models of convolutions and attention, such as the UNet and the VAE of SDXL.",
    (
        Step("prepass-default", "What is safe on any model; it leaves convolutions as they are."),
        Step("prepass-decompose-transposed-convolutions", "Products with the zeros of spread inputs are not computed."),
        Step("prepass-unfold-patches", "Patches that do not overlap are rows of a matrix product."),
        Step("prepass-pad-output-channels", "Single output channels use matrix instructions too."),
        Step("prepass-fold-padding", "Padding stands right before its convolution, into which IREE fuses it."),
        Step("prepass-transpose-convolutions", "Convolutions read whole vectors of channels, and so do their norms."),
        Step("canonicalize", "Removes what only the former layout needed."),
        Step("cse", "Transposes of one value become one."),
        Step("prepass-pad-input-channels", "Images of 3 channels are loaded 8 bytes at a time, not 2."),
        Step("prepass-guard-padding", "The reshape behind a norm stays before the padding, which fuses."),
        Step(
            "prepass-select-kernels",
            "Attention and convolutions that the matrix cores bound: 640 channels at 64x64 take 115 thousand cycles of "
            "the busiest CU, not 184.",
        ),
    ),
    (
        Flag(
            "--iree-dispatch-creation-enable-aggressive-fusion=true",
            "Elementwise ops with several users join their producers: 103 dispatches, 133 without; "
            "llvm-cpu does not compile some of what that makes of dynamic shapes.",
            ROCM,
        ),
        Flag(
            "--iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops=true",
            "Convolutions read padded inputs in place: 103 dispatches, 136 without, "
            "and 369 MB of transient memory, not 404; llvm-cpu does not compile some such convolutions.",
            ROCM,
        ),
        Flag(
            "--iree-opt-outer-dim-concat=false",
            "Joining embeddings in the outermost dim takes transposes, and O2 and O3 ask for it.",
        ),
        DATA_TILING,
    ),
)

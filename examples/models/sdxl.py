# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of SDXL: both text encoders, the UNet and the decoder of the VAE.

Configs: those of stabilityai/stable-diffusion-xl-base-1.0.
"""

from __future__ import annotations

from typing import Any

import torch
from diffusers import AutoencoderKL, UNet2DConditionModel
from diffusers.models.attention_processor import AttnProcessor, AttnProcessor2_0
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection

from .base import Instance, Model, Settings, repeated

_TOKENS = 77
_PROCESSORS = {"sdpa": AttnProcessor2_0, "eager": AttnProcessor}
_VOCABULARY = {"vocab_size": 49408, "bos_token_id": 49406, "eos_token_id": 49407, "pad_token_id": 1}
_TEST_VOCABULARY = {"vocab_size": 1000, "bos_token_id": 998, "eos_token_id": 999}
_CLIP1 = {
    **_VOCABULARY,
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "max_position_embeddings": _TOKENS,
    "hidden_act": "quick_gelu",
    "projection_dim": 768,
}
_CLIP2 = {
    **_CLIP1,
    "hidden_size": 1280,
    "intermediate_size": 5120,
    "num_hidden_layers": 32,
    "num_attention_heads": 20,
    "hidden_act": "gelu",
    "projection_dim": 1280,
}
_TEST_CLIP = {
    **_TEST_VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "projection_dim": 32,
}
_UNET = {
    "sample_size": 128,
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
    "up_block_types": ("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
    "block_out_channels": (320, 640, 1280),
    "layers_per_block": 2,
    "transformer_layers_per_block": (1, 2, 10),
    "attention_head_dim": (5, 10, 20),  # How many heads there are: diffusers' name is a mistake that it keeps.
    "cross_attention_dim": 2048,
    "use_linear_projection": True,
    "addition_embed_type": "text_time",
    "addition_time_embed_dim": 256,
    "projection_class_embeddings_input_dim": 2816,
}
_TEST_UNET = {
    "sample_size": 16,
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
    "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
    "block_out_channels": (32, 64),
    "layers_per_block": 1,
    "transformer_layers_per_block": (1, 1),
    "attention_head_dim": (2, 4),
    "norm_num_groups": 8,
    "cross_attention_dim": 64,
    "addition_time_embed_dim": 8,
    "projection_class_embeddings_input_dim": 80,
}
_VAE = {
    "sample_size": 1024,
    "down_block_types": ("DownEncoderBlock2D",) * 4,
    "up_block_types": ("UpDecoderBlock2D",) * 4,
    "block_out_channels": (128, 256, 512, 512),
    "layers_per_block": 2,
    "latent_channels": 4,
    "scaling_factor": 0.13025,
}
_TEST_VAE = {
    "sample_size": 32,
    "down_block_types": ("DownEncoderBlock2D",) * 2,
    "up_block_types": ("UpDecoderBlock2D",) * 2,
    "block_out_channels": (16, 32),
    "layers_per_block": 1,
    "norm_num_groups": 8,
}


class _TextEncoder(torch.nn.Module):
    """Tokens to the hidden states that the UNet attends to, of the last layer but one, and the pooled text."""

    def __init__(self, model: CLIPTextModel | CLIPTextModelWithProjection) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        result = self.model(input_ids=tokens, output_hidden_states=True)
        return result.hidden_states[-2], result[0] if "text_embeds" in result else result.pooler_output


class _Denoiser(torch.nn.Module):
    """One step: latents, time step, text, pooled text, and sizes and crops, to the noise."""

    def __init__(self, unet: UNet2DConditionModel) -> None:
        super().__init__()
        self.unet = unet

    def forward(
        self, latents: torch.Tensor, step: torch.Tensor, text: torch.Tensor, pooled: torch.Tensor, sizes: torch.Tensor
    ) -> torch.Tensor:
        conditions = {"text_embeds": pooled, "time_ids": sizes}
        return self.unet(latents, step, text, added_cond_kwargs=conditions, return_dict=False)[0]


class _Decoder(torch.nn.Module):
    """Latents to an image."""

    def __init__(self, vae: AutoencoderKL) -> None:
        super().__init__()
        self.vae = vae

    def forward(self, latents: torch.Tensor) -> torch.Tensor:
        return self.vae.decode(latents / self.vae.config.scaling_factor, return_dict=False)[0]


def _make_clip1(settings: Settings) -> Instance:
    model = CLIPTextModel(_clip_config(settings, _CLIP1))
    # transformers has taken away what the names in checkpoints still begin with.
    return Instance(_TextEncoder(model), _tokens(model.config), model, "text_model")


def _make_clip2(settings: Settings) -> Instance:
    model = CLIPTextModelWithProjection(_clip_config(settings, _CLIP2))
    return Instance(_TextEncoder(model), _tokens(model.config), model)


def _clip_config(settings: Settings, full: dict[str, Any]) -> CLIPTextConfig:
    config = settings.choose(full, _TEST_CLIP)
    config["num_hidden_layers"] = settings.at_most(config["num_hidden_layers"])
    return CLIPTextConfig(**config, attn_implementation=settings.attention)


def _tokens(config: CLIPTextConfig) -> tuple[torch.Tensor]:
    """A prompt of random words between the tokens for its start and its end, filled up with the latter."""
    tokens = torch.randint(3, config.bos_token_id, (1, _TOKENS))
    tokens[:, 0] = config.bos_token_id
    tokens[:, _TOKENS // 2 :] = config.eos_token_id
    return (tokens,)


def _make_unet(settings: Settings) -> Instance:
    config = settings.choose(_UNET, _TEST_UNET)
    config["transformer_layers_per_block"] = repeated(config["transformer_layers_per_block"], settings)
    unet = UNet2DConditionModel(**config)
    unet.set_attn_processor(_PROCESSORS[settings.attention]())
    side = config["sample_size"]
    width = config["projection_class_embeddings_input_dim"] - 6 * config["addition_time_embed_dim"]
    inputs = (
        torch.randn(2, 4, side, side),
        torch.tensor(500.0),
        torch.randn(2, _TOKENS, config["cross_attention_dim"]),
        torch.randn(2, width),
        torch.tensor([[8.0 * side, 8.0 * side, 0, 0, 8.0 * side, 8.0 * side]] * 2),
    )
    return Instance(_Denoiser(unet), inputs, unet)


def _make_vae(settings: Settings) -> Instance:
    config = settings.choose(_VAE, _TEST_VAE)
    config["layers_per_block"] = settings.at_most(config["layers_per_block"])
    vae = AutoencoderKL(**config)
    vae.set_attn_processor(_PROCESSORS[settings.attention]())
    side = config["sample_size"] >> (len(config["block_out_channels"]) - 1)
    # The encoder is not exported.
    del vae.encoder, vae.quant_conv
    return Instance(_Decoder(vae), (0.13 * torch.randn(1, config["latent_channels"], side, side),), vae)


CLIP1 = Model("sdxl-clip1", "Text encoder 1 of SDXL, CLIP ViT-L", "prepass-llm", torch.float16, _make_clip1)
CLIP2 = Model("sdxl-clip2", "Text encoder 2 of SDXL, CLIP ViT-bigG", "prepass-llm", torch.float16, _make_clip2)
UNET = Model("sdxl-unet", "UNet of SDXL, 1024x1024, batch 2", "prepass-sdxl", torch.float16, _make_unet)
VAE = Model(
    "sdxl-vae",
    "Decoder of the VAE of SDXL, 1024x1024",
    "prepass-sdxl",
    torch.float16,
    _make_vae,
)

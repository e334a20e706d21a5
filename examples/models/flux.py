# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The transformer of Flux. Config: that of black-forest-labs/FLUX.1-dev."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from diffusers import FluxTransformer2DModel
from diffusers.models.transformers.transformer_flux import FluxAttnProcessor
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

from .base import Instance, Model, Settings

_FLUX = {
    "in_channels": 64,
    "num_layers": 19,
    "num_single_layers": 38,
    "attention_head_dim": 128,
    "num_attention_heads": 24,
    "joint_attention_dim": 4096,
    "pooled_projection_dim": 768,
    "guidance_embeds": True,
    "axes_dims_rope": (16, 56, 56),
}
_TEST_FLUX = {
    "in_channels": 16,
    "num_layers": 1,
    "num_single_layers": 1,
    "attention_head_dim": 32,
    "num_attention_heads": 2,
    "joint_attention_dim": 64,
    "pooled_projection_dim": 32,
    "axes_dims_rope": (8, 12, 12),
}
_TOKENS = {"full": (4096, 512), "test": (64, 16)}


class _SpeltOutAttention(TorchFunctionMode):
    """Within, torch's operator for attention is two products and a softmax."""

    def __torch_function__(
        self, function: Callable[..., Any], types: Sequence[type], args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if function is scaled_dot_product_attention:
            return _attention(*args, **(kwargs or {}))
        return function(*args, **(kwargs or {}))


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    if attn_mask is not None or dropout_p or is_causal or scale is not None or enable_gqa:
        raise ValueError("Flux has plain attention only")
    scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
    return scores.softmax(dim=-1) @ value


class _EagerProcessor(FluxAttnProcessor):
    """Diffusers has none that spells attention out."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with _SpeltOutAttention():
            return super().__call__(*args, **kwargs)


_PROCESSORS = {"sdpa": FluxAttnProcessor, "eager": _EagerProcessor}


class _Denoiser(torch.nn.Module):
    """One step: packed latents, text, pooled text, time, positions of both, guidance, to the velocity."""

    def __init__(self, transformer: FluxTransformer2DModel) -> None:
        super().__init__()
        self.transformer = transformer

    def forward(
        self,
        latents: torch.Tensor,
        text: torch.Tensor,
        pooled: torch.Tensor,
        time: torch.Tensor,
        image_positions: torch.Tensor,
        text_positions: torch.Tensor,
        guidance: torch.Tensor,
    ) -> torch.Tensor:
        return self.transformer(
            hidden_states=latents,
            encoder_hidden_states=text,
            pooled_projections=pooled,
            timestep=time,
            img_ids=image_positions,
            txt_ids=text_positions,
            guidance=guidance,
            return_dict=False,
        )[0]


def _make(settings: Settings) -> Instance:
    config = settings.choose(_FLUX, _TEST_FLUX)
    for kind in ("num_layers", "num_single_layers"):
        config[kind] = settings.at_most(config[kind])
    transformer = FluxTransformer2DModel(**config)
    transformer.set_attn_processor(_PROCESSORS[settings.attention]())
    pixels, words = _TOKENS[settings.size]
    side = math.isqrt(pixels)
    row, column = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    positions = torch.stack([torch.zeros_like(row), row, column], dim=-1).view(pixels, 3)
    inputs = (
        torch.randn(1, pixels, config["in_channels"]),
        torch.randn(1, words, config["joint_attention_dim"]),
        torch.randn(1, config["pooled_projection_dim"]),
        torch.tensor([0.5]),
        positions.to(settings.dtype),
        torch.zeros(words, 3),
        # 1000 times this is exact in bf16, as the sine of it has to be.
        torch.tensor([4.0], dtype=torch.float32),
    )
    return Instance(_Denoiser(transformer), inputs, transformer)


FLUX = Model("flux", "Transformer of FLUX.1-dev, 1024x1024", "prepass-flux", torch.bfloat16, _make)

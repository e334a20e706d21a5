# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks of SDXL and Flux, with random weights."""

from __future__ import annotations

import torch
from cases import Call, Case
from diffusers.models.attention import BasicTransformerBlock
from diffusers.models.attention_processor import Attention, AttnProcessor
from diffusers.models.transformers.transformer_flux import FluxTransformerBlock

_WIDTH, _HEADS, _CHANNELS, _TEXT = 32, 4, 8, 24
Made = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]


def _sdxl_self_f16() -> Made:
    attention = Attention(_WIDTH, heads=_HEADS, dim_head=_CHANNELS, processor=AttnProcessor())
    return attention.eval().half(), (torch.randn(2, 64, _WIDTH).half(),)


def _sdxl_cross() -> Made:
    attention = Attention(_WIDTH, _TEXT, heads=_HEADS, dim_head=_CHANNELS, processor=AttnProcessor())
    return attention.eval(), (torch.randn(2, 64, _WIDTH), torch.randn(2, 77, _TEXT))


def _sdxl_block() -> Made:
    block = BasicTransformerBlock(_WIDTH, _HEADS, _CHANNELS, cross_attention_dim=_TEXT, activation_fn="geglu")
    for attention in (block.attn1, block.attn2):
        attention.set_processor(AttnProcessor())
    names = ("hidden_states", "encoder_hidden_states")
    return Call(block.eval(), names, result=...), (torch.randn(2, 64, _WIDTH), torch.randn(2, 77, _TEXT))


def _flux() -> Made:
    block = FluxTransformerBlock(_WIDTH, _HEADS, _CHANNELS).eval()
    names = ("hidden_states", "encoder_hidden_states", "temb", "cos", "sin")
    inputs = (torch.randn(1, 64, _WIDTH), torch.randn(1, 8, _WIDTH), torch.randn(1, _WIDTH))
    return _WithRotary(block, names), (*inputs, torch.randn(72, _CHANNELS), torch.randn(72, _CHANNELS))


class _WithRotary(Call):
    def forward(self, hidden: torch.Tensor, text: torch.Tensor, time: torch.Tensor, *rotary: torch.Tensor) -> tuple:
        return self.module(hidden_states=hidden, encoder_hidden_states=text, temb=time, image_rotary_emb=rotary)


CASES = [
    Case("hf/diff_sdxl_self_f16", _sdxl_self_f16, 1),
    Case("hf/diff_sdxl_cross", _sdxl_cross, 1),
    Case("hf/diff_sdxl_block", _sdxl_block, 2),
    # F.scaled_dot_product_attention, which is an attention op from the start.
    Case("hf/diff_flux_native", _flux, 1),
]

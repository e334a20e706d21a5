# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A decoder such as Llama: grouped queries, rotary embeddings, a gated feed-forward block. Config: Llama 3.1 8B."""

from __future__ import annotations

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from .base import Instance, Model, Settings

_LLAMA = {
    "vocab_size": 128256,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-5,
    "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0},
}
_TEST_LLAMA = {
    "vocab_size": 256,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_TOKENS = {"full": 512, "test": 32}


class _Prefill(torch.nn.Module):
    """Tokens to logits."""

    def __init__(self, model: LlamaForCausalLM) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=tokens, use_cache=False).logits


def _make(settings: Settings) -> Instance:
    config = settings.choose(_LLAMA, _TEST_LLAMA)
    config["num_hidden_layers"] = settings.at_most(config["num_hidden_layers"])
    model = LlamaForCausalLM(LlamaConfig(**config, attn_implementation=settings.attention))
    tokens = torch.randint(3, config["vocab_size"], (1, _TOKENS[settings.size]))
    return Instance(_Prefill(model), (tokens,), model)


LLAMA = Model("llama", "Decoder of the shape of Llama 3.1 8B, 512 tokens", "prepass-llm", torch.float16, _make)

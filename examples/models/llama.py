# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A decoder such as Llama: grouped queries, rotary embeddings, a gated feed-forward block. Config: Llama 3.1 8B."""

from __future__ import annotations

import torch
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

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


class _DecodeStep(torch.nn.Module):
    """A token, its position, and the keys and values of each layer so far, to logits, and to these with the token's."""

    def __init__(self, model: LlamaForCausalLM) -> None:
        super().__init__()
        self.model = model

    def forward(self, token: torch.Tensor, position: torch.Tensor, *cached: torch.Tensor) -> tuple[torch.Tensor, ...]:
        cache = StaticCache(self.model.config, max_cache_len=cached[0].shape[2])
        for layer, keys, values in zip(cache.layers, cached[::2], cached[1::2], strict=True):
            layer.lazy_initialization(keys, values)
            # A cache writes in place. The arguments are left as they are, so that all that is new is a result.
            layer.keys, layer.values, layer.cumulative_length = keys.clone(), values.clone(), position.clone()
        logits = self.model(input_ids=token, cache=cache).logits
        return logits, *(tensor for layer in cache.layers for tensor in (layer.keys, layer.values))


def _make_model(settings: Settings) -> LlamaForCausalLM:
    config = settings.choose(_LLAMA, _TEST_LLAMA)
    config["num_hidden_layers"] = settings.at_most(config["num_hidden_layers"])
    return LlamaForCausalLM(LlamaConfig(**config, attn_implementation=settings.attention))


def _make_prefill(settings: Settings) -> Instance:
    model = _make_model(settings)
    tokens = torch.randint(3, model.config.vocab_size, (1, _TOKENS[settings.size]))
    return Instance(_Prefill(model), (tokens,), model)


def _make_decode(settings: Settings) -> Instance:
    model = _make_model(settings)
    config, tokens = model.config, _TOKENS[settings.size]
    token = torch.randint(3, config.vocab_size, (1, 1))
    # What is behind the position in a cache is of no token, and must not be seen.
    shape = (1, config.num_key_value_heads, 2 * tokens, config.head_dim)
    cached = [torch.randn(shape) for _ in range(2 * config.num_hidden_layers)]
    return Instance(_DecodeStep(model), (token, torch.tensor(tokens), *cached), model)


LLAMA = Model("llama", "Decoder of the shape of Llama 3.1 8B, 512 tokens", "prepass-llm", torch.float16, _make_prefill)
LLAMA_DECODE = Model(
    "llama-decode", "The same, one more token by a cache of 1024", "prepass-llm", torch.float16, _make_decode
)

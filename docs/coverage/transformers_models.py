# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of transformers with two layers and random weights, attention as eager torch computes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import transformers as hf
from cases import Call, Case

_WIDTH, _HEADS, _LAYERS, _INNER, _VOCABULARY = 32, 4, 2, 64, 100
_BATCH, _TOKENS = 2, 16

# What most configs call their sizes.
_SIZES = {
    "hidden_size": _WIDTH,
    "num_attention_heads": _HEADS,
    "num_hidden_layers": _LAYERS,
    "intermediate_size": _INNER,
    "vocab_size": _VOCABULARY,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_DECODER = {**_SIZES, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64}
_ENCODER_DECODER = {
    "d_model": _WIDTH,
    "encoder_layers": _LAYERS,
    "decoder_layers": _LAYERS,
    "encoder_attention_heads": _HEADS,
    "decoder_attention_heads": _HEADS,
    "encoder_ffn_dim": _INNER,
    "decoder_ffn_dim": _INNER,
    "vocab_size": _VOCABULARY,
    "pad_token_id": 0,
    "max_position_embeddings": 64,
}
_IMAGE = {**_SIZES, "image_size": 32, "patch_size": 8}


def _model(
    architecture: str, config: Mapping[str, Any], names: tuple[str, ...], kwargs: Mapping[str, Any], dtype: torch.dtype
) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """A model from a config, and an input for each of the names."""
    model_class = getattr(hf, architecture)
    model_config = model_class.config_class(**config, attn_implementation="eager")
    model = model_class(model_config).eval().to(dtype)
    inputs = tuple(_INPUTS[name](dtype) for name in names)
    return Call(model, names, **kwargs), inputs


def _mask(dtype: torch.dtype) -> torch.Tensor:
    """Keys that are there: all of the first sentence, some of the second."""
    mask = torch.ones(_BATCH, _TOKENS, dtype=torch.int64)
    mask[1, _TOKENS - 5 :] = 0
    return mask


_INPUTS = {
    "input_ids": lambda _: torch.randint(3, _VOCABULARY, (_BATCH, _TOKENS)),
    "decoder_input_ids": lambda _: torch.randint(3, _VOCABULARY, (_BATCH, 12)),
    "attention_mask": _mask,
    "pixel_values": lambda dtype: torch.randn(_BATCH, 3, 32, 32, dtype=dtype),
    "input_features": lambda dtype: torch.randn(_BATCH, 8, 32, dtype=dtype),
}
_TEXT = ("input_ids", "attention_mask")


def _case(
    name: str,
    architecture: str,
    config: Mapping[str, Any],
    names: tuple[str, ...] = _TEXT,
    *,
    expected: int = _LAYERS,
    dtype: torch.dtype = torch.float32,
    **kwargs: Any,
) -> Case:
    return Case(f"hf/{name}", lambda: _model(architecture, config, names, kwargs, dtype), expected)


def _causal(name: str, architecture: str, config: Mapping[str, Any], **options: Any) -> Case:
    return _case(name, architecture, config, **options, use_cache=False)


def _both(name: str, architecture: str, config: Mapping[str, Any]) -> Case:
    """An encoder and a decoder: self attention in both, cross attention in the decoder."""
    names = ("input_ids", "decoder_input_ids", "attention_mask")
    return _case(name, architecture, config, names, expected=3 * _LAYERS, use_cache=False)


def _vision(name: str, architecture: str, config: Mapping[str, Any], **options: Any) -> Case:
    return _case(name, architecture, config, ("pixel_values",), **options)


_BERT = {**_SIZES, "max_position_embeddings": 64}
_GPT = {"n_embd": _WIDTH, "n_head": _HEADS, "n_layer": _LAYERS, "vocab_size": _VOCABULARY, "n_positions": 64}
_GPT_ROTARY = {**_GPT, "rotary_dim": 4}
_WHISPER = {**_ENCODER_DECODER, "num_mel_bins": 8, "max_source_positions": 16, "max_target_positions": 16}
_T5 = {"d_model": _WIDTH, "d_kv": 8, "d_ff": _INNER, "num_layers": _LAYERS, "num_heads": _HEADS, "vocab_size": 100}
_LOCAL = {**_DECODER, "sliding_window": 8}
_DISTILBERT = {"dim": _WIDTH, "n_heads": _HEADS, "n_layers": _LAYERS, "hidden_dim": _INNER, "vocab_size": _VOCABULARY}
_GPT_NEO = {
    "hidden_size": _WIDTH,
    "num_heads": _HEADS,
    "num_layers": _LAYERS,
    "attention_types": [[["global", "local"], 1]],
    "window_size": 4,
    "vocab_size": _VOCABULARY,
    "max_position_embeddings": 64,
}
_DEBERTA = {**_BERT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8}
_SWIN = {"image_size": 32, "patch_size": 4, "embed_dim": 16, "window_size": 4}
_SEGFORMER = {
    "num_encoder_blocks": 2,
    "depths": [1, 1],
    "sr_ratios": [2, 1],
    "hidden_sizes": [16, 32],
    "patch_sizes": [7, 3],
    "strides": [4, 2],
    "num_attention_heads": [1, 2],
    "mlp_ratios": [2, 2],
}

CASES = [
    # Encoders of text.
    _case("bert", "BertModel", _BERT),
    _case("bert_nomask", "BertModel", _BERT, ("input_ids",)),
    _case("bert_f16", "BertModel", _BERT, dtype=torch.float16),
    _case("albert", "AlbertModel", {**_BERT, "embedding_size": 16}),
    _case("clip_text", "CLIPTextModel", _BERT, ("input_ids",)),
    _case("deberta_v2", "DebertaV2Model", _DEBERTA),
    _case("distilbert", "DistilBertModel", _DISTILBERT),
    _case("electra", "ElectraModel", {**_BERT, "embedding_size": 16}),
    _case("esm", "EsmModel", {**_BERT, "position_embedding_type": "rotary"}),
    _case("flava_text", "FlavaTextModel", _BERT),
    _case("longt5_enc", "LongT5EncoderModel", {**_T5, "local_radius": 4}),
    _case("modernbert", "ModernBertModel", {**_BERT, "cls_token_id": 1, "sep_token_id": 2, "local_attention": 4}),
    _case("mpnet", "MPNetModel", _BERT),
    _case("roberta", "RobertaModel", _BERT),
    _case("roformer", "RoFormerModel", {**_BERT, "embedding_size": _WIDTH}),
    _case("squeezebert", "SqueezeBertModel", {**_BERT, "embedding_size": _WIDTH}),
    _case("t5_enc", "T5EncoderModel", _T5),
    _case("umt5_enc", "UMT5EncoderModel", _T5),
    _case("xlm", "XLMModel", {"emb_dim": _WIDTH, "n_heads": _HEADS, "n_layers": _LAYERS, "vocab_size": 100}),
    _case("xlnet", "XLNetModel", {"d_model": _WIDTH, "n_head": _HEADS, "n_layer": _LAYERS, "d_inner": _INNER}),
    # Decoders.
    _causal("biogpt", "BioGptModel", _BERT),
    _causal("bloom", "BloomModel", {"hidden_size": _WIDTH, "n_head": _HEADS, "n_layer": _LAYERS, "vocab_size": 100}),
    _causal("codegen", "CodeGenModel", _GPT_ROTARY),
    _causal("cohere", "CohereModel", _DECODER),
    _causal("falcon", "FalconModel", {**_SIZES, "multi_query": True}),
    _causal("falcon_alibi", "FalconModel", {**_SIZES, "alibi": True, "multi_query": False}),
    _causal("gemma", "GemmaModel", _DECODER),
    _causal("gemma2", "Gemma2Model", _LOCAL),
    _causal("gemma3", "Gemma3TextModel", _LOCAL),
    _causal("glm", "GlmModel", _DECODER),
    _causal("gpt2", "GPT2Model", _GPT),
    _causal("gpt_bigcode", "GPTBigCodeModel", _GPT),
    _causal("gpt_neo", "GPTNeoModel", _GPT_NEO),
    _causal("gpt_neox", "GPTNeoXModel", _BERT),
    _causal("gptj", "GPTJModel", _GPT_ROTARY),
    _causal("granite", "GraniteModel", _DECODER),
    _causal("llama", "LlamaModel", _DECODER),
    _causal("llama_nomask", "LlamaModel", _DECODER, names=("input_ids",)),
    _causal("mistral", "MistralModel", _LOCAL),
    _causal("mixtral", "MixtralModel", {**_DECODER, "num_local_experts": 4, "experts_implementation": "batched_mm"}),
    _causal("mpt", "MptModel", {"d_model": _WIDTH, "n_heads": _HEADS, "n_layers": _LAYERS, "vocab_size": _VOCABULARY}),
    _causal("olmo2", "Olmo2Model", _DECODER),
    _causal("opt", "OPTModel", {**_BERT, "ffn_dim": _INNER, "word_embed_proj_dim": _WIDTH}),
    _causal("phi", "PhiModel", _BERT),
    _causal("phi3", "Phi3Model", _DECODER),
    _causal("qwen2", "Qwen2Model", _DECODER),
    _causal("qwen3", "Qwen3Model", _DECODER),
    _causal("stablelm", "StableLmModel", _DECODER),
    _causal("starcoder2", "Starcoder2Model", _DECODER),
    _causal(
        "xglm", "XGLMModel", {"d_model": _WIDTH, "attention_heads": _HEADS, "num_layers": _LAYERS, "ffn_dim": _INNER}
    ),
    # Encoders with decoders.
    _both("bart", "BartModel", _ENCODER_DECODER),
    _both("blenderbot", "BlenderbotModel", _ENCODER_DECODER),
    _both("m2m100", "M2M100Model", _ENCODER_DECODER),
    _both("marian", "MarianModel", _ENCODER_DECODER),
    _both("mbart", "MBartModel", _ENCODER_DECODER),
    _both("pegasus", "PegasusModel", _ENCODER_DECODER),
    _both("t5", "T5Model", {**_T5, "num_decoder_layers": _LAYERS}),
    _case(
        "whisper",
        "WhisperModel",
        _WHISPER,
        ("input_features", "decoder_input_ids"),
        expected=3 * _LAYERS,
        use_cache=False,
    ),
    Case("hf/whisper_enc", lambda: _whisper_encoder(), _LAYERS),
    # Vision.
    _vision("clip_vision", "CLIPVisionModel", _IMAGE),
    _vision("deit", "DeiTModel", _IMAGE),
    _vision("dinov2", "Dinov2Model", _IMAGE),
    _vision("segformer", "SegformerModel", _SEGFORMER),
    _vision("swin", "SwinModel", {**_SWIN, "depths": [2, 2], "num_heads": [2, 4]}, expected=4),
    _vision("swinv2", "Swinv2Model", {**_SWIN, "depths": [2], "num_heads": [2]}),
    _vision("vit", "ViTModel", _IMAGE),
]


def _whisper_encoder() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    model = hf.WhisperModel(hf.WhisperConfig(**_WHISPER, attn_implementation="eager")).eval()
    return Call(model.encoder, ("input_features",)), (_INPUTS["input_features"](torch.float32),)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention written by hand in torch."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from cases import Case, Function


def _case(name: str, expected: int, function: Callable, *shapes: tuple[int, ...], dynamic: tuple | None = None) -> Case:
    def make() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
        return Function(function), tuple(torch.randn(shape) for shape in shapes)

    return Case(name, make, expected, dynamic)


def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1) @ v


def _masked(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + mask, dim=-1) @ v


def _grouped(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = torch.einsum("bhgqd,bhkd->bhgqk", q, k) * q.shape[-1] ** -0.5
    return torch.einsum("bhgqk,bhkd->bhgqd", scores.softmax(-1), v)


def _decode(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
    """One query against a static cache that is filled up to `position`."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(torch.arange(k.shape[-2]) > position, -math.inf)
    return scores.softmax(-1) @ v


def _decode_case() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    cache = torch.randn(2, 2, 4, 77, 8)
    return Function(_decode), (torch.randn(2, 4, 1, 8), cache[0], cache[1], torch.tensor(40))


class _MultiHead(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(32, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.attention(x, x, x, need_weights=True)


_HEADS = (2, 4, 16, 8)
_QUERIES, _KEYS = torch.export.Dim("queries", min=2, max=512), torch.export.Dim("keys", min=2, max=512)
_DYNAMIC = ({2: _QUERIES}, {2: _KEYS}, {2: _KEYS})

CASES = [
    _case("hf/torch_sdpa_native", 1, torch.nn.functional.scaled_dot_product_attention, _HEADS, _HEADS, _HEADS),
    _case("hf/einsum_gqa", 1, _grouped, (2, 2, 3, 16, 8), (2, 2, 16, 8), (2, 2, 16, 8)),
    Case("hf/decode_cache_static", _decode_case, 1),
    # It returns the probabilities, so they have to be computed.
    Case("hf/torch_mha_eager", lambda: (_MultiHead().eval(), (torch.randn(2, 16, 32),)), 0),
    _case("dyn/dyn_seq", 1, _attention, _HEADS, (2, 4, 24, 8), (2, 4, 24, 8), dynamic=_DYNAMIC),
    _case(
        "dyn/dyn_mask",
        1,
        _masked,
        _HEADS,
        (2, 4, 24, 8),
        (2, 4, 24, 8),
        (2, 1, 16, 24),
        dynamic=(*_DYNAMIC, {2: _QUERIES, 3: _KEYS}),
    ),
]

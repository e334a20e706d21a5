# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The attention patterns of PyTorch Inductor, from the installed torch, as models.

`torch._inductor.fx_passes.fuse_attention` holds functions that compute attention as models
have been seen to, each with example inputs in f32 and f16, some also for batch 1. Those for
inference have their dropout turned off. Those for training drop, which no attention op does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from cases import Case, Function
from torch._inductor.fx_passes.fuse_attention import _get_sfdp_patterns

# Pattern 13 comes with a batch of 1024, which only takes time.
_LARGEST_BATCH = 4


@dataclass(frozen=True)
class Pattern:
    """A function that computes attention, and example inputs for it.

    Attributes:
      drops: Whether dropout is on.
    """

    name: str
    function: Callable[..., Any]
    examples: tuple[torch.Tensor, ...]
    drops: bool


def patterns() -> Iterator[Pattern]:
    """All patterns of Inductor; those for training only where they differ from those for inference."""
    for name, registered in _get_sfdp_patterns(torch.device("cpu")):
        stem, _, kind = name.removeprefix("_sfdp_pattern_").rpartition("_")
        workaround = registered["scalar_workaround"]
        drops = "dropout_p" in workaround
        if kind == "inference" or drops:
            function = functools.partial(registered["search_fn"], **workaround)
            yield Pattern(_name(stem, drops), function, tuple(registered["example_inputs"]), drops)


def _name(stem: str, drops: bool) -> str:
    """As the names of models go: p16_f16_bs1 for 16_half_bs1."""
    number, *rest = stem.split("_", 1)
    suffix = f"_{rest[0]}" if rest else ""
    element = "f16" if "_half" in suffix else "f32"
    return (
        f"p{int(number):02}_{element}{suffix.replace('_half', '').replace('_fp32', '32')}{'_dropout' if drops else ''}"
    )


def cases(pattern: Pattern) -> Iterator[Case]:
    """A pattern as a model; two where its scale may be a number of the program or a tensor."""
    expected = 0 if pattern.drops else 1
    examples = pattern.examples
    yield Case(f"ind/{pattern.name}", lambda: _with_numbers(pattern), expected)
    if any(example.dim() == 0 for example in examples):
        yield Case(f"ind/{pattern.name}_tscale", lambda: (Function(pattern.function), _inputs(examples)), expected)


def _with_numbers(pattern: Pattern) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    numbers = [example.item() for example in pattern.examples if example.dim() == 0]
    tensors = [example for example in pattern.examples if example.dim()]
    # The scale is the last argument wherever there is one.
    return Function(lambda *inputs: pattern.function(*inputs, *numbers)), _inputs(tensors)


def _inputs(examples: tuple[torch.Tensor, ...] | list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    return tuple(_random(example.detach()) for example in examples)


def _random(example: torch.Tensor) -> torch.Tensor:
    if example.dim() == 0:
        return example
    shape = (min(example.shape[0], _LARGEST_BATCH), *example.shape[1:])
    if example.dtype == torch.bool:
        return torch.rand(shape) < 0.7
    # Pattern 13 does not scale: with larger numbers, f16 only shows how it rounds scores.
    values = (torch.randn(shape) / 2).to(example.dtype)
    if example.dim() == 2:  # A mask of 0 and 1.
        return (values > -0.25).to(example.dtype)
    return values if example.is_contiguous() else values.transpose(2, 3).contiguous().transpose(2, 3)


CASES = [case for pattern in patterns() if not pattern.drops for case in cases(pattern)]

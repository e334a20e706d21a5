# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What describes a model that can be exported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from .weights import fill_parameters, untouched_parameters


@dataclass(frozen=True)
class Settings:
    """Which form of a model is wanted.

    Attributes:
      size: `full`, as published, or `test`: all kinds of layers, few and narrow.
      dtype: Of weights, and of inputs that are no indices.
      attention: `sdpa` is torch's operator; `eager` is two products and a softmax.
      layers: At most so many layers where the model repeats one; None for all.
    """

    size: Literal["full", "test"] = "test"
    dtype: torch.dtype = torch.float32
    attention: Literal["sdpa", "eager"] = "sdpa"
    layers: int | None = None

    def at_most(self, count: int) -> int:
        """How many of `count` equal layers there are to be."""
        return count if self.layers is None else min(count, self.layers)

    def choose(self, full: Mapping[str, Any], test: Mapping[str, Any]) -> dict[str, Any]:
        """A config: `full`, with what `test` replaces at test size."""
        return {**full, **(test if self.size == "test" else {})}


@dataclass(frozen=True)
class Instance:
    """A model that is made.

    Attributes:
      module: Called with `inputs`, in evaluation mode.
      inputs: Random, the same each time.
      weights: The part of `module` that has the parameters.
      prefix: What the names of its parameters start with in published checkpoints, and in the exported program.
    """

    module: torch.nn.Module
    inputs: tuple[torch.Tensor, ...]
    weights: torch.nn.Module
    prefix: str = ""


@dataclass(frozen=True)
class Model:
    """A model that can be exported.

    Attributes:
      name: As on the command line.
      summary: One line.
      preset: The named pipeline that is meant for it.
      dtype: In which it is commonly run on a GPU.
      make: Makes an instance for settings; its parameters may have any values.
    """

    name: str
    summary: str
    preset: str
    dtype: torch.dtype
    make: Callable[[Settings], Instance]

    def instantiate(self, settings: Settings) -> Instance:
        """An instance whose parameters take no memory until they are read or written."""
        default = torch.get_default_dtype()
        torch.manual_seed(0)
        torch.set_default_dtype(settings.dtype)
        try:
            with untouched_parameters():
                instance = self.make(settings)
        finally:
            torch.set_default_dtype(default)
        instance.module.eval().requires_grad_(False)
        return instance

    def instantiate_with_weights(self, settings: Settings) -> Instance:
        """An instance with generated weights, the same each time."""
        instance = self.instantiate(settings)
        fill_parameters(instance.weights.named_parameters(prefix=instance.prefix))
        return instance


def repeated(counts: Sequence[int], settings: Settings) -> tuple[int, ...]:
    """How many layers each block has."""
    return tuple(settings.at_most(count) for count in counts)

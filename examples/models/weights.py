# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generated weights: by name, so that a parameter has the same values in a model and in a file."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from iree.turbine import aot
from torch.overrides import TorchFunctionMode

# How many numbers are generated at once.
_PART = 1 << 22
_INITIALIZERS = frozenset(
    {"fill_", "kaiming_uniform_", "normal_", "ones_", "trunc_normal_", "uniform_", "zero_", "zeros_"}
)


class _WithoutInitializers(TorchFunctionMode):
    def __torch_function__(
        self, function: Callable[..., Any], types: Sequence[type], args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        first = args[0] if args else (kwargs or {}).get("tensor")
        if getattr(function, "__name__", "") in _INITIALIZERS and isinstance(first, torch.nn.Parameter):
            return first
        return function(*args, **(kwargs or {}))


def untouched_parameters() -> TorchFunctionMode:
    """Within, parameters of new modules are not initialized: the system gives memory only to what is touched."""
    return _WithoutInitializers()


def fill_parameters(parameters: Iterable[tuple[str, torch.Tensor]]) -> None:
    """Give parameters random values at which activations neither vanish nor explode.

    Weights of contractions have the variance of one by the number of products that a result sums; scales of norms are
    around one, biases small.
    """
    for name, parameter in parameters:
        generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
        is_scale = parameter.dim() < 2 and name.endswith("weight")
        deviation = 0.1 if parameter.dim() < 2 else (parameter.shape[0] / parameter.numel()) ** 0.5
        for part in parameter.detach().view(-1).split(_PART):
            numbers = torch.randn(part.numel(), generator=generator, dtype=torch.float32)
            part.copy_(numbers.mul_(deviation).add_(float(is_scale)))


def write_archive(weights: torch.nn.Module, prefix: str, path: Path) -> None:
    """Write a module's parameters and persistent buffers to an .irpa file, as they are."""
    archive = aot.ParameterArchiveBuilder()
    archive.add_module(weights, prefix=prefix)
    archive.save(path)


def fill_archive(weights: torch.nn.Module, prefix: str, path: Path) -> None:
    """Give the parameters in an .irpa file the values that `fill_parameters` gives, in place: it may exceed memory."""
    contents = np.memmap(path, mode="r+")
    places = {entry.key: entry.raw.file_storage[1] for _, entry in aot.ParameterArchive(path).items()}

    def in_file(name: str, like: torch.Tensor) -> torch.Tensor:
        size = like.numel() * like.element_size()
        return torch.from_numpy(contents[places[name] : places[name] + size]).view(like.dtype).view(like.shape)

    fill_parameters((name, in_file(name, parameter)) for name, parameter in weights.named_parameters(prefix=prefix))
    contents.flush()

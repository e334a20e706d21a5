# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model to export, and how it is brought to MLIR."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from prepass import turbine


@dataclass(frozen=True)
class Case:
    """A model with inputs.

    Attributes:
      name: Folder and file name without a suffix; the folder says where the model comes from.
      make: Returns a module in evaluation mode and its inputs.
      expected: How many attention ops the program has when all are raised.
      dynamic: The dynamic dims of each input, a `torch.export.Dim` by position.
    """

    name: str
    make: Callable[[], tuple[torch.nn.Module, tuple[torch.Tensor, ...]]]
    expected: int
    dynamic: tuple[Mapping[int, Any], ...] | None = None


class Function(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


class Call(torch.nn.Module):
    """A module called with keywords, of which one result is kept."""

    def __init__(self, module: torch.nn.Module, names: tuple[str, ...], result: str | int = 0, **fixed: Any) -> None:
        super().__init__()
        self.module, self.names, self.result, self.fixed = module, names, result, fixed

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.module(**dict(zip(self.names, inputs, strict=True)), **self.fixed)[self.result]


def export_case(case: Case, folder: Path) -> None:
    """Write <name>.mlir in the torch dialect, and <name>.npz with in0, in1, … and what eager torch returns: out0, …"""
    torch.manual_seed(0)
    with torch.no_grad():
        module, inputs = case.make()
        # As functions, inputs are one variadic argument.
        dynamic = None if case.dynamic is None else (case.dynamic,)
        outputs = module(*inputs)
    exported = turbine.import_module(module, inputs, dynamic_shapes=dynamic)
    path = folder / f"{case.name}.mlir"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{exported}\n")
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    arrays = {f"in{n}": array(tensor) for n, tensor in enumerate(inputs)}
    arrays |= {f"out{n}": array(tensor) for n, tensor in enumerate(outputs)}
    np.savez(path.with_suffix(".npz"), **arrays)


def array(tensor: torch.Tensor) -> np.ndarray:
    """A tensor as an array."""
    return tensor.detach().contiguous().numpy()

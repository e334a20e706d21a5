# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running an exported model with iree-run-module, and comparing it with torch."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from prepass.errors import PrepassError

from .base import Instance

_TYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64"}

# The largest error that is all right, relative to the largest element of a result.
TOLERANCES = {torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 6e-2}


def run_command(program: Path, parameters: Path, inputs: Sequence[str], device: str) -> list[str]:
    """The command that runs a program once, without what becomes of the results."""
    return [
        str(Path(sys.executable).with_name("iree-run-module")),
        f"--module={program}",
        f"--parameters=model={parameters}",
        f"--device={device}",
        "--function=main",
        *(f"--input={text}" for text in inputs),
    ]


def write_inputs(inputs: Sequence[torch.Tensor], folder: Path) -> list[str]:
    """Write tensors to in0.bin, in1.bin, …; what iree-run-module takes for each, such as `1x64xf16=@in0.bin`."""
    texts = []
    for number, tensor in enumerate(inputs):
        path = folder / f"in{number}.bin"
        path.write_bytes(_bytes(tensor))
        texts.append(f"{'x'.join([*map(str, tensor.shape), _TYPES[tensor.dtype]])}=@{path}")
    return texts


def errors_against_torch(
    instance: Instance, program: Path, parameters: Path, folder: Path, device: str = "local-task"
) -> list[float]:
    """Run a program on the inputs of an instance; the error of each result, relative to its largest element in torch.

    An element that is not finite, and is not the same in torch, is an infinite error.
    Raises PrepassError when the program cannot be run.
    """
    with torch.no_grad():
        expected = instance.module(*instance.inputs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    outputs = [folder / f"out{number}.bin" for number in range(len(expected))]
    command = run_command(program, parameters, write_inputs(instance.inputs, folder), device)
    command += [f"--output=@{path}" for path in outputs]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode:
        raise PrepassError(f"{shlex.join(command)}: {finished.stderr.strip()}")
    return [_error(_read(path, like), like) for path, like in zip(outputs, expected, strict=True)]


def _bytes(tensor: torch.Tensor) -> bytes:
    # numpy has no bf16, so the tensor is taken as bytes.
    return tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes()


def _read(path: Path, like: torch.Tensor) -> torch.Tensor:
    data = bytearray(path.read_bytes())
    return torch.frombuffer(data, dtype=like.dtype).view(like.shape)


def _error(result: torch.Tensor, expected: torch.Tensor) -> float:
    difference = torch.where(result == expected, 0.0, result.double() - expected.double()).abs()
    largest = difference.max() / expected.double().abs().max()
    return float(largest) if torch.isfinite(largest) else float("inf")

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running an exported model with iree-run-module, and comparing it with torch."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from prepass.errors import PrepassError

from .base import Instance
from .weights import fill_archive, write_archive

_TYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64"}

# The largest error that is all right, relative to the largest element of a result.
TOLERANCES = {torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 6e-2}

_SCRIPT = """\
#!/bin/sh
# {title}
cd "$(dirname "$0")" || exit
exec {command} "$@"
"""


@dataclass(frozen=True)
class Bundle:
    """A folder with all that a program needs to run: model.vmfb, model.irpa, and its inputs in in0.bin, in1.bin, …

    Attributes:
      arguments: Those of iree-run-module and iree-benchmark-module; paths are relative to the folder.
    """

    folder: Path
    arguments: tuple[str, ...]

    @classmethod
    def write(
        cls, folder: Path, program: bytes, instance: Instance, device: str, *, generate_weights: bool = False
    ) -> Bundle:
        """Write the files of an instance that has weights, or of one that has none and for which they are generated."""
        (folder / "model.vmfb").write_bytes(program)
        write_archive(instance.weights, instance.prefix, folder / "model.irpa")
        if generate_weights:
            fill_archive(instance.weights, instance.prefix, folder / "model.irpa")
        inputs = [f"--input={_write(t, folder, f'in{number}.bin')}" for number, t in enumerate(instance.inputs)]
        files = ("--module=model.vmfb", "--parameters=model=model.irpa")
        return cls(folder, (*files, f"--device={device}", "--function=main", *inputs))

    def errors(self, expected: Sequence[torch.Tensor]) -> list[float]:
        """Run the program; the error of each result, relative to the largest element that is expected.

        An element that is not finite, and is not the same as expected, is an infinite error.
        Raises PrepassError when the program cannot be run.
        """
        names = [f"out{number}.bin" for number in range(len(expected))]
        tool = str(Path(sys.executable).with_name("iree-run-module"))
        command = [tool, *self.arguments, *(f"--output=@{name}" for name in names)]
        finished = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if finished.returncode:
            raise PrepassError(f"iree-run-module: {finished.stderr.strip()}")
        return [_error(_read(self.folder / name, like), like) for name, like in zip(names, expected, strict=True)]

    def write_scripts(self, expected: Sequence[torch.Tensor] = ()) -> None:
        """Write run.sh, which compares with what is expected, if that is given, and benchmark.sh."""
        comparison: list[str] = []
        for number, tensor in enumerate(expected):
            comparison.append(f"--expected_output={_write(tensor, self.folder, f'expected{number}.bin')}")
        # There is one threshold for all results of a type.
        for dtype in {tensor.dtype for tensor in expected}:
            allowed = TOLERANCES[dtype] * max(float(t.abs().max()) for t in expected if t.dtype == dtype)
            comparison.append(f"--expected_{_TYPES[dtype]}_threshold={allowed:.3g}")
        what = "compares the results with torch's" if expected else "prints the results"
        self._write_script("run.sh", f"Runs the program once and {what}.", ["iree-run-module", *comparison])
        benchmark = ["iree-benchmark-module", "--benchmark_repetitions=5", "--benchmark_min_warmup_time=2"]
        self._write_script("benchmark.sh", "Times the program, transfers of inputs left out.", benchmark)

    def _write_script(self, name: str, title: str, command: Sequence[str]) -> None:
        tool, *more = command
        path = self.folder / name
        path.write_text(_SCRIPT.format(title=title, command=shlex.join([tool, *self.arguments, *more])))
        path.chmod(0o755)


def run_in_torch(instance: Instance) -> tuple[torch.Tensor, ...]:
    """The results of an instance on its inputs."""
    with torch.no_grad():
        results = instance.module(*instance.inputs)
    return results if isinstance(results, tuple) else (results,)


def _write(tensor: torch.Tensor, folder: Path, name: str) -> str:
    """Write a tensor; how the tools of IREE are told of it, such as `1x64xf16=@in0.bin`."""
    (folder / name).write_bytes(_bytes(tensor))
    return f"{'x'.join([*map(str, tensor.shape), _TYPES[tensor.dtype]])}=@{name}"


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

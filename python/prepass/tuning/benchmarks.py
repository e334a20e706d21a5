# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The best candidates as programs to measure on a real GPU, with their inputs and the commands."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from iree.compiler import version as compiler_version

from prepass.compiler.api import compile
from prepass.errors import PrepassError
from prepass.ir.targets.tuning_table import Entry, TuningTable
from prepass.tuning.extract import FUNCTION, PHASE, Dispatch
from prepass.tuning.sweep import Candidate, OpResult

NOT_RUN = "These programs have not been run on a GPU; the cycles are those of a static cost model."
_BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}
_REPETITIONS = 10


@dataclass(frozen=True)
class BenchmarkOptions:
    """How benchmarks are made: for a target, with flags of iree-compile, so many for each op."""

    target: str
    flags: tuple[str, ...]
    top: int


def write_benchmarks(directory: Path, results: Sequence[OpResult], options: BenchmarkOptions) -> list[Path]:
    """Write a folder for each op; returns the folders.

    Each has the dispatch (`dispatch.mlir`, in IREE's phase `flow`), its inputs, for each of the best candidates a
    program and the tuning table that it was compiled with, and `run.sh` with the commands. Raises PrepassError when a
    file cannot be written, and CompileError.
    """
    try:
        return [
            _write_op(directory / f"{number:02}-{result.op.name}", result, options)
            for number, result in enumerate(results)
            if result.best is not None
        ]
    except OSError as error:
        raise PrepassError(f"cannot write '{error.filename}': {error.strerror}") from None


def _write_op(folder: Path, result: OpResult, options: BenchmarkOptions) -> Path:
    dispatch = next(iter(result.op.dispatches))
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "dispatch.mlir", dispatch.source.encode())
    inputs = [_write_input(folder, number, type_) for number, type_ in enumerate(dispatch.inputs)]
    candidates = result.top(options.top)
    if result.picked and not result.picked.reason and result.picked not in candidates:
        candidates.append(result.picked)
    commands = []
    for number, candidate in enumerate(candidates):
        name = f"candidate{number}"
        _write_candidate(folder / name, dispatch, Entry(result.op.kind, result.op.shape, candidate.choice), options)
        commands.append((candidate, _command(name, inputs)))
    _write(folder / "run.sh", _script(commands).encode())
    os.chmod(folder / "run.sh", 0o755)
    return folder


def _write_candidate(path: Path, dispatch: Dispatch, entry: Entry, options: BenchmarkOptions) -> None:
    table = path.with_suffix(".json")
    _write(table, TuningTable(options.target, compiler_version.VERSION, (entry,)).text().encode())
    program = compile(dispatch.source, start=PHASE, flags=options.flags, tuning_table=table)
    _write(path.with_suffix(".vmfb"), program)


def _write_input(folder: Path, number: int, type_: str) -> str:
    """Write random contents; returns the value for `--input`."""
    *shape, element = type_.split("x")
    count = int(np.prod([int(size) for size in shape]))
    numbers = np.random.default_rng(number).standard_normal(count, dtype=np.float32)
    if element == "bf16":
        # The upper half of an f32, which truncates.
        data = (numbers.view(np.uint32) >> 16).astype(np.uint16)
    elif element in _BYTES:
        data = numbers.astype(f"f{_BYTES[element]}")
    elif element.startswith("i") and element[1:].isdecimal():
        # Zeros and ones, for masks and indices alike.
        data = (numbers > 0).astype(f"i{max(1, int(element[1:]) // 8)}")
    else:
        raise PrepassError(f"no contents are known for an input of type {element}")
    _write(folder / f"input{number}.bin", data.tobytes())
    return f"{type_}=@input{number}.bin"


def _command(name: str, inputs: Sequence[str]) -> list[str]:
    return [
        "iree-benchmark-module",
        "--device=hip",
        f"--module={name}.vmfb",
        f"--function={FUNCTION}",
        *(f"--input={value}" for value in inputs),
        f"--benchmark_repetitions={_REPETITIONS}",
        f"--benchmark_out={name}.times.json",
        "--benchmark_out_format=json",
    ]


def _script(commands: Sequence[tuple[Candidate, list[str]]]) -> str:
    lines = ["#!/bin/sh", f"# {NOT_RUN}", "# On a machine with an MI300 and iree-base-runtime:", "", "set -e"]
    lines.append('cd "$(dirname "$0")"')
    for candidate, command in commands:
        cycles = candidate.price.cycles if candidate.price else 0
        results = "results right in the simulator" if candidate.checked else "results not looked at"
        lines += ["", f"# {cycles:,.0f} cycles, {results}: {candidate.choice}", shlex.join(command)]
    return "\n".join(lines) + "\n"


def _write(path: Path, contents: bytes) -> None:
    """Write a file whole: beside, and renamed."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_bytes(contents)
    os.replace(temporary, path)

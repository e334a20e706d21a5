# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments and external parameters for a program, made from a seed: the same on every machine."""

from __future__ import annotations

import hashlib
import math
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from iree import runtime

from prepass.checking.signature import Argument, Parameter
from prepass.errors import PrepassError
from prepass.ir.ranges import Interval

# Integers that nothing is known of: what a mask may hold, and rows of any table.
_ANY_INTEGER = Interval(0, 1)
# The share of a mask that is on.
_MASK = 0.8
# Elements that are made at once, so that the largest parameter needs no memory of its size.
_CHUNK = 1 << 22


def make_argument(
    argument: Argument, number: int, seed: int, dynamic_size: int, given: tuple[int, ...] | None = None
) -> np.ndarray:
    """An array for an argument.

    Floats have a standard normal distribution, integers are uniform in the range that the program allows, and a mask
    keeps its first column, so that no row is masked as a whole. Dynamic dims have `dynamic_size` elements, or what
    the shape says that is `given`. Raises PrepassError when that does not fit, or for a type that nothing is made for.
    """
    shape = tuple(dynamic_size if size is None else size for size in argument.type.shape)
    if given is not None:
        shape = _check_shape(argument, number, given)
    rng = _generator(seed, f"argument {number}")
    dtype = argument.type.dtype
    if dtype == np.bool_:
        mask = rng.random(shape) < _MASK
        if shape:
            mask[..., 0] = True
        return np.asarray(mask)
    if dtype.kind == "i":
        low, high = (argument.range or _ANY_INTEGER) & Interval(np.iinfo(dtype).min, np.iinfo(dtype).max)
        if low > high:
            raise PrepassError(f"argument {number}: no integer satisfies the program's assertions")
        return np.asarray(rng.integers(low, high, shape, endpoint=True)).astype(dtype)
    return np.asarray(rng.standard_normal(shape, np.float32)).astype(dtype)


def _check_shape(argument: Argument, number: int, given: tuple[int, ...]) -> tuple[int, ...]:
    known = argument.type.shape
    if len(known) != len(given) or any(size not in (None, new) for size, new in zip(known, given, strict=True)):
        raise PrepassError(f"argument {number} is {argument.type}; it cannot be {'x'.join(map(str, given))}")
    return given


def write_parameters(parameters: Iterable[Parameter], seed: int, directory: Path) -> dict[str, str]:
    """Write an archive for each scope; returns their paths by scope.

    A parameter's contents depend on its name and the seed only. Weights of matrices and filters keep the size of what
    they are multiplied with; vectors called a weight are near one, others near zero, and statistics are positive.
    Raises PrepassError for a dynamic parameter, or an element type that nothing is made for.
    """
    scopes: dict[str, list[Parameter]] = {}
    for parameter in parameters:
        scopes.setdefault(parameter.scope, []).append(parameter)
    paths: dict[str, str] = {}
    for number, (scope, found) in enumerate(scopes.items()):
        paths[scope] = str(directory / f"parameters{number or ''}.irpa")
        _write_archive(found, seed, paths[scope])
    return paths


def _write_archive(parameters: Iterable[Parameter], seed: int, path: str) -> None:
    index = runtime.ParameterIndex()
    with tempfile.TemporaryDirectory(prefix="prepass-parameters-", dir=Path(path).parent) as directory:
        for number, parameter in enumerate(parameters):
            contents = _make_parameter(parameter, seed, Path(directory, str(number)))
            index.add_buffer(parameter.key, contents)
        # What was made in memory maps is copied from there.
        index.create_archive_file(path)


def _make_parameter(parameter: Parameter, seed: int, path: Path) -> np.ndarray:
    """The bytes of a parameter, in a file that is mapped."""
    what = f"parameter '{parameter.scope}::{parameter.key}'"
    sizes = [size for size in parameter.type.shape if size is not None]
    if len(sizes) < len(parameter.type.shape):
        raise PrepassError(f"{what} is dynamic; nothing is made for it")
    dtype, count = parameter.type.dtype, math.prod(sizes)
    rng = _generator(seed, f"{parameter.scope}::{parameter.key}")
    mean, deviation = _distribution(parameter.key, sizes)
    contents = np.memmap(path, np.uint8, "w+", shape=max(count * dtype.itemsize, 1))
    for start in range(0, count, _CHUNK):
        some = min(_CHUNK, count - start)
        if dtype.kind in "ib":
            made = rng.integers(0, 2, some).astype(dtype)
        else:
            made = (rng.standard_normal(some, np.float32) * deviation + mean).astype(dtype)
        contents[start * dtype.itemsize : (start + some) * dtype.itemsize] = made.view(np.uint8)
    contents.flush()
    return contents[: count * dtype.itemsize]


def _distribution(key: str, sizes: list[int]) -> tuple[float, float]:
    """Mean and deviation."""
    last = key.lower().rpartition(".")[2]
    if len(sizes) > 1:
        # Of a table of embeddings too: what is looked up is as large as what follows expects.
        return 0.0, 1 / math.sqrt(math.prod(sizes[1:]))
    if last in ("weight", "gamma", "scale") or "var" in last:
        return 1.0, 0.1
    return 0.0, 0.1


def _generator(seed: int, name: str) -> np.random.Generator:
    digest = hashlib.sha256(f"{seed} {name}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "little"))

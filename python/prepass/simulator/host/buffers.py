# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of the user as buffers of the program, and back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prepass.errors import PrepassError
from prepass.simulator.memory import Memory

_TYPES = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "ui8": np.uint8,
    "ui16": np.uint16,
    "ui32": np.uint32,
    "ui64": np.uint64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
}


@dataclass(frozen=True)
class Resource:
    """A range of device memory."""

    address: int
    size: int

    def part(self, offset: int, size: int) -> Resource:
        """A range of the range. Raises PrepassError when it does not lie in it."""
        if offset < 0 or offset + size > self.size:
            raise PrepassError(f"simulator: {size} bytes at {offset} of a buffer of {self.size} bytes")
        return Resource(self.address + offset, size)


@dataclass(frozen=True)
class BufferView:
    """An array of the user, or a result: a buffer with a shape."""

    resource: Resource
    shape: tuple[int, ...]
    kind: str


def element_type(array: np.ndarray) -> str:
    """The element type that an array of the user has; raises PrepassError for types that programs do not have."""
    if array.dtype.name == "bfloat16":
        return "bf16"
    for kind, dtype in _TYPES.items():
        if array.dtype == dtype:
            return kind
    raise PrepassError(f"simulator: arrays of type {array.dtype} are not supported")


def to_device(array: np.ndarray, kind: str, memory: Memory) -> Resource:
    """Copy an array into a buffer as elements of the type `kind`.

    bf16 is taken from arrays of float32 as well, rounded to the nearest. Raises PrepassError for any other
    difference of types.
    """
    given = element_type(array)
    if kind == "bf16" and given == "f32":
        bits = np.ascontiguousarray(array, np.float32).view(np.uint32).astype(np.uint64)
        rounded = (bits + np.uint64(0x7FFF) + ((bits >> np.uint64(16)) & np.uint64(1))) >> np.uint64(16)
        array = np.where(np.isnan(array), np.uint64(0x7FC0), rounded).astype(np.uint16)
    elif given != kind and given.removeprefix("u") != kind:
        raise PrepassError(f"simulator: an argument is of type {kind}, not {given}")
    contents = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
    return Resource(memory.allocate_bytes(contents), len(contents))


def to_host(view: BufferView, memory: Memory) -> np.ndarray:
    """A copy of a buffer as an array; bf16 becomes float32, which holds it exactly."""
    contents = (
        memory.bytes_at(view.resource.address, view.resource.size) if view.resource.size else np.zeros(0, np.uint8)
    )
    if view.kind == "bf16":
        bits = contents.view(np.uint16).astype(np.uint32) << np.uint32(16)
        return bits.view(np.float32).reshape(view.shape)
    if view.kind not in _TYPES:
        raise PrepassError(f"simulator: results of type {view.kind} are not supported")
    size = int(np.prod(view.shape)) * np.dtype(_TYPES[view.kind]).itemsize
    return contents[:size].copy().view(_TYPES[view.kind]).reshape(view.shape)


def parse_tensor_type(text: str, dynamic: Sequence[int]) -> tuple[tuple[int, ...], str]:
    """The shape and the element type of `tensor<4x?xf32>`; sizes of `?` come from `dynamic`."""
    match = re.match(r"tensor<((?:(?:\d+|\?)x)*)(\w+)[,>]", text)
    if not match:
        raise PrepassError(f"simulator: type {text} is not supported")
    rest = list(dynamic)
    sizes = [rest.pop(0) if size == "?" else int(size) for size in match[1].split("x")[:-1]]
    return tuple(sizes), match[2]

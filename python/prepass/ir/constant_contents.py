# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tensor constants contain, in a form that is cheap to keep and compare.

The bindings do not show the data of a `dense_resource`, but they write it to bytecode, where it is a blob of the
resource section. The writer hands it over in one piece, so reading it takes a copy of one constant at a time.

Source: https://mlir.llvm.org/docs/BytecodeFormat/
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Generator
from dataclasses import dataclass

from iree.compiler import ir

_RESOURCE_SECTION = 5
_KEPT_BYTES = 1024

_Reading = Generator[None, None, None]


@dataclass(frozen=True)
class Contents:
    """The data of a constant: the bytes themselves up to 1 KiB, beyond it their 256-bit BLAKE2b hash.

    Two constants of one type are equal when their contents are.
    """

    size: int
    data: bytes


def is_resource(attribute: ir.Attribute) -> bool:
    """Whether `attribute` is a `dense_resource`."""
    try:
        ir.DenseResourceElementsAttr(attribute)
    except ValueError:
        return False
    return True


def contents_of(attribute: ir.Attribute) -> Contents | None:
    """The contents of a `dense_resource` or `dense` attribute.

    None for a resource whose data is not in the module, for splats, and for
    element types that the bindings cannot read from a `dense` attribute.
    """
    if is_resource(attribute):
        return _resource_contents(attribute)
    if not isinstance(attribute, ir.DenseElementsAttr) or attribute.is_splat:
        return None
    try:
        view = memoryview(attribute)
    except BufferError:
        return None
    digest = _Digest()
    digest.add(view.cast("B") if view.c_contiguous else memoryview(view.tobytes()))
    return digest.contents()


def read_resources(attribute: ir.Attribute) -> list[bytes]:
    """The data of each `dense_resource` that an attribute has in it, in the order in which they stand there.

    One that stands there twice comes once, and one whose data is not in the module not at all.
    """
    found: list[bytearray] = []

    def start() -> Callable[[memoryview], object]:
        found.append(bytearray())
        return found[-1].extend

    _read_blobs(attribute, start)
    return [bytes(blob) for blob in found]


def _resource_contents(attribute: ir.Attribute) -> Contents | None:
    digests: list[_Digest] = []

    def start() -> Callable[[memoryview], object]:
        digests.append(_Digest())
        return digests[-1].add

    _read_blobs(attribute, start)
    return digests[0].contents() if digests else None


def _read_blobs(attribute: ir.Attribute, start: Callable[[], Callable[[memoryview], object]]) -> None:
    with attribute.context, ir.Location.unknown():
        holder = ir.Module.create()
        holder.operation.attributes["value"] = attribute
        holder.operation.write_bytecode(_BlobReader(start))


class _Digest:
    """Bytes while they are few, their hash as well when they are many."""

    def __init__(self) -> None:
        self._size = 0
        self._hash = hashlib.blake2b(digest_size=32)
        self._bytes = b""

    def add(self, part: memoryview) -> None:
        self._size += len(part)
        self._hash.update(part)
        if self._size <= _KEPT_BYTES:
            self._bytes += part

    def contents(self) -> Contents:
        return Contents(self._size, self._bytes if self._size <= _KEPT_BYTES else self._hash.digest())


class _BlobReader:
    """A file to write bytecode to; for each blob in it, `start` gives what its parts are handed to."""

    def __init__(self, start: Callable[[], Callable[[memoryview], object]]) -> None:
        self._start = start
        self._offset = 0
        self._chunk = memoryview(b"")
        self._value = 0
        self._steps = self._read()

    def write(self, data: bytes) -> None:
        """Read on as far as `data` reaches."""
        self._chunk = memoryview(data)
        with contextlib.suppress(StopIteration):
            next(self._steps)
        self._chunk = memoryview(b"")

    def _read(self) -> _Reading:
        yield from self._take(4)
        yield from self._read_number()
        while True:
            yield from self._read_bytes(1)
            if self._value == 0:
                break
        while True:
            yield from self._read_bytes(1)
            section = self._value
            yield from self._read_number()
            length = self._value
            if section & 0x80:
                yield from self._read_number()
                yield from self._take(-self._offset % self._value)
            if section & 0x7F == _RESOURCE_SECTION and length:
                yield from self._read_section(self._offset + length)
            else:
                yield from self._take(length)

    def _read_section(self, end: int) -> _Reading:
        while self._offset < end:
            yield from self._read_number()
            alignment = self._value
            yield from self._read_number()
            size = self._value
            yield from self._take(-self._offset % alignment)
            yield from self._take(size, self._start())

    def _read_number(self) -> _Reading:
        """A varint: the zeros at the end of its first byte count the bytes that follow."""
        yield from self._read_bytes(1)
        first = self._value
        following = 8 if first == 0 else (first & -first).bit_length() - 1
        yield from self._read_bytes(following)
        self._value = self._value if first == 0 else (first | self._value << 8) >> (following + 1)

    def _read_bytes(self, count: int) -> _Reading:
        parts: list[memoryview] = []
        yield from self._take(count, parts.append)
        self._value = int.from_bytes(b"".join(parts), "little")

    def _take(self, count: int, use: Callable[[memoryview], object] = lambda _: None) -> _Reading:
        """Pass the next `count` bytes to `use`, waiting for more when the chunk ends."""
        while count:
            while not self._chunk:
                yield
            part, self._chunk = self._chunk[:count], self._chunk[count:]
            self._offset += len(part)
            count -= len(part)
            use(part)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Global memory: buffers at 64-bit addresses, with room between them in which every access is an error."""

from __future__ import annotations

import numpy as np

from prepass.simulator.errors import Fault

# Far from zero and from small offsets, so that neither is taken for an address.
_BASE = 0x7E0000000000
_ALIGNMENT = 4096
_GAP = 1 << 16


class Memory:
    """All buffers of a program.

    They lie in one array, so that one gather reads from any of them.
    """

    def __init__(self) -> None:
        self._bytes = np.zeros(0, np.uint8)
        self._views: dict[int, np.ndarray] = {}
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._used = _GAP
        self._bounds = (np.zeros(0, np.int64), np.zeros(0, np.int64))

    def allocate(self, size: int) -> int:
        """The address of a new buffer of `size` bytes, filled with what no kernel should rely on."""
        start = self._used
        self._used = -(-(start + size + _GAP) // _ALIGNMENT) * _ALIGNMENT
        if self._used > len(self._bytes):
            grown = np.full(max(self._used, 2 * len(self._bytes)), 0xCB, np.uint8)
            grown[: len(self._bytes)] = self._bytes
            self._bytes = grown
            self._views = {size: grown.view(f"u{size}") for size in (1, 2, 4)}
        self._starts.append(start)
        self._ends.append(start + size)
        self._bounds = (np.array(self._starts, np.int64), np.array(self._ends, np.int64))
        return _BASE + start

    def allocate_bytes(self, contents: np.ndarray) -> int:
        """The address of a new buffer with these contents, uint8."""
        address = self.allocate(len(contents))
        self.bytes_at(address, len(contents))[:] = contents
        return address

    def bytes_at(self, address: int, size: int) -> np.ndarray:
        """A view of `size` bytes; it holds until the next allocation. Raises Fault outside of buffers."""
        start = address - _BASE
        self._check(np.array([start], np.int64), size)
        return self._bytes[start : start + size]

    def load(self, addresses: np.ndarray, size: int, active: np.ndarray | None) -> np.ndarray:
        """Read `size` (1, 2 or 4) bytes, zero-extended to uint32, at each address (uint64); 0 where inactive."""
        values = self._read(self._offsets(addresses, size, active), size)
        return values if active is None else np.where(active, values, np.uint32(0))

    def store(self, addresses: np.ndarray, values: np.ndarray, size: int, active: np.ndarray | None) -> None:
        """Write the low `size` bytes of each value at each address where active, in the order of lanes."""
        offsets = self._offsets(addresses, size, active)
        values = np.broadcast_to(values, offsets.shape)
        if active is not None:
            offsets, values = offsets[active], values[active]
        self._write(offsets, values, size)

    def load_words(
        self, addresses: np.ndarray, words: int, active: np.ndarray | None, aligned: bool = False
    ) -> list[np.ndarray]:
        """Read `words` consecutive words at each address; 0 where inactive. `aligned` demands a multiple of 4."""
        first = self._offsets(addresses, 4 * words, active)
        if aligned and (first & 3).any():
            raise Fault(f"address {int(addresses[(first & 3) != 0][0]):#x} is not aligned to 4 bytes")
        values = [self._read(first + 4 * word, 4) for word in range(words)]
        return values if active is None else [np.where(active, value, np.uint32(0)) for value in values]

    def store_words(self, addresses: np.ndarray, values: list[np.ndarray], active: np.ndarray | None) -> None:
        """Write consecutive words at each address where active, in the order of lanes."""
        first = self._offsets(addresses, 4 * len(values), active)
        for word, value in enumerate(values):
            value = np.broadcast_to(value, first.shape)
            if active is None:
                self._write(first + 4 * word, value, 4)
            else:
                self._write(first[active] + 4 * word, value[active], 4)

    def _read(self, offsets: np.ndarray, size: int) -> np.ndarray:
        if size > 1 and (offsets & (size - 1)).any():
            parts = [self._bytes[offsets + byte].astype(np.uint32) << np.uint32(8 * byte) for byte in range(size)]
            return np.bitwise_or.reduce(parts)
        return self._views[size][offsets >> (size.bit_length() - 1)].astype(np.uint32, copy=False)

    def _write(self, offsets: np.ndarray, values: np.ndarray, size: int) -> None:
        if size > 1 and (offsets & (size - 1)).any():
            for byte in range(size):
                self._bytes[offsets + byte] = (values >> np.uint32(8 * byte)).astype(np.uint8)
        else:
            self._views[size][offsets >> (size.bit_length() - 1)] = values.astype(f"u{size}", copy=False)

    def _offsets(self, addresses: np.ndarray, size: int, active: np.ndarray | None) -> np.ndarray:
        """Where `size` bytes at each address lie; inactive lanes get a place that is valid."""
        offsets = (addresses - np.uint64(_BASE)).view(np.int64)
        checked = offsets if active is None else offsets[active]
        if checked.size:
            self._check(checked, size)
        return offsets if active is None else np.where(active, offsets, 0)

    def _check(self, offsets: np.ndarray, size: int) -> None:
        starts, ends = self._bounds
        low, high = int(offsets.min()), int(offsets.max())
        # Nearly always all lanes are in one buffer.
        buffer = int(np.searchsorted(starts, low, "right")) - 1
        if buffer >= 0 and high + size <= ends[buffer]:
            return
        buffers = np.searchsorted(starts, offsets, "right") - 1
        wrong = (buffers < 0) | (offsets + size > ends[np.maximum(buffers, 0)] if len(ends) else True)
        if wrong.any():
            lane = np.argwhere(wrong)[0]
            address = int(offsets[tuple(lane)]) + _BASE
            raise Fault(f"{size} bytes at address {address:#x} are in no buffer")

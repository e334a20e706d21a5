# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Local memory (LDS) of workgroups, with a record of who wrote and read what since the last barrier.

Source: "AMD Instinct MI300 Instruction Set Architecture Reference Guide" (CDNA3), chapter 11, "Local Data Share".
"""

from __future__ import annotations

import numpy as np

from prepass.simulator.errors import Fault


class Lds:
    """The local memory of some workgroups.

    A read of what was never written, and accesses of two waves to the same bytes without a barrier between
    them, one of them a write, are errors. Only two waves that write the same value are not.

    The record has a cell for every `grain` bytes: the kernel's narrowest access.
    """

    def __init__(self, workgroups: int, size: int, grain: int) -> None:
        self.size = size
        self._cells = -(-size // grain)
        self._grain_bits = grain.bit_length() - 1
        padded = -(-size // 8) * 8
        self._stride = padded
        data = np.full((workgroups, padded), 0xCB, np.uint8)
        self._views = {size: data.reshape(-1).view(f"u{size}") for size in (1, 2, 4)}
        cells = workgroups * (padded >> self._grain_bits)
        # When it was written last: epoch · 32 + wave + 1; 0 is never. Epochs are counted by barriers.
        self._written = np.zeros(cells, np.int64)
        self._read_epoch = np.zeros(cells, np.int32)
        self._readers = np.zeros(cells, np.uint32)
        self._epoch = np.ones(workgroups, np.int64)

    def barrier(self, workgroups: np.ndarray) -> None:
        """All waves of these workgroups have passed a barrier."""
        self._epoch[workgroups] += 1

    def load(
        self, workgroup: np.ndarray, wave: np.ndarray, addresses: np.ndarray, size: int, active: np.ndarray | None
    ) -> np.ndarray:
        """Read `size` (1, 2 or 4) bytes, zero-extended to uint32, at each address (int64[count, 64])."""
        offsets = self._offsets(workgroup, addresses, size, active)
        cells = offsets >> self._grain_bits
        self._check_read(workgroup, wave, cells, size, active, addresses)
        values = self._views[size][offsets >> (size.bit_length() - 1)].astype(np.uint32, copy=False)
        return values if active is None else np.where(active, values, np.uint32(0))

    def store(
        self,
        workgroup: np.ndarray,
        wave: np.ndarray,
        addresses: np.ndarray,
        values: np.ndarray,
        size: int,
        active: np.ndarray | None,
    ) -> None:
        """Write the low `size` bytes of each value at each address where active."""
        offsets = self._offsets(workgroup, addresses, size, active)
        values = np.broadcast_to(values, offsets.shape).astype(f"u{size}", copy=False)
        waves, epochs = np.broadcast_to(wave[:, None], offsets.shape), self._epochs(workgroup, offsets.shape)
        if active is not None:
            offsets, values, waves, epochs = offsets[active], values[active], waves[active], epochs[active]
        else:
            offsets, values, waves, epochs = offsets.ravel(), values.ravel(), waves.ravel(), epochs.ravel()
        at = offsets >> (size.bit_length() - 1)
        for cells in self._cells_of(offsets, size):
            self._check_write(cells, waves, epochs, self._views[size][at] != values)
            self._written[cells] = epochs * 32 + waves + 1
        self._views[size][at] = values
        # Of lanes that write to one place, the last wins, in one wave; between waves there is no order.
        if (lost := self._views[size][at] != values).any():
            for cells in self._cells_of(offsets[lost], size):
                if (self._written[cells] != epochs[lost] * 32 + waves[lost] + 1).any():
                    raise Fault("two waves write different values to the same LDS bytes at once")

    def _offsets(
        self, workgroup: np.ndarray, addresses: np.ndarray, size: int, active: np.ndarray | None
    ) -> np.ndarray:
        checked = addresses if active is None else addresses[active]
        if checked.size:
            if checked.min() < 0 or checked.max() + size > self.size:
                bad = checked[(checked < 0) | (checked + size > self.size)][0]
                raise Fault(f"{size} bytes at LDS address {int(bad):#x}, of {self.size} bytes")
            if size > 1 and (checked & (size - 1)).any():
                bad = checked[(checked & (size - 1)) != 0][0]
                raise Fault(f"LDS address {int(bad):#x} is not aligned to {size} bytes")
        offsets = addresses + (workgroup.astype(np.int64) * self._stride)[:, None]
        return offsets if active is None else np.where(active, offsets, 0)

    def _cells_of(self, offsets: np.ndarray, size: int) -> list[np.ndarray]:
        cells = offsets >> self._grain_bits
        return [cells + extra for extra in range(max(size >> self._grain_bits, 1))]

    def _epochs(self, workgroup: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        return np.broadcast_to(self._epoch[workgroup][:, None], shape)

    def _check_read(
        self,
        workgroup: np.ndarray,
        wave: np.ndarray,
        first: np.ndarray,
        size: int,
        active: np.ndarray | None,
        addresses: np.ndarray,
    ) -> None:
        own = (self._epoch[workgroup] * 32 + wave + 1)[:, None]
        current = (self._epoch[workgroup] * 32)[:, None]
        epoch = self._epochs(workgroup, first.shape)
        bit = np.broadcast_to((np.uint32(1) << wave.astype(np.uint32))[:, None], first.shape)
        for extra in range(max(size >> self._grain_bits, 1)):
            cells = first + extra
            written = self._written[cells]
            bad = (written == 0) | ((written > current) & (written != own))
            if active is not None:
                bad &= active
            if bad.any():
                at = tuple(np.argwhere(bad)[0])
                where = f"LDS address {int(np.broadcast_to(addresses, bad.shape)[at]):#x}"
                if written[at] == 0:
                    raise Fault(f"reads {where}, which was never written")
                writer = int(written[at]) % 32 - 1
                raise Fault(f"wave {wave[at[0]]} reads {where}, written by wave {writer} without a barrier since")
            chosen = slice(None) if active is None else active
            cells, bits, epochs = cells[chosen].ravel(), bit[chosen].ravel(), epoch[chosen].ravel()
            # The readers of an earlier epoch do not count.
            stale = self._read_epoch[cells] != epochs
            self._readers[cells[stale]] = 0
            self._read_epoch[cells] = epochs
            np.bitwise_or.at(self._readers, cells, bits)

    def _check_write(self, cells: np.ndarray, waves: np.ndarray, epochs: np.ndarray, differs: np.ndarray) -> None:
        others = self._readers[cells] & ~(np.uint32(1) << waves.astype(np.uint32))
        read = (self._read_epoch[cells] == epochs) & (others != 0) & differs
        if read.any():
            at = int(np.argwhere(read)[0][0])
            reader = int(others[at]).bit_length() - 1
            raise Fault(f"wave {waves[at]} writes LDS bytes that wave {reader} read without a barrier since")
        written = self._written[cells]
        raced = (written > epochs * 32) & (written != epochs * 32 + waves + 1) & differs
        if raced.any():
            at = int(np.argwhere(raced)[0][0])
            writer = int(written[at]) % 32 - 1
            raise Fault(f"wave {waves[at]} overwrites LDS bytes that wave {writer} wrote without a barrier since")

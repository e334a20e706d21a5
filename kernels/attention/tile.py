# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a workgroup is laid out: its waves, what of K and V it holds in LDS, and where the rows lie."""

from __future__ import annotations

from dataclasses import dataclass

LANES = 64
# Rows and columns of the matrix instruction, 32x32x8, and the elements that a lane holds of each factor.
BLOCK = 32
PER_LANE = 4
# Elements of 16 bits in the 16 bytes that a lane moves at once.
CHUNK = 8


@dataclass(frozen=True)
class AttentionTile:
    """What a workgroup computes: each wave 32 queries, against some keys at a time.

    Attributes:
      waves: Of a workgroup.
      keys: Of an iteration, a multiple of 32.
      key_channels: Channels of Q and K, a multiple of 8.
      value_channels: Channels of V, a multiple of 8.
    """

    waves: int
    keys: int
    key_channels: int
    value_channels: int

    @property
    def rows(self) -> int:
        """Queries of a workgroup."""
        return self.waves * BLOCK

    @property
    def threads(self) -> int:
        """Work items of a workgroup."""
        return self.waves * LANES

    @property
    def key_blocks(self) -> int:
        """Blocks of 32 keys of an iteration."""
        return self.keys // BLOCK

    @property
    def value_blocks(self) -> int:
        """Blocks of 32 channels of the result, the last one perhaps in part."""
        return -(-self.value_channels // BLOCK)

    @property
    def key_shape(self) -> tuple[int, int]:
        """Of the buffer of K, (k2, k1)."""
        return self.keys, padded(self.key_channels)

    @property
    def value_shape(self) -> tuple[int, int]:
        """Of the buffer of V, (n, k2)."""
        return self.value_channels, padded(self.keys)

    @property
    def lds_bytes(self) -> int:
        """Of both buffers."""
        return 2 * (self.key_shape[0] * self.key_shape[1] + self.value_shape[0] * self.value_shape[1])


def padded(columns: int) -> int:
    """The length of a row in LDS, an odd multiple of 16 bytes.

    So eight lanes that read 16 bytes each of neighbouring rows meet all 32 banks, each once.
    """
    return CHUNK * ((columns // CHUNK) | 1)

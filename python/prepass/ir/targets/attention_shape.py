# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the lowering config of an attention op depends on; shared by the tables of all targets."""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir


@dataclass(frozen=True)
class AttentionShape:
    """The loop extents of one `iree_linalg_ext.attention`, in its loop order.

    Extents are None where dynamic.

    Attributes:
      batch: One extent per batch loop. Static 1 stands for a loop that IREE drops.
      m: Queries.
      n: Channels of the result, those of V.
      k1: Channels of Q and K, the head dim.
      k2: Keys.
      element_type: Of Q, K and V: "f16", "bf16" or "f32".
      value_transposed: Whether V is laid out (…, n, k2) rather than (…, k2, n).
      masked: Whether the op has a mask operand.
      key_transposed: Whether K is laid out (…, k1, k2) rather than (…, k2, k1).
      k1_loops: Two where the channels are two loops, which they are when Q is rotated in the same dispatch.
      k1_width: The extent of the inner one of two such loops, where it is known.
    """

    batch: tuple[int | None, ...]
    m: int | None
    n: int | None
    k1: int | None
    k2: int | None
    element_type: str
    value_transposed: bool = False
    masked: bool = False
    key_transposed: bool = False
    k1_loops: int = 1
    k1_width: int | None = None


class NoConfig(Exception):
    """No config makes this attention right, or makes it compile, on the target.

    Attributes:
      reason: Why, as a clause.
      breaks: Whether the op would be wrong or not compile at all. Otherwise it works, but
        so badly that no op should be raised to it.
    """

    def __init__(self, reason: str, breaks: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.breaks = breaks


def load_dialects(*names: str) -> None:
    """Load dialects into the current context: an attribute builder of one that is not loaded crashes the process."""
    for name in names:
        ir.Context.current.get_dialect_descriptor(name)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering configs for attention, chosen by target and shape."""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.targets.target import Target


@dataclass(frozen=True)
class AttentionShape:
    """The loop extents of one `iree_linalg_ext.attention`, in its loop order.

    Extents are None where dynamic.

    Attributes:
      batch: One extent per batch loop, none of them static 1.
      m: Queries.
      n: Channels of the result, those of V.
      k1: Channels of Q and K, the head dim.
      k2: Keys.
      element_type: Of Q, K and V: "f16", "bf16" or "f32".
      value_transposed: Whether V is laid out (…, n, k2) rather than (…, k2, n).
      masked: Whether the op has a mask operand.
    """

    batch: tuple[int | None, ...]
    m: int | None
    n: int | None
    k1: int | None
    k2: int | None
    element_type: str
    value_transposed: bool = False
    masked: bool = False


class NoConfig(Exception):
    """No config makes this attention right, or makes it compile, on the target."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def attention_attributes(target: Target, shape: AttentionShape) -> dict[str, ir.Attribute]:
    """The attributes to set on an attention op of this shape, by name.

    Empty when the target is not in the table: its default is kept. Raises NoConfig.
    """
    from prepass.ir.targets import llvm_cpu

    if target.backend == "llvm-cpu":
        return llvm_cpu.attention_attributes(shape, getattr(target, "vector_bytes", None) or 16)
    return {}

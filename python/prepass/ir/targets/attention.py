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
      batch: One extent per batch loop. Static 1 stands for a loop that IREE drops.
      m: Queries.
      n: Channels of the result, those of V.
      k1: Channels of Q and K, the head dim.
      k2: Keys.
      element_type: Of Q, K and V: "f16", "bf16" or "f32".
      value_transposed: Whether V is laid out (…, n, k2) rather than (…, k2, n).
      masked: Whether the op has a mask operand.
      key_transposed: Whether K is laid out (…, k1, k2) rather than (…, k2, k1).
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


def attention_attributes(target: Target, shape: AttentionShape) -> dict[str, ir.Attribute]:
    """The attributes to set on an attention op of this shape, by name.

    They are for the loops that remain once IREE has dropped the unit ones, so they may be
    set before or after that. IREE also collapses and expands batch loops, and a config of
    another rank then stops the compilation: set them where that is over, on the
    executable sources, or where nothing around the op reshapes its batch.

    Args:
      target: What the op is compiled for.
      shape: The extents of its loops.

    Returns:
      `compilation_info`, with `decomposition_config` on a GPU. Empty where the default is
      kept: another target, or a shape that the default serves as well.

    Raises:
      NoConfig: The op would be wrong, break the compiler or be far too slow, and no config prevents it.
    """
    # The tables need this module's classes.
    from prepass.ir.targets import gfx942, llvm_cpu

    if target.backend == "llvm-cpu":
        return llvm_cpu.attention_attributes(shape, target.vector_bytes or llvm_cpu.SMALLEST_VECTOR_BYTES)
    if target.architecture == "gfx942":
        return gfx942.attention_attributes(shape)
    return {}


def padded_keys(target: Target, shape: AttentionShape) -> int | None:
    """How many keys the target wants the op to be padded to, or None where they are fine.

    Padding takes a mask with -inf at the new keys, which is exact even for a row whose
    other keys are all at the lowest legal value, -2.3e38.
    """
    from prepass.ir.targets import gfx942

    return gfx942.padded_keys(shape) if target.architecture == "gfx942" else None


def load_dialects(*names: str) -> None:
    """Load dialects into the current context: an attribute builder of one that is not loaded crashes the process."""
    for name in names:
        ir.Context.current.get_dialect_descriptor(name)

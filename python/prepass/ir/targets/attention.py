# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering configs for attention, chosen by target and shape."""

from __future__ import annotations

from iree.compiler import ir

from prepass.ir.targets import gfx942, llvm_cpu
from prepass.ir.targets.attention_shape import AttentionShape
from prepass.ir.targets.target import Target


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
    return gfx942.padded_keys(shape) if target.architecture == "gfx942" else None


def decomposed_is_faster(target: Target, shape: AttentionShape) -> bool:
    """Whether the target computes the op faster as two contractions and a softmax between them."""
    return target.backend == "llvm-cpu" and llvm_cpu.decomposed_is_faster(shape, target.vector_bytes)


def wants_transposed_keys(target: Target, shape: AttentionShape) -> bool:
    """Whether the target computes the op enough faster with K as (…, k1, k2) to pay for a copy of it."""
    return target.backend == "llvm-cpu" and llvm_cpu.wants_transposed_keys(shape)


def key_row_padding(target: Target, shape: AttentionShape) -> int:
    """How many elements the rows of K as (…, k1, k2) are to be longer in memory than there are keys."""
    return llvm_cpu.key_row_padding(shape) if target.backend == "llvm-cpu" else 0


def reason_to_rotate_apart(target: Target, shape: AttentionShape) -> str | None:
    """Why the rotary embedding of Q had better not be in the dispatch of its attention, or None where it should be."""
    if target.architecture == "gfx942":
        return gfx942.reason_to_rotate_apart(shape)
    return f"a rotation in the attention gains nothing on {target.name}"

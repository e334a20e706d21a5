# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keeping a layout that a pass chose from what the compiler folds and propagates afterwards."""

from __future__ import annotations

from iree.compiler import ir

from prepass.ir.elementwise import dynamic_sizes

_BARRIER = "iree_tensor_ext.compute_barrier.start"


def keep_layout(value: ir.Value) -> ir.Value:
    """`value` behind a barrier that no transpose or reshape is moved down across.

    IREE drops the barrier once it has formed dispatches. Without it a transpose folds into
    the op that reads its result, as another indexing map over the layout before.
    """
    return ir.Operation.create(_BARRIER, [value.type], [value, *dynamic_sizes(value)]).result


def is_kept(op: ir.Operation | None) -> bool:
    """Whether an op is a barrier of `keep_layout`."""
    return op is not None and op.name == _BARRIER

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keeping a layout that a pass chose from what the compiler folds and propagates afterwards."""

from __future__ import annotations

from iree.compiler import ir

from prepass.ir.elementwise import dynamic_sizes
from prepass.ir.emit import index_constant

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


def opaque_index(number: int, block: ir.Block) -> ir.Value:
    """An index that the compiler does not fold into dispatches.

    They take it as an operand, so that those that differ by it alone are one executable. It is made where `block`
    begins: between dispatches it would divide the command buffer.
    """
    with ir.InsertionPoint.at_block_begin(block):
        return ir.Operation.create("util.optimization_barrier", [ir.IndexType.get()], [index_constant(number)]).result

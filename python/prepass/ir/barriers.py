# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keeping a layout that a pass chose from what the compiler folds and propagates afterwards."""

from __future__ import annotations

from iree.compiler import ir

from prepass.ir.emit import index_constant


def keep_layout(value: ir.Value) -> ir.Value:
    """`value` behind a barrier that no transpose or reshape is moved down across.

    IREE drops the barrier once it has formed dispatches. Without it a transpose folds into
    the op that reads its result, as another indexing map over the layout before.
    """
    type_ = ir.RankedTensorType(value.type)
    sizes = [
        ir.Operation.create("tensor.dim", [ir.IndexType.get()], [value, index_constant(dim)]).result
        for dim in range(type_.rank)
        if type_.is_dynamic_dim(dim)
    ]
    return ir.Operation.create("iree_tensor_ext.compute_barrier.start", [type_], [value, *sizes]).result

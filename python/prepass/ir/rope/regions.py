# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dispatch regions that are formed before IREE forms its own, which keeps it from fusing anything else in or out."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from prepass.ir.axes import Axis
from prepass.ir.emit import Extents


def tensor_type(axes: Sequence[Axis], element: ir.Type) -> ir.RankedTensorType:
    """A tensor with a dim for each axis."""
    dynamic = ir.ShapedType.get_dynamic_size()
    return ir.RankedTensorType.get([dynamic if axis.extent is None else axis.extent for axis in axes], element)


def sizes_of(axes: Sequence[Axis], extents: Extents) -> list[ir.Value]:
    """The dynamic sizes of such a tensor."""
    return [extents.value(axis) for axis in axes if axis.extent is None]


def open_region(types: Sequence[ir.Type], sizes: Sequence[ir.Value]) -> ir.Operation:
    """A `flow.dispatch.region` with an empty block; `sizes` are the dynamic sizes of all results."""
    region = ir.Operation.create(
        "flow.dispatch.region",
        list(types),
        list(sizes),
        {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(sizes), 0])},
        regions=2,
    )
    region.regions[0].blocks.append()
    return region

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The named convolutions of one group, by the layouts of their operands."""

from __future__ import annotations

from iree.compiler import ir

# Input, filter and output, one letter a dim: n batch, c and f channels, all others space.
LAYOUTS = {
    "linalg.conv_1d_ncw_fcw": ("ncw", "fcw", "nfw"),
    "linalg.conv_1d_nwc_wcf": ("nwc", "wcf", "nwf"),
    "linalg.conv_2d_nchw_fchw": ("nchw", "fchw", "nfhw"),
    "linalg.conv_2d_nhwc_hwcf": ("nhwc", "hwcf", "nhwf"),
    "linalg.conv_2d_nhwc_fhwc": ("nhwc", "fhwc", "nhwf"),
    "linalg.conv_3d_ncdhw_fcdhw": ("ncdhw", "fcdhw", "nfdhw"),
    "linalg.conv_3d_ndhwc_dhwcf": ("ndhwc", "dhwcf", "ndhwf"),
}
SPACE = "dhw"


def rates(op: ir.Operation, name: str) -> list[int]:
    """The strides or the dilations of a named convolution, one a spatial dim."""
    layout = LAYOUTS[op.name][0]
    if name not in op.attributes:
        return [1] * sum(letter in SPACE for letter in layout)
    return [int(value) for value in ir.DenseIntElementsAttr(op.attributes[name])]

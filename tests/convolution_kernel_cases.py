# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions for the kernel of `prepass.kernels.convolution`, with numpy references."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prepass.kernels.convolution.examples import example

# What puts the padding into the dispatch of its convolution.
FUSE_PADDING = "--iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops=true"
# Relative to the largest result.
TOLERANCE = {"f16": 1e-3, "bf16": 1e-2}


@dataclass(frozen=True)
class Case:
    """A convolution of the kernel's examples, with a bias and a maximum."""

    batch: int
    height: int
    width: int
    channels: int
    filters: int
    window: int = 3
    stride: int = 1
    element: str = "f16"

    @property
    def source(self) -> str:
        """The module."""
        sizes = (self.batch, self.height, self.width, self.channels, self.filters)
        return example(*sizes, window=self.window, stride=self.stride, element=self.element).source

    def inputs(self) -> list[np.ndarray]:
        """Image, filters, bias; bf16 as f32 that bf16 holds."""
        random = np.random.default_rng(self.channels + self.filters)
        shapes = (
            (self.batch, self.height, self.width, self.channels),
            (self.filters, self.window, self.window, self.channels),
            (self.filters,),
        )
        values = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
        if self.element == "f16":
            return [value.astype(np.float16) for value in values]
        return [(value.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32) for value in values]


def convolve(image: np.ndarray, filters: np.ndarray, stride: int, pad: int) -> np.ndarray:
    """NHWC by FHWC, in f64."""
    image = np.pad(image.astype(np.float64), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    window = filters.shape[1]
    rows, columns = ((size - window) // stride + 1 for size in image.shape[1:3])
    total = np.zeros((image.shape[0], rows, columns, filters.shape[0]))
    for i in range(window):
        for j in range(window):
            part = image[:, i : i + stride * rows : stride, j : j + stride * columns : stride][:, :rows, :columns]
            total += part @ filters[:, i, j].astype(np.float64).T
    return total


def expected(case: Case, inputs: list[np.ndarray]) -> np.ndarray:
    """The result of a case."""
    image, filters, bias = inputs
    return np.maximum(convolve(image, filters, case.stride, case.window // 2) + bias.astype(np.float64), 0)


def relative_error(result: np.ndarray, reference: np.ndarray) -> float:
    """The largest difference, relative to the largest number of the reference."""
    return float(np.abs(result.astype(np.float64) - reference).max() / np.abs(reference).max())

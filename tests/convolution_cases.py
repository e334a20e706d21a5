# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions of every kind as linalg IR, each with its numpy reference in float64."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from .convolution_text import module_text
from .graphs import DTYPES

SPATIAL = "dhw"
_INTEGERS = {"i8": np.dtype(np.int8), "i32": np.dtype(np.int32)}


@dataclass(frozen=True)
class ConvCase:
    """One convolution and what stands around it.

    Layouts are strings of one letter a dim: n batch, g groups, c and f channels in and out, m multiplier,
    d, h and w space, as in the names of the linalg ops.

    Attributes:
      input, filter, output: Layouts.
      sizes: Of the letters, where they differ from SIZES; spatial letters are the sizes of the image.
      kernel: The size of the filter along each spatial dim.
      low, high: Padding of each spatial dim.
      accumulator: The element type of the sum; the result has `element` again.
      generic: Written as linalg.generic, and not by name.
      constant: The filter is a constant of the program, and not an argument.
      dynamic: The letters of dims of the input that are dynamic.
      before, after: Names of ops around the convolution: groupnorm, silu, bias, time, residual.
      zero_points: Of input and filter in a quantized convolution, which has a name of its own.
      transposed: The stride of a transposed convolution, written as torch exports it, or 0.
    """

    name: str
    input: str = "nchw"
    filter: str = "fchw"
    output: str = "nfhw"
    sizes: tuple[tuple[str, int], ...] = ()
    kernel: int = 3
    stride: int = 1
    dilation: int = 1
    low: int = 1
    high: int = 1
    element: str = "f32"
    accumulator: str = "f32"
    generic: bool = False
    constant: bool = False
    dynamic: str = ""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    zero_points: tuple[int, int] | None = None
    transposed: int = 0

    def __str__(self) -> str:
        return self.name

    @property
    def space(self) -> str:
        """The spatial letters."""
        return "".join(letter for letter in self.input if letter in SPATIAL)

    def size(self, letter: str) -> int:
        """The size of the input or the filter along a letter."""
        return {**SIZES, **dict(self.sizes)}[letter]

    def image(self, letter: str) -> int:
        """The size that the convolution op reads along a spatial letter, padding included."""
        size = self.size(letter)
        spread = self.transposed * (size - 1) + 1 if self.transposed else size
        return spread + self.low + self.high

    def result(self, letter: str) -> int:
        """The size of the result along a letter."""
        if letter not in SPATIAL:
            return self.size(letter)
        return (self.image(letter) - self.dilation * (self.kernel - 1) - 1) // self.stride + 1

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of the argument, without padding."""
        return tuple(self.size(letter) for letter in self.input)

    @property
    def filter_shape(self) -> tuple[int, ...]:
        """The shape of the filter as the convolution op reads it."""
        return tuple(self.kernel if letter in SPATIAL else self.size(letter) for letter in self.filter)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return tuple(self.result(letter) for letter in self.output)

    @property
    def argument_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the arguments by name, in order."""
        shapes = {"x": self.input_shape}
        if not self.constant:
            # Torch keeps the filters of transposed convolutions with the channels swapped.
            exchanged = {"f": "c", "c": "f"} if self.transposed else {}
            shapes["w"] = tuple(
                self.kernel if letter in SPATIAL else self.size(exchanged.get(letter, letter)) for letter in self.filter
            )
        channels = tuple(self.size(letter) for letter in self.output if letter in "gfm" or letter == self._depth)
        if "bias" in self.after:
            shapes["bias"] = channels
        if "time" in self.after:
            shapes["time"] = (self.size("n"), *channels)
        return shapes

    @property
    def _depth(self) -> str:
        # The channel of a depthwise convolution is both in and out.
        return "c" if "c" in self.output else ""

    def weights(self) -> np.ndarray:
        """The filter of a case in which it is constant."""
        return self._random("w", self.filter_shape)

    def inputs(self) -> list[np.ndarray]:
        """The arguments."""
        return [self._random(name, shape) for name, shape in self.argument_shapes.items()]

    def _random(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        rng = np.random.default_rng(sum(map(ord, self.name + name)))
        if self.element in _INTEGERS:
            return rng.integers(-100, 100, shape).astype(_INTEGERS[self.element])
        return (rng.standard_normal(shape) * (0.3 if name == "w" else 1)).astype(DTYPES[self.element])

    def module(self) -> str:
        """The module, with the function `main`."""
        return module_text(self)

    def reference(self) -> np.ndarray:
        """The result in float64, or in int64."""
        exact = np.int64 if self.element in _INTEGERS else np.float64
        arguments = dict(zip(self.argument_shapes, self.inputs(), strict=True))
        x = arguments["x"].astype(exact)
        w = arguments.get("w", self.weights() if self.constant else None).astype(exact)
        for step in self.before:
            x = _silu(x) if step == "silu" else _group_norm(x, self.input)
        if self.transposed:
            space = tuple(dim for dim, letter in enumerate(self.filter) if letter in SPATIAL)
            x, w = self._spread(x), np.flip(w, space).swapaxes(self.filter.index("f"), self.filter.index("c"))
        zero_x, zero_w = self.zero_points or (0, 0)
        amounts = [(self.low, self.high) if letter in SPATIAL else (0, 0) for letter in self.input]
        x = np.pad(x, amounts, constant_values=zero_x) - zero_x
        y = self._convolve(x, w - zero_w)
        for step in self.after:
            y = self._after(step, y, arguments)
        return y

    def _spread(self, x: np.ndarray) -> np.ndarray:
        shape = [
            self.transposed * (size - 1) + 1 if letter in SPATIAL else size
            for letter, size in zip(self.input, x.shape, strict=True)
        ]
        spread = np.zeros(shape, x.dtype)
        spread[tuple(slice(None, None, self.transposed if letter in SPATIAL else 1) for letter in self.input)] = x
        return spread

    def _convolve(self, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        y = np.zeros(self.output_shape, x.dtype)
        letters = "".join(letter for letter in self.filter if letter not in SPATIAL)
        for at in itertools.product(range(self.kernel), repeat=len(self.space)):
            place = dict(zip(self.space, at, strict=True))
            window = tuple(
                slice(
                    place[letter] * self.dilation,
                    place[letter] * self.dilation + self.stride * (self.result(letter) - 1) + 1,
                    self.stride,
                )
                if letter in SPATIAL
                else slice(None)
                for letter in self.input
            )
            tap = w[tuple(place[letter] if letter in SPATIAL else slice(None) for letter in self.filter)]
            y += np.einsum(f"{self.input},{letters}->{self.output}", x[window], tap)
        return y

    def _after(self, step: str, y: np.ndarray, arguments: dict[str, np.ndarray]) -> np.ndarray:
        if step == "silu":
            return _silu(y)
        if step == "residual":
            return y + arguments["x"].astype(np.float64)
        letters = [letter for letter in self.output if letter in "gfm" or letter == self._depth]
        extra = ["n", *letters] if step == "time" else letters
        shape = [self.result(letter) if letter in extra else 1 for letter in self.output]
        return y + arguments[step].astype(np.float64).reshape(shape)

    @property
    def tolerance(self) -> float:
        """What rounding can make of the difference to the reference."""
        largest = max(float(np.abs(self.reference()).max()), 1.0)
        rounding = {"f32": 1e-5, "f16": 2e-3, "bf16": 1.6e-2}
        return 0.0 if self.element in _INTEGERS else largest * rounding[self.element] * (2 if self.before else 1)


SIZES = {"n": 2, "g": 2, "c": 8, "f": 12, "m": 2, "d": 4, "h": 9, "w": 7}


def _silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


def _group_norm(x: np.ndarray, layout: str) -> np.ndarray:
    """Two groups of channels, as `convolution_text` writes it."""
    at = layout.index("c")
    split = x.reshape(*x.shape[:at], 2, x.shape[at] // 2, *x.shape[at + 1 :])
    axes = tuple(d for d in range(split.ndim) if d not in (0, at))
    mean = split.mean(axes, keepdims=True)
    variance = ((split - mean) ** 2).mean(axes, keepdims=True)
    return ((split - mean) / np.sqrt(variance + 1e-5)).reshape(x.shape)


NHWC = {"input": "nhwc", "filter": "hwcf", "output": "nhwf"}
FHWC = {"input": "nhwc", "filter": "fhwc", "output": "nhwf"}
GROUPED = {"input": "ngchw", "filter": "gfchw", "output": "ngfhw"}
DEPTHWISE = {"input": "nchw", "filter": "chw", "output": "nchw"}

CASES = [
    ConvCase("conv_1d", "ncw", "fcw", "nfw"),
    ConvCase("conv_1d_last", "nwc", "wcf", "nwf"),
    ConvCase("conv_2d"),
    ConvCase("conv_2d_hwcf", **NHWC),
    ConvCase("conv_2d_fhwc", **FHWC),
    ConvCase("conv_3d", "ncdhw", "fcdhw", "nfdhw"),
    ConvCase("conv_3d_last", "ndhwc", "dhwcf", "ndhwf"),
    ConvCase("stride_2", stride=2),
    ConvCase("stride_2_high", stride=2, low=0, high=1),
    ConvCase("dilation_2", dilation=2, low=2, high=2),
    ConvCase("no_padding", low=0, high=0),
    ConvCase("uneven_padding", low=2, high=0),
    ConvCase("kernel_5", kernel=5, low=2, high=2),
    ConvCase("kernel_2", kernel=2, low=0, high=1),
    ConvCase("conv_1x1", kernel=1, low=0, high=0),
    ConvCase("conv_1x1_stride_2", kernel=1, low=0, high=0, stride=2),
    ConvCase("stem_3", sizes=(("c", 3),)),
    ConvCase("stem_4", sizes=(("c", 4),)),
    ConvCase("patches", sizes=(("c", 3), ("h", 8), ("w", 8)), kernel=4, stride=4, low=0, high=0),
    ConvCase("out_4", sizes=(("f", 4),)),
    ConvCase("batch_1", sizes=(("n", 1),)),
    ConvCase("grouped", **GROUPED),
    ConvCase("grouped_stride_2", **GROUPED, stride=2),
    ConvCase("grouped_last", "nhwgc", "gfhwc", "nhwgf"),
    ConvCase("depthwise", **DEPTHWISE),
    ConvCase("depthwise_stride_2", **DEPTHWISE, stride=2),
    ConvCase("depthwise_last", "nhwc", "hwc", "nhwc"),
    ConvCase("depthwise_multiplier", "nhwc", "hwcm", "nhwcm"),
    ConvCase("depthwise_1d", "ncw", "cw", "ncw"),
    ConvCase("transposed_k4_s2", kernel=4, transposed=2, low=2, high=2),
    ConvCase("transposed_k2_s2", kernel=2, transposed=2, low=1, high=1),
    ConvCase("transposed_k3_s2", kernel=3, transposed=2, low=1, high=2),
    ConvCase("transposed_k3_s3", kernel=3, transposed=3, low=2, high=2),
    ConvCase("quantized", **NHWC, element="i8", accumulator="i32", zero_points=(3, -2)),
    ConvCase("quantized_first", element="i8", accumulator="i32", zero_points=(3, 0)),
    ConvCase("integers", **NHWC, element="i8", accumulator="i32"),
    ConvCase("f16", element="f16"),
    ConvCase("bf16", element="bf16"),
    ConvCase("f16_grouped", **GROUPED, element="f16"),
    ConvCase("f16_depthwise", **DEPTHWISE, element="f16"),
    ConvCase("bf16_1d", "ncw", "fcw", "nfw", element="bf16"),
    ConvCase("generic", generic=True),
    ConvCase("generic_stride_2", generic=True, stride=2, dilation=2),
    ConvCase("generic_grouped", **GROUPED, generic=True),
    ConvCase("generic_depthwise", **DEPTHWISE, generic=True),
    ConvCase("generic_3d", "ncdhw", "fcdhw", "nfdhw", generic=True, element="f16"),
    ConvCase("constant_filter", constant=True),
    ConvCase("constant_filter_f16", constant=True, element="f16"),
    ConvCase("dynamic_batch", dynamic="n"),
    ConvCase("dynamic_space", dynamic="hw"),
    ConvCase("dynamic_all", dynamic="nhw", stride=2),
    ConvCase("bias", after=("bias",)),
    ConvCase("bias_silu_f16", after=("bias", "silu"), element="f16"),
    ConvCase("time_silu", after=("bias", "time", "silu")),
    ConvCase("residual", sizes=(("f", 8),), after=("bias", "residual")),
    ConvCase("norm_silu", before=("groupnorm", "silu")),
    ConvCase("norm_silu_bias_f16", before=("groupnorm", "silu"), after=("bias",), element="f16"),
    ConvCase("norm_silu_bias_residual", sizes=(("f", 8),), before=("groupnorm", "silu"), after=("bias", "residual")),
    ConvCase("depthwise_bias_silu", **DEPTHWISE, after=("bias", "silu")),
    ConvCase("dynamic_norm_bias", before=("groupnorm", "silu"), after=("bias",), dynamic="nhw"),
]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs around channels-first convolutions, in the forms that exporters write."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

Shape = tuple[int, ...]


@dataclass
class Program:
    """A function under construction.

    Attributes:
      images: The tensors of rank 4 that there are so far, as (name, shape): batch, channels, height, width.
    """

    seed: int
    lines: list[str] = field(default_factory=list)
    arguments: list[tuple[str, Shape]] = field(default_factory=list)
    images: list[tuple[str, Shape]] = field(default_factory=list)
    count: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def argument(self, shape: Shape) -> str:
        name = f"%arg{len(self.arguments)}"
        self.arguments.append((name, shape))
        return name

    def emit(self, text: str) -> str:
        name = self.name()
        self.lines.append(f"{name} = {text}")
        return name

    def fill(self, shape: Shape, value: str = "0.0") -> str:
        number = self.emit(f"arith.constant {value} : f32")
        empty = self.emit(f"tensor.empty() : {tensor(shape)}")
        return self.emit(f"linalg.fill ins({number} : f32) outs({empty} : {tensor(shape)}) -> {tensor(shape)}")

    def generic(
        self, dims: str, reads: list[tuple[str, Shape, str]], out: tuple[Shape, str], body: str, init: str | None = None
    ) -> str:
        """`body` uses %x0, %x1, … and %o, and yields %r; loops that the result has not are reduced."""
        maps = [f"affine_map<({', '.join(dims)}) -> ({', '.join(where)})>" for *_, where in reads]
        maps.append(f"affine_map<({', '.join(dims)}) -> ({', '.join(out[1])})>")
        kinds = ", ".join(f'"{"parallel" if dim in out[1] else "reduction"}"' for dim in dims)
        init = init or self.emit(f"tensor.empty() : {tensor(out[0])}")
        names, types = ", ".join(n for n, *_ in reads), ", ".join(tensor(s) for _, s, _ in reads)
        arguments = ", ".join([*(f"%x{n}: f32" for n in range(len(reads))), "%o: f32"])
        inputs = f"ins({names} : {types}) " if reads else ""
        return self.emit(
            f"linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{kinds}]}} "
            f"{inputs}outs({init} : {tensor(out[0])}) {{\n^bb0({arguments}):\n{body}\n"
            f"linalg.yield %r : f32\n}} -> {tensor(out[0])}"
        )

    def text(self, *results: tuple[str, Shape]) -> str:
        arguments = ", ".join(f"{name}: {tensor(shape)}" for name, shape in self.arguments)
        names, types = ", ".join(n for n, _ in results), ", ".join(tensor(s) for _, s in results)
        body = "\n".join(self.lines)
        return f"func.func @main({arguments}) -> ({types}) {{\n{body}\nreturn {names} : {types}\n}}\n"

    def inputs(self) -> list[np.ndarray]:
        rng = np.random.default_rng(self.seed)
        return [rng.normal(size=shape).astype(np.float32) for _, shape in self.arguments]


def tensor(shape: Shape) -> str:
    return f"tensor<{'x'.join([*map(str, shape), 'f32'])}>"


def random_program(seed: int, steps: int = 6) -> Program:
    """A program of some steps, the first a convolution, that returns its last two images."""
    program = Program(seed)
    pick = program.random
    shape = (pick.choice([1, 2]), pick.choice([1, 4, 6, 8]), pick.choice([1, 4, 6]), pick.choice([4, 6]))
    program.images.append((program.argument(shape), shape))
    convolve(program)
    for _ in range(steps):
        pick.choice(STEPS)(program)
    convolve(program)
    return program


def convolve(program: Program) -> None:
    """A padded convolution with a bias, strided or dilated at times."""
    name, (batch, channels, height, width) = _take(program)
    size = program.random.choice([1, 1, 3])
    stride, dilation = program.random.choice([1, 1, 2]), program.random.choice([1, 1, 2])
    filters = program.random.choice([2, 4, 6, 8])
    pad = (size // 2) * dilation
    if pad:
        name, height, width = _pad(program, name, (batch, channels, height, width), pad)
    reach = dilation * (size - 1)
    if min(height, width) - reach - 1 < stride:
        stride = 1  # IREE does not compile a strided convolution with one row of results and rows left over.
    out = (batch, filters, (height - reach - 1) // stride + 1, (width - reach - 1) // stride + 1)
    weight_shape = (filters, channels, size, size)
    weights, bias = program.argument(weight_shape), program.argument((filters,))
    init = program.generic("abcd", [(bias, (filters,), "b")], (out, "abcd"), "%r = arith.addf %x0, %x0 : f32")
    result = program.emit(
        f"linalg.conv_2d_nchw_fchw {{dilations = dense<{dilation}> : vector<2xi64>, "
        f"strides = dense<{stride}> : vector<2xi64>}} "
        f"ins({name}, {weights} : {tensor((batch, channels, height, width))}, {tensor(weight_shape)}) "
        f"outs({init} : {tensor(out)}) -> {tensor(out)}"
    )
    program.images.append((result, out))


def depthwise(program: Program) -> None:
    name, (batch, channels, height, width) = _take(program)
    name, height, width = _pad(program, name, (batch, channels, height, width), 1)
    out = (batch, channels, height - 2, width - 2)
    weights = program.argument((channels, 3, 3))
    result = program.emit(
        "linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} "
        f"ins({name}, {weights} : {tensor((batch, channels, height, width))}, {tensor((channels, 3, 3))}) "
        f"outs({program.fill(out)} : {tensor(out)}) -> {tensor(out)}"
    )
    program.images.append((result, out))


def grouped(program: Program) -> None:
    name, (batch, channels, height, width) = _take(program)
    if channels % 2:
        return
    split = (batch, 2, channels // 2, height, width)
    image = program.emit(
        f"tensor.expand_shape {name} [[0], [1, 2], [3], [4]] output_shape {list(split)} "
        f": {tensor((batch, channels, height, width))} into {tensor(split)}"
    )
    weight_shape, out = (2, 3, channels // 2, 1, 1), (batch, 2, 3, height, width)
    weights = program.argument(weight_shape)
    result = program.emit(
        "linalg.conv_2d_ngchw_gfchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} "
        f"ins({image}, {weights} : {tensor(split)}, {tensor(weight_shape)}) "
        f"outs({program.fill(out)} : {tensor(out)}) -> {tensor(out)}"
    )
    joined = (batch, 6, height, width)
    result = program.emit(
        f"tensor.collapse_shape {result} [[0], [1, 2], [3], [4]] : {tensor(out)} into {tensor(joined)}"
    )
    program.images.append((result, joined))


def activate(program: Program) -> None:
    name, shape = _take(program)
    body = "%t = math.tanh %x0 : f32\n%r = arith.mulf %t, %x0 : f32"
    program.images.append((program.generic("abcd", [(name, shape, "abcd")], (shape, "abcd"), body), shape))


def add_embedding(program: Program) -> None:
    """A number for each channel, given as a vector and broadcast."""
    name, shape = _take(program)
    vector = program.argument(shape[:2])
    wide = program.emit(
        f"tensor.expand_shape {vector} [[0], [1, 2, 3]] output_shape {[*shape[:2], 1, 1]} "
        f": {tensor(shape[:2])} into {tensor((*shape[:2], 1, 1))}"
    )
    maps = [(name, shape, "abcd"), (wide, (*shape[:2], 1, 1), "ab00")]
    program.images.append((program.generic("abcd", maps, (shape, "abcd"), "%r = arith.addf %x0, %x1 : f32"), shape))


def add_residual(program: Program) -> None:
    name, shape = _take(program)
    others = [image for image in program.images if image[1] == shape]
    other, _ = program.random.choice(others)
    maps = [(name, shape, "abcd"), (other, shape, "abcd")]
    program.images.append((program.generic("abcd", maps, (shape, "abcd"), "%r = arith.subf %x0, %x1 : f32"), shape))


def concatenate(program: Program) -> None:
    name, shape = _take(program)
    others = [image for image in program.images if image[1][0] == shape[0] and image[1][2:] == shape[2:]]
    other, other_shape = program.random.choice(others)
    out = (shape[0], shape[1] + other_shape[1], *shape[2:])
    result = program.emit(
        f"tensor.concat dim(1) {name}, {other} : ({tensor(shape)}, {tensor(other_shape)}) -> {tensor(out)}"
    )
    program.images.append((result, out))


def normalize(program: Program) -> None:
    """Subtract the mean of each group of channels, as GroupNorm does."""
    name, shape = _take(program)
    batch, channels, height, width = shape
    groups = 2 if channels % 2 == 0 else 1
    flat, grouped_ = (batch, channels * height * width), (batch, groups, channels // groups * height * width)
    collapsed = program.emit(f"tensor.collapse_shape {name} [[0], [1, 2, 3]] : {tensor(shape)} into {tensor(flat)}")
    value = program.emit(
        f"tensor.expand_shape {collapsed} [[0], [1, 2]] output_shape {list(grouped_)} "
        f": {tensor(flat)} into {tensor(grouped_)}"
    )
    sums_shape = (batch, groups, 1)
    body = "%r = arith.addf %x0, %o : f32"
    sums = program.generic("abc", [(value, grouped_, "abc")], (sums_shape, "ab0"), body, program.fill(sums_shape))
    maps = [(value, grouped_, "abc"), (sums, sums_shape, "ab0")]
    body = "%c = arith.constant 0.01 : f32\n%s = arith.mulf %x1, %c : f32\n%r = arith.subf %x0, %s : f32"
    centred = program.generic("abc", maps, (grouped_, "abc"), body)
    back = program.emit(f"tensor.collapse_shape {centred} [[0], [1, 2]] : {tensor(grouped_)} into {tensor(flat)}")
    result = program.emit(
        f"tensor.expand_shape {back} [[0], [1, 2, 3]] output_shape {list(shape)} : {tensor(flat)} into {tensor(shape)}"
    )
    program.images.append((result, shape))


def tokens(program: Program) -> None:
    """To tokens, through a linear layer, and back."""
    name, shape = _take(program)
    batch, channels, height, width = shape
    flat, rows = (batch, channels, height * width), (batch, height * width, channels)
    value = program.emit(f"tensor.collapse_shape {name} [[0], [1], [2, 3]] : {tensor(shape)} into {tensor(flat)}")
    value = program.generic("abc", [(value, flat, "acb")], (rows, "abc"), "%r = arith.addf %x0, %x0 : f32")
    weights = program.argument((batch, channels, channels))
    value = program.emit(
        f"linalg.batch_matmul ins({value}, {weights} : {tensor(rows)}, {tensor((batch, channels, channels))}) "
        f"outs({program.fill(rows)} : {tensor(rows)}) -> {tensor(rows)}"
    )
    square = (batch, height, width, channels)
    value = program.emit(
        f"tensor.expand_shape {value} [[0], [1, 2], [3]] output_shape {list(square)} "
        f": {tensor(rows)} into {tensor(square)}"
    )
    empty = program.emit(f"tensor.empty() : {tensor(shape)}")
    result = program.emit(
        f"linalg.transpose ins({value} : {tensor(square)}) outs({empty} : {tensor(shape)}) permutation = [0, 3, 1, 2]"
    )
    program.images.append((result, shape))


def upsample(program: Program) -> None:
    """Each pixel twice along the height, as a gather."""
    name, (batch, channels, height, width) = _take(program)
    shape, out = (batch, channels, height, width), (batch, channels, 2 * height, width)
    body = (
        "%i = linalg.index 0 : index\n%j = linalg.index 1 : index\n"
        "%k = linalg.index 2 : index\n%l = linalg.index 3 : index\n"
        "%two = arith.constant 2 : index\n%h = arith.divui %k, %two : index\n"
        f"%r = tensor.extract {name}[%i, %j, %h, %l] : {tensor(shape)}"
    )
    program.images.append((program.generic("abcd", [], (out, "abcd"), body), out))


def pool(program: Program) -> None:
    name, shape = _take(program)
    if shape[2] < 2 or shape[3] < 2:
        return
    out = (*shape[:2], shape[2] - 1, shape[3] - 1)
    window = program.emit("tensor.empty() : tensor<2x2xf32>")
    result = program.emit(
        "linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} "
        f"ins({name}, {window} : {tensor(shape)}, tensor<2x2xf32>) "
        f"outs({program.fill(out, '-100.0')} : {tensor(out)}) -> {tensor(out)}"
    )
    program.images.append((result, out))


def cut(program: Program) -> None:
    """Some of the channels and rows."""
    name, shape = _take(program)
    out = (shape[0], max(1, shape[1] // 2), max(1, shape[2] - 1), shape[3])
    offsets = [0, shape[1] - out[1], shape[2] - out[2], 0]
    result = program.emit(
        f"tensor.extract_slice {name}{offsets} {list(out)} [1, 1, 1, 1] : {tensor(shape)} to {tensor(out)}"
    )
    program.images.append((result, out))


def put(program: Program) -> None:
    """Into a larger image of ones, along channels and at times along rows."""
    name, shape = _take(program)
    rows = program.random.choice([0, 1])
    out = (shape[0], shape[1] + 1, shape[2] + 2 * rows, shape[3])
    result = program.emit(
        f"tensor.insert_slice {name} into {program.fill(out, '1.0')}[0, 1, {rows}, 0] {list(shape)} [1, 1, 1, 1] "
        f": {tensor(shape)} into {tensor(out)}"
    )
    program.images.append((result, out))


def mix_up(program: Program) -> None:
    """Near miss: a reshape that takes channels for pixels."""
    name, shape = _take(program)
    batch, channels, height, width = shape
    flat, out = (batch, channels * height * width), (batch, height, width, channels)
    value = program.emit(f"tensor.collapse_shape {name} [[0], [1, 2, 3]] : {tensor(shape)} into {tensor(flat)}")
    result = program.emit(
        f"tensor.expand_shape {value} [[0], [1, 2, 3]] output_shape {list(out)} : {tensor(flat)} into {tensor(out)}"
    )
    program.images.append((result, out))


def turn(program: Program) -> None:
    """Near miss: height and channels change places."""
    name, shape = _take(program)
    out = (shape[0], shape[2], shape[1], shape[3])
    program.images.append(
        (program.generic("abcd", [(name, shape, "acbd")], (out, "abcd"), "%r = arith.addf %x0, %x0 : f32"), out)
    )


STEPS: list[Callable[[Program], None]] = [
    convolve, depthwise, grouped, activate, add_embedding, add_residual, concatenate, normalize,
    tokens, upsample, pool, cut, put, mix_up, turn,
]  # fmt: skip


def _take(program: Program) -> tuple[str, Shape]:
    """Mostly the last image."""
    return program.images[-1] if program.random.random() < 0.8 else program.random.choice(program.images)


def _pad(program: Program, name: str, shape: Shape, pad: int) -> tuple[str, int, int]:
    batch, channels, height, width = shape
    out = (batch, channels, height + 2 * pad, width + 2 * pad)
    zero = program.emit("arith.constant 0.0 : f32")
    result = program.emit(
        f"tensor.pad {name} low[0, 0, {pad}, {pad}] high[0, 0, {pad}, {pad}] {{\n"
        f"^bb0(%p0: index, %p1: index, %p2: index, %p3: index):\ntensor.yield {zero} : f32\n}} "
        f": {tensor(shape)} to {tensor(out)}"
    )
    return result, out[2], out[3]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rotary embeddings as models spell them, with their results.

Each form rotates x, whose dims are (heads, tokens, channels) or (tokens, heads, channels), as
exporters write it. What a form reads besides x it makes arguments of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .graphs import Graph, Tensor


def last_two(a: Tensor, fewer: int = 0) -> list[list[int]]:
    """The groups that split the last dim of `a`, or merge its last two."""
    rows = a.array.ndim - 1 - fewer
    return [*[[n] for n in range(rows)], [rows, rows + 1]]


@dataclass(frozen=True)
class Rope:
    """A rotation under construction.

    Attributes:
      dims: Of x: "htd" or "thd".
      angles: (tokens, pairs).
    """

    graph: Graph
    x: Tensor
    dims: str
    angles: np.ndarray

    @property
    def channels(self) -> int:
        return self.x.array.shape[-1]

    @property
    def last(self) -> int:
        return self.x.array.ndim - 1

    def table(self, function: Callable, element: str, *, repeat: str = "") -> Tensor:
        """A table as an argument: of pairs, or of channels in halves or as neighbours."""
        array = function(self.angles)
        if repeat == "halves":
            array = np.concatenate([array, array], -1)
        if repeat == "neighbours":
            array = np.repeat(array, 2, -1)
        return self.graph.argument(array, element)

    def scaled(self, a: Tensor, table: Tensor) -> Tensor:
        return self.graph.binary("mulf", a, table, self.dims, "td")

    def half(self, which: int, a: Tensor | None = None) -> Tensor:
        a = a or self.x
        size = a.array.shape[-1] // 2
        return self.graph.slice(a, a.array.ndim - 1, which * size, size)

    def negated(self, a: Tensor) -> Tensor:
        return self.graph.unary("arith.negf", a, np.negative)

    def added(self, a: Tensor, b: Tensor, op: str = "addf") -> Tensor:
        dims = "abcdefgh"[: a.array.ndim]
        return self.graph.binary(op, a, b, dims, dims)

    def as_pairs(self, a: Tensor) -> Tensor:
        *rows, size = a.array.shape
        return self.graph.reshape(a, last_two(a), (*rows, size // 2, 2))

    def as_channels(self, a: Tensor) -> Tensor:
        *rows, pairs, size = a.array.shape
        return self.graph.reshape(a, last_two(a, 1), (*rows, pairs * size))

    def with_last(self, a: Tensor) -> Tensor:
        return self.graph.reshape(a, last_two(a), (*a.array.shape, 1))

    def neighbour(self, which: int) -> Tensor:
        """One channel of each pair of neighbours, by reshape and slice."""
        return self.as_channels(self.graph.slice(self.as_pairs(self.x), self.last + 1, which, 1))

    def stacked(self, low: Tensor, high: Tensor) -> Tensor:
        return self.as_channels(self.graph.concat([self.with_last(low), self.with_last(high)], self.last + 1))


def rotate_half(rope: Rope) -> Tensor:
    """Llama: x · cos + cat(-x1, x0) · sin."""
    element = rope.x.element
    cos, sin = rope.table(np.cos, element, repeat="halves"), rope.table(np.sin, element, repeat="halves")
    turned = rope.graph.concat([rope.negated(rope.half(1)), rope.half(0)], rope.last)
    return rope.added(rope.scaled(rope.x, cos), rope.scaled(turned, sin))


def tables_in_program(rope: Rope) -> Tensor:
    """Llama with the tables computed from angles, as a model with positions as its input has them."""
    graph, element = rope.graph, rope.x.element
    angles = graph.argument(rope.angles, "f32")
    both = graph.concat([angles, angles], 1)
    cos = graph.cast(graph.unary("math.cos", both, np.cos), element)
    sin = graph.cast(graph.unary("math.sin", both, np.sin), element)
    turned = graph.concat([rope.negated(rope.half(1)), rope.half(0)], rope.last)
    return rope.added(rope.scaled(rope.x, cos), rope.scaled(turned, sin))


def halves_apart(rope: Rope) -> Tensor:
    """cat(x0 · cos - x1 · sin, x1 · cos + x0 · sin)."""
    element = rope.x.element
    cos, sin = rope.table(np.cos, element), rope.table(np.sin, element)
    low, high = rope.half(0), rope.half(1)
    first = rope.added(rope.scaled(low, cos), rope.scaled(high, sin), "subf")
    second = rope.added(rope.scaled(high, cos), rope.scaled(low, sin))
    return rope.graph.concat([first, second], rope.last)


def stacked_pairs(rope: Rope) -> Tensor:
    """Flux of diffusers: pairs unbound, negated and stacked; f32 tables of channels."""
    graph, x = rope.graph, rope.x
    cos, sin = rope.table(np.cos, "f32", repeat="neighbours"), rope.table(np.sin, "f32", repeat="neighbours")
    turned = rope.stacked(rope.negated(rope.neighbour(1)), rope.neighbour(0))
    total = rope.added(rope.scaled(graph.cast(x, "f32"), cos), rope.scaled(graph.cast(turned, "f32"), sin))
    return graph.cast(total, x.element)


def joined_tables(rope: Rope) -> Tensor:
    """Flux with its positions: the first channels turn by one coordinate, the others by another."""
    graph, x = rope.graph, rope.x
    first = rope.channels // 8
    tables = []
    for op, function in (("math.cos", np.cos), ("math.sin", np.sin)):
        parts = []
        for begin, end in ((0, first), (first, rope.channels // 2)):
            entries = graph.unary(op, graph.argument(rope.angles[:, begin:end], "f32"), function)
            wide = np.repeat(entries.array[..., None], 2, -1)
            repeated = graph.map([(entries, "ti")], "tic", "f32", lambda values: [values[0]], wide)
            parts.append(rope.as_channels(repeated))
        tables.append(graph.concat(parts, 1))
    turned = rope.stacked(rope.negated(rope.neighbour(1)), rope.neighbour(0))
    cos, sin = tables
    total = rope.added(rope.scaled(graph.cast(x, "f32"), cos), rope.scaled(graph.cast(turned, "f32"), sin))
    return graph.cast(total, x.element)


def matrices(rope: Rope) -> Tensor:
    """Flux of Black Forest Labs: a 2x2 matrix a pair, in f32."""
    graph, x = rope.graph, rope.x
    cos, sin = np.cos(rope.angles), np.sin(rope.angles)
    matrix = graph.argument(np.stack([np.stack([cos, -sin], -1), np.stack([sin, cos], -1)], -2), "f32")
    pairs = rope.as_pairs(graph.cast(x, "f32"))
    parts = []
    for column in (0, 1):
        entries = rope.as_channels(graph.slice(matrix, 3, column, 1))
        channel = rope.as_channels(graph.slice(pairs, rope.last + 1, column, 1))
        rows = rope.dims.replace("d", "i")
        name = graph.name()
        wide = channel.array[..., None] * np.expand_dims(entries.array, rope.dims.index("h"))

        def body(values: list[str], name: str = name) -> list[str]:
            return [f"{name} = arith.mulf {values[0]}, {values[1]} : f32", name]

        parts.append(graph.map([(entries, "tic"), (channel, rows)], rows + "c", "f32", body, wide))
    return graph.cast(rope.as_channels(rope.added(*parts)), x.element)


def complex_numbers(rope: Rope) -> Tensor:
    """Llama of Meta: pairs as complex numbers, times cos + i · sin."""
    graph, x = rope.graph, rope.x
    angles = graph.argument(rope.angles, "f32")
    pairs = rope.as_pairs(graph.cast(x, "f32"))
    floats, numbers = pairs.type, pairs.type.replace("x2xf32", "xcomplex<f32>")
    turns = angles.type.replace("xf32", "xcomplex<f32>")
    a, b, c, d, e, result = (graph.name() for _ in range(6))
    loops = "h, t, i" if rope.dims == "htd" else "t, h, i"
    row, wide = f"affine_map<({loops}) -> (t, i)>", f"affine_map<({loops}) -> ({loops})>"
    graph.lines += [
        f"{a} = tensor.empty() : {turns}",
        f"{b} = linalg.generic {{indexing_maps = [affine_map<(t, i) -> (t, i)>, affine_map<(t, i) -> (t, i)>], "
        f'iterator_types = ["parallel", "parallel"]}} ins({angles.name} : {angles.type}) outs({a} : {turns}) {{',
        "^bb0(%angle: f32, %out: complex<f32>):",
        "%cos = math.cos %angle : f32",
        "%sin = math.sin %angle : f32",
        "%turn = complex.create %cos, %sin : complex<f32>",
        "linalg.yield %turn : complex<f32>",
        f"}} -> {turns}",
        f"{c} = iree_tensor_ext.bitcast {pairs.name} : {floats} -> {numbers}",
        f"{d} = tensor.empty() : {numbers}",
        f"{e} = linalg.generic {{indexing_maps = [{wide}, {row}, {wide}], "
        f'iterator_types = ["parallel", "parallel", "parallel"]}} '
        f"ins({c}, {b} : {numbers}, {turns}) outs({d} : {numbers}) {{",
        "^bb0(%pair: complex<f32>, %turn: complex<f32>, %out: complex<f32>):",
        "%turned = complex.mul %pair, %turn : complex<f32>",
        "linalg.yield %turned : complex<f32>",
        f"}} -> {numbers}",
        f"{result} = iree_tensor_ext.bitcast {e} : {numbers} -> {floats}",
    ]
    turn = np.expand_dims(np.exp(1j * angles.array), rope.dims.index("h"))
    turned = (pairs.array[..., 0] + 1j * pairs.array[..., 1]) * turn
    array = np.stack([turned.real, turned.imag], -1)
    return graph.cast(rope.as_channels(Tensor(result, "f32", array)), x.element)


def strided_slices(rope: Rope) -> Tensor:
    """GPT-J: every second channel, tables repeated for the channels of a pair."""
    graph, x = rope.graph, rope.x
    pairs = rope.channels // 2

    def repeated(function: Callable) -> Tensor:
        table = rope.table(function, x.element)
        wide = np.repeat(table.array[..., None], 2, -1)
        return rope.as_channels(graph.map([(table, "ti")], "tic", x.element, lambda values: [values[0]], wide))

    cos, sin = repeated(np.cos), repeated(np.sin)
    low, high = (graph.slice(x, rope.last, which, pairs, 2) for which in (0, 1))
    turned = rope.stacked(rope.negated(high), low)
    return rope.added(rope.scaled(x, cos), rope.scaled(turned, sin))


def gathered_pairs(rope: Rope) -> Tensor:
    """A gather with divisions and a select inside, cosines and sines for every channel of every head."""
    graph, x = rope.graph, rope.x
    angles = graph.argument(np.repeat(rope.angles, 2, -1).T, "f32")
    name, empty = graph.name(), graph.empty(x.array.shape, x.element)
    loops = "h, t, d" if rope.dims == "htd" else "t, h, d"
    wide = "" if x.element == "f32" else f"arith.extf %v : {x.element} to f32"
    index = "%h, %t" if rope.dims == "htd" else "%t, %h"
    body = [
        f"%{loops[0]} = linalg.index 0 : index",
        f"%{loops[3]} = linalg.index 1 : index",
        "%d = linalg.index 2 : index",
        "%two = arith.constant 2 : index",
        "%one = arith.constant 1 : index",
        "%zero = arith.constant 0 : index",
        "%pair = arith.divui %d, %two : index",
        "%which = arith.remui %d, %two : index",
        "%even = arith.muli %pair, %two : index",
        "%odd = arith.addi %even, %one : index",
        f"%x0 = tensor.extract {x.name}[{index}, %even] : {x.type}",
        f"%x1 = tensor.extract {x.name}[{index}, %odd] : {x.type}",
        *([f"%w0 = {wide.replace('%v', '%x0')}", f"%w1 = {wide.replace('%v', '%x1')}"] if wide else []),
        "%cos = math.cos %angle : f32",
        "%sin = math.sin %angle : f32",
        "%p0 = arith.mulf %w0, %cos : f32",
        "%p1 = arith.mulf %w1, %sin : f32",
        "%first = arith.subf %p0, %p1 : f32",
        "%p2 = arith.mulf %w1, %cos : f32",
        "%p3 = arith.mulf %w0, %sin : f32",
        "%second = arith.addf %p2, %p3 : f32",
        "%is_first = arith.cmpi eq, %which, %zero : index",
        "%y = arith.select %is_first, %first, %second : f32",
        *([f"%narrow = arith.truncf %y : f32 to {x.element}"] if wide else []),
        f"linalg.yield {'%narrow' if wide else '%y'} : {x.element}",
    ]
    lines = body if wide else [line.replace("%w0", "%x0").replace("%w1", "%x1") for line in body]
    graph.lines += [
        f"{name} = linalg.generic {{indexing_maps = [affine_map<({loops}) -> (d, t)>, "
        f'affine_map<({loops}) -> ({loops})>], iterator_types = ["parallel", "parallel", "parallel"]}} '
        f"ins({angles.name} : {angles.type}) outs({empty} : {x.type}) {{",
        f"^bb0(%angle: f32, %out: {x.element}):",
        *lines,
        f"}} -> {x.type}",
    ]
    return Tensor(name, x.element, rotated_pairs(x.array, rope.angles, rope.dims))


def partial(rope: Rope, form: Callable[[Rope], Tensor], begin: int, size: int) -> Tensor:
    """Some channels in a form, the others as they are."""
    graph, x, end = rope.graph, rope.x, begin + size
    part = Rope(graph, graph.slice(x, rope.last, begin, size), rope.dims, rope.angles[:, : size // 2])
    parts = [form(part)]
    if begin:
        parts.insert(0, graph.slice(x, rope.last, 0, begin))
    if end < rope.channels:
        parts.append(graph.slice(x, rope.last, end, rope.channels - end))
    return graph.concat(parts, rope.last)


def first_channels(rope: Rope) -> Tensor:
    """GPT-NeoX: a quarter of the channels rotated in halves, the others as they are."""
    return partial(rope, rotate_half, 0, rope.channels // 4)


def most_channels(rope: Rope) -> Tensor:
    """Phi-4-mini: three quarters of the channels rotated in halves, the others as they are."""
    return partial(rope, rotate_half, 0, rope.channels // 4 * 3)


def first_neighbours(rope: Rope) -> Tensor:
    """GPT-J: half of the channels rotated in pairs of neighbours, the others as they are."""
    return partial(rope, strided_slices, 0, rope.channels // 2)


def last_channels(rope: Rope) -> Tensor:
    """DeepSeek: the last channels rotated as complex numbers, those before them as they are."""
    return partial(rope, complex_numbers, rope.channels // 4 * 2, rope.channels // 4 * 2)


FORMS: dict[str, Callable[[Rope], Tensor]] = {
    form.__name__: form
    for form in (
        rotate_half,
        tables_in_program,
        halves_apart,
        stacked_pairs,
        joined_tables,
        matrices,
        complex_numbers,
        strided_slices,
        gathered_pairs,
        first_channels,
        most_channels,
        first_neighbours,
        last_channels,
    )
}


def rotated_pairs(x: np.ndarray, angles: np.ndarray, dims: str) -> np.ndarray:
    """Pairs of neighbours rotated, in float64."""
    turn = np.expand_dims(np.exp(1j * angles.astype(np.float32).astype(np.float64)), dims.index("h"))
    turned = (x[..., ::2] + 1j * x[..., 1::2]) * turn
    return np.stack([turned.real, turned.imag], -1).reshape(x.shape)


def begin(
    dims: str, heads: int, tokens: int, channels: int, element: str, seed: int = 0, graph: Graph | None = None
) -> Rope:
    """A rotation of random channels by random angles."""
    rng = np.random.default_rng(seed)
    graph = graph or Graph()
    shape = {"h": heads, "t": tokens, "d": channels}
    x = graph.argument(rng.normal(size=[shape[d] for d in dims]), element)
    return Rope(graph, x, dims, rng.uniform(0, 6, (tokens, channels // 2)))

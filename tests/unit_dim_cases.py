# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs with dims of size 1: linear layers as torch exports them at any batch, and graphs at random."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .graphs import Graph, Tensor, letters, tensor_type

ACTIVATIONS = {"tanh": np.tanh, "exp": np.exp}


@dataclass(frozen=True)
class Linear:
    """`activation(x · wᵀ + bias)`, and its channels as heads.

    Attributes:
      heads: Into how many heads the channels are split, which are then moved before the tokens; 0 for no split.
    """

    batch: int = 1
    tokens: int = 64
    channels: int = 32
    outputs: int = 48
    element: str = "f16"
    bias: bool = True
    activation: str | None = None
    heads: int = 0

    def graph(self) -> tuple[Graph, Tensor]:
        """The graph and its result."""
        rng, graph = np.random.default_rng(0), Graph()
        x = graph.argument(rng.normal(0, 1, (self.batch, self.tokens, self.channels)), self.element)
        result = self._product(graph, x, rng)
        if self.bias:
            bias = graph.argument(rng.normal(0, 1, self.outputs), self.element)
            result = graph.binary("addf", result, bias, "abc", "c")
        if self.activation:
            result = graph.unary(f"math.{self.activation}", result, ACTIVATIONS[self.activation])
        if self.heads:
            shape = (self.batch, self.tokens, self.heads, self.outputs // self.heads)
            result = graph.reshape(result, [[0], [1], [2, 3]], shape)
            result = graph.transpose(result, [0, 2, 1, 3])
        return graph, result

    def _product(self, graph: Graph, x: Tensor, rng: np.random.Generator) -> Tensor:
        """One matrix, or a batch of one that the weight is copied for."""
        numbers = rng.normal(0, 1, (self.outputs, self.channels)) / math.sqrt(self.channels)
        weight = graph.transpose(graph.argument(numbers, self.element), [1, 0])
        if self.batch == 1:
            wide = graph.broadcast(weight, "kn", "bkn", {"b": 1, "k": self.channels, "n": self.outputs})
            return graph.cast(graph.contract(x, "bmk", wide, "bkn", "bmn", "f32", named=True), self.element)
        rows = graph.reshape(x, [[0, 1], [2]], (self.batch * self.tokens, self.channels))
        product = graph.contract(rows, "mk", weight, "kn", "mn", "f32", named=True)
        shape = (self.batch, self.tokens, self.outputs)
        return graph.cast(graph.reshape(product, [[0, 1], [2]], shape), self.element)


class RandomGraph:
    """A chain of ops on tensors some of whose dims have size 1, wherever they are."""

    def __init__(self, seed: int, element: str) -> None:
        self.rng = np.random.default_rng(seed)
        self.element = element
        self.graph = Graph()

    def build(self, steps: int = 7) -> tuple[Graph, Tensor]:
        """The graph and its result."""
        value = self._argument([self._size() for _ in range(self.rng.integers(2, 5))])
        for step in self.rng.choice(STEPS, steps):
            value = step(self, value)
        return self.graph, value

    def contract(self, value: Tensor) -> Tensor:
        """The last dim against a weight that has some of the other dims too; named where that can be."""
        dims = letters(value.array.ndim)
        shared = "".join(d for d in dims[:-1] if self.rng.random() < 0.4)
        weight_dims = shared + dims[-1] + "z"
        sizes = dict(zip(dims, value.array.shape, strict=True)) | {"z": self._size()}
        weight = self._argument([sizes[d] for d in weight_dims])
        out_dims = dims[:-1] + "z"
        product = self.graph.contract(value, dims, weight, weight_dims, out_dims, "f32", named=True)
        return self.graph.unary("math.tanh", self.graph.cast(product, self.element), np.tanh)

    def elementwise(self, value: Tensor) -> Tensor:
        """A sum with a tensor that lacks some dims, and is read at 0 along others."""
        dims = letters(value.array.ndim)
        kinds = self.rng.choice(["full", "none", "zero"], len(dims))
        kept = [(d, size, kind) for d, size, kind in zip(dims, value.array.shape, kinds, strict=True) if kind != "none"]
        other = self._argument([1 if kind == "zero" else size for _, size, kind in kept])
        other_dims = "".join("0" if kind == "zero" else d for d, _, kind in kept)
        wide = other.array.reshape(
            [1 if kind != "full" else n for n, kind in zip(value.array.shape, kinds, strict=True)]
        )
        name = self.graph.name()

        def body(x: list[str]) -> list[str]:
            return [f"{name} = arith.addf {x[0]}, {x[1]} : {self.element}", name]

        array = value.array + wide
        return self.graph.map([(value, dims), (other, other_dims)], dims, self.element, body, array)

    def transpose(self, value: Tensor) -> Tensor:
        return self.graph.transpose(value, [int(d) for d in self.rng.permutation(value.array.ndim)])

    def reduce(self, value: Tensor) -> Tensor:
        """A sum onto a number, over one element or more."""
        if value.array.ndim < 2:
            return value
        dim = int(self.rng.integers(value.array.ndim))
        return self.graph.reduce("addf", value, dim, 1.5, lambda a, axis: a.sum(axis) + 1.5)

    def reshape(self, value: Tensor) -> Tensor:
        """A dim of size 1 more or less, or two dims as one."""
        shape = list(value.array.shape)
        dim = int(self.rng.integers(len(shape)))
        groups = [[d] if d < dim else [d, d + 1] if d == dim else [d + 1] for d in range(len(shape))]
        if len(shape) < 5 and self.rng.random() < 0.5:
            return self.graph.reshape(value, groups, [*shape[:dim], 1, *shape[dim:]])
        if dim == len(shape) - 1:
            return value
        return self.graph.reshape(value, groups[:-1], [*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :]])

    def slice(self, value: Tensor) -> Tensor:
        shape = list(value.array.shape)
        dim = int(self.rng.integers(len(shape)))
        start = int(self.rng.integers(shape[dim]))
        offsets = [start if d == dim else 0 for d in range(len(shape))]
        shape[dim] -= start
        name, type_ = self.graph.name(), tensor_type(shape, self.element)
        self.graph.lines.append(
            f"{name} = tensor.extract_slice {value.name}{offsets} {shape} {[1] * len(shape)} : {value.type} to {type_}"
        )
        return Tensor(name, self.element, np.take(value.array, range(start, start + shape[dim]), dim))

    def concat(self, value: Tensor) -> Tensor:
        dim = int(self.rng.integers(value.array.ndim))
        other = self._argument([self._size() if d == dim else n for d, n in enumerate(value.array.shape)])
        array = np.concatenate([value.array, other.array], dim)
        name, type_ = self.graph.name(), tensor_type(array.shape, self.element)
        self.graph.lines.append(
            f"{name} = tensor.concat dim({dim}) {value.name}, {other.name} : ({value.type}, {other.type}) -> {type_}"
        )
        return Tensor(name, self.element, array)

    def positions(self, value: Tensor) -> Tensor:
        """Where an element is, added to it."""
        dims, dim = letters(value.array.ndim), int(self.rng.integers(value.array.ndim))
        place, whole, number, total = (self.graph.name() for _ in range(4))

        def body(x: list[str]) -> list[str]:
            return [
                f"{place} = linalg.index {dim} : index",
                f"{whole} = arith.index_cast {place} : index to i32",
                f"{number} = arith.sitofp {whole} : i32 to {self.element}",
                f"{total} = arith.addf {x[0]}, {number} : {self.element}",
                total,
            ]

        numbers = np.arange(value.array.shape[dim]).reshape([-1 if d == dim else 1 for d in range(len(dims))])
        return self.graph.map([(value, dims)], dims, self.element, body, value.array + numbers)

    def _size(self) -> int:
        return int(self.rng.choice([1, 1, 1, 2, 3, 4]))

    def _argument(self, shape: Sequence[int]) -> Tensor:
        return self.graph.argument(self.rng.normal(0, 1, shape), self.element)


STEPS: list[Callable[[RandomGraph, Tensor], Tensor]] = [
    RandomGraph.contract,
    RandomGraph.contract,
    RandomGraph.elementwise,
    RandomGraph.transpose,
    RandomGraph.reduce,
    RandomGraph.reshape,
    RandomGraph.slice,
    RandomGraph.concat,
    RandomGraph.positions,
]

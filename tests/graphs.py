# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Building a module and its result at once: each step writes linalg and computes with numpy.

What is built this way needs no reference program of its own; a fuzzer can put
steps together at random and still know the right result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

DTYPES = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "i1": np.dtype(np.bool_),
}


@dataclass(frozen=True, eq=False)
class Tensor:
    """An SSA tensor and its value.

    Attributes:
      array: The value in float64, or bool; not rounded to the element type.
    """

    name: str
    element: str
    array: np.ndarray

    @property
    def type(self) -> str:
        return tensor_type(self.array.shape, self.element)


def tensor_type(shape: Sequence[int], element: str) -> str:
    return f"tensor<{'x'.join([*map(str, shape), element])}>"


@dataclass
class Graph:
    """A function under construction."""

    lines: list[str] = field(default_factory=list)
    arguments: list[Tensor] = field(default_factory=list)
    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"%{self.count}"

    def argument(self, array: np.ndarray, element: str) -> Tensor:
        """An argument of the function; its value is what the element type can hold of `array`."""
        held = array.astype(DTYPES[element])
        argument = Tensor(self.name(), element, held.astype(bool if element == "i1" else np.float64))
        self.arguments.append(argument)
        return argument

    def constant(self, value: float, element: str) -> str:
        name = self.name()
        spelling = {float("-inf"): {"f32": "0xFF800000", "f16": "0xFC00", "bf16": "0xFF80"}}
        text = spelling[value][element] if value in spelling else f"{value:e}"
        self.lines.append(f"{name} = arith.constant {text} : {element}")
        return name

    def empty(self, shape: Sequence[int], element: str) -> str:
        name = self.name()
        self.lines.append(f"{name} = tensor.empty() : {tensor_type(shape, element)}")
        return name

    def filled(self, shape: Sequence[int], value: float, element: str) -> str:
        constant, empty, name = self.constant(value, element), self.empty(shape, element), self.name()
        type_ = tensor_type(shape, element)
        self.lines.append(f"{name} = linalg.fill ins({constant} : {element}) outs({empty} : {type_}) -> {type_}")
        return name

    def generic(
        self,
        dims: str,
        operands: Sequence[tuple[Tensor, str]],
        out_dims: str,
        init: str,
        element: str,
        body: Callable[[list[str], str], list[str]],
        array: np.ndarray,
    ) -> Tensor:
        """A `linalg.generic` over loops named by the letters of `dims`; loops not in `out_dims` are reduced.

        `body` gets the block arguments and the name of the accumulator, and
        returns lines of which the last is the value to yield.
        """

        def affine(letters: str) -> str:
            return f"affine_map<({', '.join(dims)}) -> ({', '.join(letters)})>"

        maps = [affine(letters) for _, letters in operands] + [affine(out_dims)]
        kinds = ", ".join(f'"{"parallel" if d in out_dims else "reduction"}"' for d in dims)
        arguments = [self.name() for _ in operands]
        accumulator, name = self.name(), self.name()
        block = [f"{a}: {t.element}" for a, (t, _) in zip(arguments, operands, strict=True)]
        *body_lines, value = body(arguments, accumulator)
        type_ = tensor_type(array.shape, element)
        names, types = ", ".join(t.name for t, _ in operands), ", ".join(t.type for t, _ in operands)
        self.lines += [
            f"{name} = linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{kinds}]}} "
            f"ins({names} : {types}) outs({init} : {type_}) {{",
            f"^bb0({', '.join([*block, f'{accumulator}: {element}'])}):",
            *body_lines,
            f"linalg.yield {value} : {element}",
            f"}} -> {type_}",
        ]
        return Tensor(name, element, array)

    def map(
        self,
        operands: Sequence[tuple[Tensor, str]],
        out_dims: str,
        element: str,
        body: Callable[[list[str]], list[str]],
        array: np.ndarray,
    ) -> Tensor:
        """An elementwise generic whose operands may be broadcast and transposed."""
        init = self.empty(array.shape, element)
        return self.generic(out_dims, operands, out_dims, init, element, lambda a, _: body(a), array)

    def binary(self, op: str, a: Tensor, b: Tensor, dims: str, b_dims: str, *, swap: bool = False) -> Tensor:
        """`a op b` with `b` broadcast along the dims of `a` that it lacks; `b op a` when swapped."""
        functions = {"addf": np.add, "mulf": np.multiply, "divf": np.divide, "subf": np.subtract}
        wide = expand_to(b, b_dims, dims)
        left, right = (wide, a.array) if swap else (a.array, wide)
        name = self.name()
        with np.errstate(invalid="ignore"):
            array = functions[op](left, right)

        def body(x: list[str]) -> list[str]:
            return [f"{name} = arith.{op} {x[1 if swap else 0]}, {x[0 if swap else 1]} : {a.element}", name]

        return self.map([(a, dims), (b, b_dims)], dims, a.element, body, array)

    def scalar(self, op: str, a: Tensor, value: float) -> Tensor:
        """`a op value` with a constant inside the body."""
        functions = {"mulf": np.multiply, "divf": np.divide, "addf": np.add}
        constant, name = self.constant(value, a.element), self.name()
        dims = letters(a.array.ndim)
        held = float(np.array(value).astype(DTYPES[a.element]))

        def body(x: list[str]) -> list[str]:
            return [f"{name} = arith.{op} {x[0]}, {constant} : {a.element}", name]

        return self.map([(a, dims)], dims, a.element, body, functions[op](a.array, held))

    def unary(self, op: str, a: Tensor, function: Callable[[np.ndarray], np.ndarray]) -> Tensor:
        name, dims = self.name(), letters(a.array.ndim)

        def body(x: list[str]) -> list[str]:
            return [f"{name} = {op} {x[0]} : {a.element}", name]

        return self.map([(a, dims)], dims, a.element, body, function(a.array))

    def cast(self, a: Tensor, element: str) -> Tensor:
        """extf or truncf; the value is not rounded."""
        if a.element == element:
            return a
        op = "extf" if element == "f32" else "truncf"
        name, dims = self.name(), letters(a.array.ndim)

        def body(x: list[str]) -> list[str]:
            return [f"{name} = arith.{op} {x[0]} : {a.element} to {element}", name]

        return self.map([(a, dims)], dims, element, body, a.array)

    def select(self, condition: Tensor, dims: str, a: Tensor, a_dims: str, fill: float, *, keep_true: bool) -> Tensor:
        """`a` where the condition is `keep_true`, elsewhere `fill`."""
        constant, name = self.constant(fill, a.element), self.name()
        kept = expand_to(condition, dims, a_dims)
        kept = kept if keep_true else ~kept
        held = float(np.array(fill).astype(DTYPES[a.element]))

        def body(x: list[str]) -> list[str]:
            branches = f"{x[1]}, {constant}" if keep_true else f"{constant}, {x[1]}"
            return [f"{name} = arith.select {x[0]}, {branches} : {a.element}", name]

        return self.map([(condition, dims), (a, a_dims)], a_dims, a.element, body, np.where(kept, a.array, held))

    def transpose(self, a: Tensor, order: Sequence[int]) -> Tensor:
        dims = letters(a.array.ndim)
        out = "".join(dims[d] for d in order)
        return self.map([(a, dims)], out, a.element, lambda x: [x[0]], a.array.transpose(order))

    def broadcast(self, a: Tensor, dims: str, out_dims: str, extents: dict[str, int]) -> Tensor:
        """A copy of `a` along new dims, as exporters write repeated K and V heads."""
        array = np.broadcast_to(expand_to(a, dims, out_dims), [extents[d] for d in out_dims])
        return self.map([(a, dims)], out_dims, a.element, lambda x: [x[0]], array)

    def reshape(self, a: Tensor, groups: Sequence[Sequence[int]], shape: Sequence[int]) -> Tensor:
        """Collapse or expand dims; `groups` are over the side with more dims."""
        name, type_ = self.name(), tensor_type(shape, a.element)
        op = "collapse_shape" if len(shape) < a.array.ndim else "expand_shape"
        sizes = f" output_shape {list(shape)}" if op == "expand_shape" else ""
        self.lines.append(f"{name} = tensor.{op} {a.name} {[list(g) for g in groups]}{sizes} : {a.type} into {type_}")
        return Tensor(name, a.element, a.array.reshape(shape))

    def slice(self, a: Tensor, dim: int, start: int, size: int, step: int = 1) -> Tensor:
        """`size` elements of a dim, every `step` one, from `start` on."""
        offsets, sizes, strides = [0] * a.array.ndim, list(a.array.shape), [1] * a.array.ndim
        offsets[dim], sizes[dim], strides[dim] = start, size, step
        cut = tuple(slice(o, o + n * s, s) for o, n, s in zip(offsets, sizes, strides, strict=True))
        name, array = self.name(), a.array[cut]
        type_ = tensor_type(array.shape, a.element)
        self.lines.append(f"{name} = tensor.extract_slice {a.name}{offsets} {sizes} {strides} : {a.type} to {type_}")
        return Tensor(name, a.element, array)

    def concat(self, parts: Sequence[Tensor], dim: int) -> Tensor:
        """Tensors one after the other along a dim."""
        name, array = self.name(), np.concatenate([part.array for part in parts], axis=dim)
        names, types = ", ".join(part.name for part in parts), ", ".join(part.type for part in parts)
        result = Tensor(name, parts[0].element, array)
        self.lines.append(f"{name} = tensor.concat dim({dim}) {names} : ({types}) -> {result.type}")
        return result

    def contract(
        self, a: Tensor, a_dims: str, b: Tensor, b_dims: str, out_dims: str, element: str, *, named: bool = False
    ) -> Tensor:
        """The sum of products over the dims not in the result; named where a named matrix product says the same."""
        array = np.einsum(f"{a_dims},{b_dims}->{out_dims}", a.array, b.array)
        init = self.filled(array.shape, 0.0, element)
        op = matmul_name(a_dims, b_dims, out_dims)
        if named and a.element == b.element and op:
            name, type_ = self.name(), tensor_type(array.shape, element)
            self.lines.append(
                f"{name} = linalg.{op} ins({a.name}, {b.name} : {a.type}, {b.type}) outs({init} : {type_}) -> {type_}"
            )
            return Tensor(name, element, array)
        dims = out_dims + "".join(d for d in a_dims if d not in out_dims)

        def body(x: list[str], accumulator: str) -> list[str]:
            lines, values = [], []
            for value, operand in zip(x, (a, b), strict=True):
                if operand.element == element:
                    values.append(value)
                    continue
                wide = self.name()
                lines.append(f"{wide} = arith.extf {value} : {operand.element} to {element}")
                values.append(wide)
            product, total = self.name(), self.name()
            lines.append(f"{product} = arith.mulf {values[0]}, {values[1]} : {element}")
            return [*lines, f"{total} = arith.addf {product}, {accumulator} : {element}", total]

        return self.generic(dims, [(a, a_dims), (b, b_dims)], out_dims, init, element, body, array)

    def reduce(self, op: str, a: Tensor, dim: int, start: float, function: Callable[..., np.ndarray]) -> Tensor:
        dims = letters(a.array.ndim)
        out = dims.replace(dims[dim], "")
        array = function(a.array, axis=dim)
        name = self.name()

        def body(x: list[str], accumulator: str) -> list[str]:
            return [f"{name} = arith.{op} {x[0]}, {accumulator} : {a.element}", name]

        return self.generic(dims, [(a, dims)], out, self.filled(array.shape, start, a.element), a.element, body, array)

    def softmax(self, a: Tensor, dim: int, *, named: bool) -> Tensor:
        """`linalg.softmax`, or the five ops that exporters write."""
        dims = letters(a.array.ndim)
        rows = dims.replace(dims[dim], "")
        if named:
            empty, name, type_ = self.empty(a.array.shape, a.element), self.name(), a.type
            self.lines.append(
                f"{name} = linalg.softmax dimension({dim}) ins({a.name} : {type_}) outs({empty} : {type_}) -> {type_}"
            )
            return Tensor(name, a.element, softmax(a.array, dim))
        largest = self.reduce("maximumf", a, dim, float("-inf"), np.max)
        shifted = self.binary("subf", a, largest, dims, rows)
        exponentials = self.unary("math.exp", shifted, np.exp)
        total = self.reduce("addf", exponentials, dim, 0.0, np.sum)
        return self.binary("divf", exponentials, total, dims, rows)

    def module(self, *results: Tensor, function: str = "main") -> str:
        """The finished module."""
        arguments = ", ".join(f"{a.name}: {a.type}" for a in self.arguments)
        names, types = ", ".join(r.name for r in results), ", ".join(r.type for r in results)
        body = "\n  ".join([*self.lines, f"return {names} : {types}"])
        return f"func.func @{function}({arguments}) -> ({types}) {{\n  {body}\n}}\n"

    def inputs(self) -> list[np.ndarray]:
        """The arguments in their element types."""
        return [a.array.astype(DTYPES[a.element]) for a in self.arguments]


def letters(rank: int) -> str:
    """Names of dims."""
    return "abcdefgh"[:rank]


def expand_to(tensor: Tensor, dims: str, out_dims: str) -> np.ndarray:
    """The value of a tensor with dims `dims`, with a dim of size 1 for each of `out_dims` it lacks."""
    kept = [d for d in out_dims if d in dims]
    array = tensor.array.transpose([dims.index(d) for d in kept])
    return array[tuple(slice(None) if d in dims else None for d in out_dims)]


def softmax(scores: np.ndarray, dim: int) -> np.ndarray:
    """Softmax in float64; NaN where all scores are -inf."""
    with np.errstate(invalid="ignore"):
        exponentials = np.exp(scores - scores.max(axis=dim, keepdims=True))
        return exponentials / exponentials.sum(axis=dim, keepdims=True)


def matmul_name(a_dims: str, b_dims: str, out_dims: str) -> str | None:
    """The named matrix product that a contraction is without maps, or None."""
    if not 2 <= len(a_dims) <= 3:
        return None
    *batch, m, k = a_dims
    if b_dims[:-1] != "".join([*batch, k]) or out_dims != "".join([*batch, m, b_dims[-1]]):
        return None
    return "batch_matmul" if batch else "matmul"


def with_parameters(graph: Graph, *results: Tensor) -> str:
    """The module, its arguments but the first as parameters that are loaded with the program."""
    first, *rest = graph.arguments
    globals_ = [
        f'util.global private @p{n} = #flow.parameter.named<"model"::"p{n}"> : {a.type}' for n, a in enumerate(rest)
    ]
    loads = [f"{a.name} = util.global.load @p{n} : {a.type}" for n, a in enumerate(rest)]
    body = Graph([*loads, *graph.lines], [first])
    return "\n".join([*globals_, body.module(*results)])


def with_constants(graph: Graph, *results: Tensor) -> str:
    """The module, its arguments but the first as constants."""
    first, *rest = graph.arguments
    constants = [
        f'{a.name} = arith.constant dense<"0x{a.array.astype(DTYPES[a.element]).tobytes().hex()}"> : {a.type}'
        for a in rest
    ]
    return Graph([*constants, *graph.lines], [first]).module(*results)

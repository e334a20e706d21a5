# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of contractions that share an operand, with what they compute by numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .graphs import Graph, Tensor, tensor_type


@dataclass(frozen=True)
class Linear:
    """One contraction of the shared operand and what follows it.

    Attributes:
      heads, channels: Their product is the number of columns.
      stored: How the weight is: "nk", "kn", or "bkn", a copy for each batch.
      weight: Where it comes from: "constant", or "argument".
      bias: The same, or "" for none.
      scale: A factor after the bias, or None.
      layout: Of the result: "tokens", or "heads" when transposed to heads.
      depends_on: Another member whose result its weight is made of, or None.
      shorter: Whether it leaves out the last term.
      accumulates: Whether it starts from ones instead of zeros.
    """

    heads: int
    channels: int
    stored: str = "nk"
    weight: str = "constant"
    bias: str = ""
    scale: float | None = None
    layout: str = "tokens"
    depends_on: int | None = None
    shorter: bool = False
    accumulates: bool = False

    @property
    def columns(self) -> int:
        return self.heads * self.channels


@dataclass
class Program:
    """The text of a module, its arguments, and its results by numpy."""

    lines: list[str] = field(default_factory=list)
    arguments: list[tuple[str, np.ndarray]] = field(default_factory=list)
    results: list[tuple[str, np.ndarray]] = field(default_factory=list)
    globals: list[str] = field(default_factory=list)
    element: str = "f32"

    @property
    def text(self) -> str:
        """The module."""
        parameters = ", ".join(f"%{name}: {tensor_type(a.shape, self.element)}" for name, a in self.arguments)
        types = ", ".join(tensor_type(array.shape, self.element) for _, array in self.results)
        values = ", ".join(f"%{name}" for name, _ in self.results)
        body = "\n".join(f"  {line}" for line in self.lines)
        module = "".join(f"{line}\n" for line in self.globals)
        return f"{module}func.func @main({parameters}) -> ({types}) {{\n{body}\n  return {values} : {types}\n}}\n"

    @property
    def inputs(self) -> list[np.ndarray]:
        return [array for _, array in self.arguments]

    @property
    def expected(self) -> list[np.ndarray]:
        return [array for _, array in self.results]

    def give(self, name: str, array: np.ndarray, kind: str) -> None:
        """Define a tensor as an argument or as a constant."""
        if kind == "argument":
            self.arguments.append((name, array))
        else:
            self.lines.append(f'%{name} = arith.constant dense<"0x{array.tobytes().hex()}"> : {_type(array)}')


def build(
    linears: Sequence[Linear], batch: int, tokens: int, terms: int, *, gate: bool = False, seed: int = 0
) -> Program:
    """`linears` of one tensor; with `gate`, SiLU of the first times the second is a result in the place of both."""
    rng = np.random.default_rng(seed)
    program = Program(["%zero = arith.constant 0.0 : f32", "%one = arith.constant 1.0 : f32"])
    x = rng.normal(0, 1, (batch, tokens, terms)).astype(np.float32)
    program.arguments.append(("x", x))
    values: list[tuple[str, np.ndarray]] = []
    for number, linear in enumerate(linears):
        values.append(_add_linear(program, linear, number, x, values, rng))
    if gate:
        (first, a), (second, b) = values[:2]
        _add_gate(program, first, second, a)
        values[:2] = [("gated", a / (1 + np.exp(-a)) * b)]
    program.results = [_add_copies(program, name, array) for name, array in values]
    return program


def _add_copies(program, name, array) -> tuple[str, np.ndarray]:
    """Two copies of a value, as a slice that is returned would be copied anyway."""
    twice = np.stack([array, array])
    loops = ", ".join(f"d{dim}" for dim in range(array.ndim))
    kinds = ", ".join(['"parallel"'] * twice.ndim)
    program.lines += [
        f"%{name}y = tensor.empty() : {_type(twice)}",
        f"%{name}x = linalg.generic {{indexing_maps = [affine_map<(c, {loops}) -> ({loops})>, "
        f"affine_map<(c, {loops}) -> (c, {loops})>], iterator_types = [{kinds}]}} ins(%{name} : {_type(array)}) "
        f"outs(%{name}y : {_type(twice)}) {{\n  ^bb0(%a: f32, %o: f32):\n    linalg.yield %a : f32\n"
        f"  }} -> {_type(twice)}",
    ]
    return f"{name}x", twice


def _add_linear(program, linear, number, x, values, rng) -> tuple[str, np.ndarray]:
    batch, tokens, terms = x.shape
    name, source = f"m{number}", "x"
    if linear.shorter:
        terms -= 1
        source = f"x{number}"
        program.lines.append(
            f"%{source} = tensor.extract_slice %x[0, 0, 0] [{batch}, {tokens}, {terms}] [1, 1, 1] : "
            f"{_type(x)} to {_type(x[..., :terms])}"
        )
    weight = (rng.normal(0, 1, (linear.columns, terms)) / 4).astype(np.float32)
    result = x[..., :terms] @ weight.T + (1 if linear.accumulates else 0)
    _add_weight(program, linear, name, weight, batch)
    if linear.depends_on is not None:
        earlier, array = values[linear.depends_on]
        result = x @ (weight + array.flat[0]).T
        _add_first_element(program, earlier, array, name, linear, weight, batch)
    _add_contraction(program, linear, name, source, (batch, tokens, terms), result)
    value = f"{name}s"
    if linear.bias:
        bias = rng.normal(0, 1, linear.columns).astype(np.float32)
        program.give(f"{name}b", bias, linear.bias)
        _add_elementwise(program, value, f"{name}t", result, "arith.addf %a, %b : f32", (f"{name}b", bias))
        value, result = f"{name}t", result + bias
    if linear.scale is not None:
        program.lines.append(f"%{name}f = arith.constant {linear.scale} : f32")
        _add_elementwise(program, value, f"{name}u", result, f"arith.mulf %a, %{name}f : f32", None)
        value, result = f"{name}u", result * np.float32(linear.scale)
    if linear.layout == "heads":
        value, result = _add_heads(program, linear, value, result)
    return value, result.astype(np.float32)


def _add_weight(program, linear, name, weight, batch) -> None:
    """Define `%<name>w`, as the contraction reads it: [n, k], [k, n] or [b, k, n]."""
    stored = weight if linear.stored == "nk" else np.ascontiguousarray(weight.T)
    program.give(f"{name}w", stored, linear.weight)
    if linear.stored == "bkn":
        terms, columns = stored.shape
        type_ = tensor_type((batch, terms, columns), "f32")
        program.lines += [
            f"%{name}we = tensor.empty() : {type_}",
            f"%{name}wb = linalg.generic {{indexing_maps = [affine_map<(b, k, n) -> (k, n)>, "
            "affine_map<(b, k, n) -> (b, k, n)>], iterator_types = ['parallel', 'parallel', 'parallel']} "
            f"ins(%{name}w : {_type(stored)}) outs(%{name}we : {type_}) {{\n  ^bb0(%a: f32, %o: f32):\n"
            f"    linalg.yield %a : f32\n  }} -> {type_}",
        ]
        program.lines[-1] = program.lines[-1].replace("'", '"')


def _add_first_element(program, earlier, array, name, linear, weight, batch) -> None:
    """Add the first element of an earlier result to the weight."""
    stored = weight if linear.stored == "nk" else weight.T
    zeros = ", ".join(["%c0"] * array.ndim)
    if "%c0 = arith.constant 0 : index" not in program.lines:
        program.lines.append("%c0 = arith.constant 0 : index")
    program.lines.append(f"%{name}e = tensor.extract %{earlier}[{zeros}] : {_type(array)}")
    _add_elementwise(program, f"{name}w", f"{name}wd", stored, f"arith.addf %a, %{name}e : f32", None)


def _add_contraction(program, linear, name, source, sizes, result) -> None:
    batch, _, terms = sizes
    maps = {"nk": "(n, k)", "kn": "(k, n)", "bkn": "(b, k, n)"}[linear.stored]
    shape = {"nk": (linear.columns, terms), "kn": (terms, linear.columns), "bkn": (batch, terms, linear.columns)}
    weight = f"{name}w" + {"bkn": "b"}.get(linear.stored, "")
    weight = f"{name}wd" if linear.depends_on is not None else weight
    x, w, out = (tensor_type(each, "f32") for each in (sizes, shape[linear.stored], result.shape))
    start = "%one" if linear.accumulates else "%zero"
    loops = "(b, t, n, k)"
    program.lines += [
        f"%{name}i = tensor.empty() : {out}",
        f"%{name}z = linalg.fill ins({start} : f32) outs(%{name}i : {out}) -> {out}",
        f"%{name}s = linalg.generic {{indexing_maps = [affine_map<{loops} -> (b, t, k)>, "
        f"affine_map<{loops} -> {maps}>, affine_map<{loops} -> (b, t, n)>], "
        f'iterator_types = ["parallel", "parallel", "parallel", "reduction"]}} ins(%{source}, %{weight} : {x}, {w}) '
        f"outs(%{name}z : {out}) {{\n  ^bb0(%a: f32, %b: f32, %o: f32):\n    %p = arith.mulf %a, %b : f32\n"
        f"    %q = arith.addf %o, %p : f32\n    linalg.yield %q : f32\n  }} -> {out}",
    ]


def _add_elementwise(program, value, name, array, op, second) -> None:
    """`op` of `%a`, from `%value`, and `%b`, from a tensor along the last dim."""
    out, rank = _type(array), array.ndim
    loops = ", ".join(f"d{dim}" for dim in range(rank))
    identity = f"affine_map<({loops}) -> ({loops})>"
    maps = [identity, *([f"affine_map<({loops}) -> (d{rank - 1})>"] if second else []), identity]
    inputs = f"%{value}" + (f", %{second[0]}" if second else "")
    types = out + (f", {_type(second[1])}" if second else "")
    arguments = "%a: f32, " + ("%b: f32, " if second else "")
    kinds = ", ".join(['"parallel"'] * rank)
    program.lines += [
        f"%{name}i = tensor.empty() : {out}",
        f"%{name} = linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{kinds}]}} "
        f"ins({inputs} : {types}) outs(%{name}i : {out}) {{\n  ^bb0({arguments}%o: f32):\n    %r = {op}\n"
        f"    linalg.yield %r : f32\n  }} -> {out}",
    ]


def _add_heads(program, linear, value, array) -> tuple[str, np.ndarray]:
    batch, tokens, _ = array.shape
    cut = array.reshape(batch, tokens, linear.heads, linear.channels)
    moved = np.ascontiguousarray(cut.transpose(0, 2, 1, 3))
    program.lines += [
        f"%{value}c = tensor.expand_shape %{value} [[0], [1], [2, 3]] output_shape {list(cut.shape)} : "
        f"{_type(array)} into {_type(cut)}",
        f"%{value}e = tensor.empty() : {_type(moved)}",
        f"%{value}h = linalg.transpose ins(%{value}c : {_type(cut)}) outs(%{value}e : {_type(moved)}) "
        "permutation = [0, 2, 1, 3]",
    ]
    return f"{value}h", moved


def _add_gate(program, first, second, array) -> None:
    out = _type(array)
    loops = ", ".join(f"d{dim}" for dim in range(array.ndim))
    identity = f"affine_map<({loops}) -> ({loops})>"
    kinds = ", ".join(['"parallel"'] * array.ndim)
    program.lines += [
        f"%gi = tensor.empty() : {out}",
        f"%gated = linalg.generic {{indexing_maps = [{identity}, {identity}, {identity}], "
        f"iterator_types = [{kinds}]}} ins(%{first}, %{second} : {out}, {out}) outs(%gi : {out}) {{\n"
        "  ^bb0(%a: f32, %b: f32, %o: f32):\n    %n = arith.negf %a : f32\n    %e = math.exp %n : f32\n"
        "    %d = arith.addf %e, %one : f32\n    %s = arith.divf %a, %d : f32\n    %r = arith.mulf %s, %b : f32\n"
        f"    linalg.yield %r : f32\n  }} -> {out}",
    ]


def _type(array: np.ndarray) -> str:
    return tensor_type(array.shape, "f32")


def attention(
    batch: int,
    tokens: int,
    terms: int,
    heads: int,
    kv_heads: int,
    channels: int,
    *,
    element: str = "f32",
    parameters: bool = False,
) -> Program:
    """Attention of projections of one tensor; heads of K and V are copied where there are fewer than of Q.

    With `parameters` the weights are not in the module, and there are no results to compare with.
    """
    rng = np.random.default_rng(0)
    acc = "f32"
    x = rng.normal(0, 1, (batch, tokens, terms)).astype(np.float32)
    program = Program([f"%zero = arith.constant 0.0 : {acc}", "%scale = arith.constant 0.25 : f32"])
    program.element = element
    program.arguments.append(("x", x))
    arrays = []
    for name, count in (("q", heads), ("k", kv_heads), ("v", kv_heads)):
        weight = (rng.normal(0, 1, (count * channels, terms)) / 4).astype(np.float32)
        type_ = tensor_type(weight.shape, element)
        if parameters:
            program.globals.append(f'util.global private @{name}w = #flow.parameter.named<"m"::"{name}"> : {type_}')
            program.lines.append(f"%{name}w = util.global.load @{name}w : {type_}")
        else:
            program.give(f"{name}w", weight, "constant")
        arrays.append(_add_projection(program, name, x, weight, count, heads, element))
    q, k, v = arrays
    scores = np.einsum("bhtd,bhsd->bhts", q, k) * 0.25
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    result = np.einsum("bhts,bhsd->bhtd", weights / weights.sum(-1, keepdims=True), v)
    flat = (batch * heads, tokens, channels)
    type_ = tensor_type(flat, element)
    loops = "(b, m, n, k1, k2)"
    maps = ", ".join(
        f"affine_map<{loops} -> {dims}>" for dims in ("(b, m, k1)", "(b, k2, k1)", "(b, k2, n)", "()", "(b, m, n)")
    )
    program.lines += [
        f"%ea = tensor.empty() : {type_}",
        f"%a = iree_linalg_ext.attention <{{indexing_maps = [{maps}]}}> ins(%qf, %kf, %vf, %scale : "
        f"{type_}, {type_}, {type_}, f32) outs(%ea : {type_}) {{\n  ^bb0(%s: f32):\n"
        f"    iree_linalg_ext.yield %s : f32\n  }} -> {type_}",
    ]
    program.results = [("a", result.reshape(flat).astype(np.float32))]
    return program


def _add_projection(program, name, x, weight, count, heads, element) -> np.ndarray:
    """Define `%<name>f`, a projection cut into heads, `count` copied to be `heads`: [b * h, t, d]."""
    batch, tokens, _ = x.shape
    channels = weight.shape[0] // count

    def type_of(*shape, of=element):
        return tensor_type(shape, of)

    x_type, w_type = type_of(*x.shape), type_of(*weight.shape)
    sums, narrow = type_of(batch, tokens, count * channels, of="f32"), type_of(batch, tokens, count * channels)
    cut, moved = type_of(batch, tokens, count, channels), type_of(batch, count, tokens, channels)
    extend = (
        ""
        if element == "f32"
        else f"    %c = arith.extf %a : {element} to f32\n    %d = arith.extf %b : {element} to f32\n"
    )
    factors = "%a, %b" if element == "f32" else "%c, %d"
    program.lines += [
        f"%{name}e = tensor.empty() : {sums}",
        f"%{name}z = linalg.fill ins(%zero : f32) outs(%{name}e : {sums}) -> {sums}",
        f"%{name}s = linalg.generic {{indexing_maps = [affine_map<(b, t, n, k) -> (b, t, k)>, "
        "affine_map<(b, t, n, k) -> (n, k)>, affine_map<(b, t, n, k) -> (b, t, n)>], "
        f'iterator_types = ["parallel", "parallel", "parallel", "reduction"]}} ins(%x, %{name}w : {x_type}, {w_type}) '
        f"outs(%{name}z : {sums}) {{\n  ^bb0(%a: {element}, %b: {element}, %o: f32):\n{extend}"
        f"    %p = arith.mulf {factors} : f32\n    %q = arith.addf %o, %p : f32\n    linalg.yield %q : f32\n"
        f"  }} -> {sums}",
    ]
    value = f"{name}s"
    if element != "f32":
        identity = "affine_map<(b, t, n) -> (b, t, n)>"
        program.lines += [
            f"%{name}n = tensor.empty() : {narrow}",
            f"%{name}t = linalg.generic {{indexing_maps = [{identity}, {identity}], "
            f'iterator_types = ["parallel", "parallel", "parallel"]}} ins(%{name}s : {sums}) outs(%{name}n : {narrow}) '
            f"{{\n  ^bb0(%a: f32, %o: {element}):\n    %r = arith.truncf %a : f32 to {element}\n"
            f"    linalg.yield %r : {element}\n  }} -> {narrow}",
        ]
        value = f"{name}t"
    shape = [batch, tokens, count, channels]
    program.lines += [
        f"%{name}c = tensor.expand_shape %{value} [[0], [1], [2, 3]] output_shape {shape} : {narrow} into {cut}",
        f"%{name}i = tensor.empty() : {moved}",
        f"%{name}h = linalg.transpose ins(%{name}c : {cut}) outs(%{name}i : {moved}) permutation = [0, 2, 1, 3]",
    ]
    array = (x @ weight.T).reshape(batch, tokens, count, channels).transpose(0, 2, 1, 3)
    flat = type_of(batch * heads, tokens, channels)
    if count == heads:
        program.lines.append(f"%{name}f = tensor.collapse_shape %{name}h [[0, 1], [2], [3]] : {moved} into {flat}")
        return array
    copied = type_of(batch, count, heads // count, tokens, channels)
    loops = "(b, g, r, t, d)"
    kinds = ", ".join(['"parallel"'] * 5)
    program.lines += [
        f"%{name}j = tensor.empty() : {copied}",
        f"%{name}g = linalg.generic {{indexing_maps = [affine_map<{loops} -> (b, g, t, d)>, "
        f"affine_map<{loops} -> {loops}>], iterator_types = [{kinds}]}} ins(%{name}h : {moved}) "
        f"outs(%{name}j : {copied}) {{\n  ^bb0(%a: {element}, %o: {element}):\n    linalg.yield %a : {element}\n"
        f"  }} -> {copied}",
        f"%{name}f = tensor.collapse_shape %{name}g [[0, 1, 2], [3], [4]] : {copied} into {flat}",
    ]
    return np.repeat(array, heads // count, axis=1)


def layers_of_cross_attention(
    layers: int, tokens: int = 16, terms: int = 32, heads: int = 2, channels: int = 16, element: str = "f32"
) -> tuple[Graph, list[Tensor]]:
    """Learned queries that attend to one text, layer by layer."""
    graph, rng = Graph(), np.random.default_rng(5)
    text = graph.argument(rng.standard_normal((2, tokens, terms)), element)
    found = []
    for _ in range(layers):
        query = graph.argument(rng.standard_normal((2, heads, 64, channels)), element)
        weights = [graph.argument(rng.standard_normal((heads * channels, terms)) / 4, element) for _ in range(2)]
        projected = [graph.cast(graph.contract(text, "btc", weight, "dc", "btd", "f32"), element) for weight in weights]
        key, value = (
            graph.transpose(graph.reshape(each, [[0], [1], [2, 3]], (2, tokens, heads, channels)), (0, 2, 1, 3))
            for each in projected
        )
        scores = graph.scalar("mulf", graph.contract(query, "bhtc", key, "bhsc", "bhts", "f32"), channels**-0.5)
        weighed = graph.cast(graph.softmax(scores, 3, named=False), element)
        found.append(graph.cast(graph.contract(weighed, "bhts", value, "bhsc", "bhtc", "f32"), element))
    return graph, found

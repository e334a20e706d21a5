# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The text of the modules of `convolution_cases`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .convolution_cases import ConvCase

_SPATIAL = "dhw"
_SILU = (
    "%n = arith.negf %i : {e}\n%p = math.exp %n : {e}\n%one = arith.constant 1.0 : {e}\n"
    "%d = arith.addf %p, %one : {e}\n%r = arith.divf %i, %d : {e}"
)


def module_text(case: ConvCase) -> str:
    """The module of a case, with the function `main`."""
    return _Writer(case).module()


class _Value:
    """A tensor: its name, its layout, and its sizes, which are numbers or names of index values."""

    def __init__(self, name: str, layout: str, sizes: Sequence[int | str], element: str) -> None:
        self.name, self.layout, self.sizes, self.element = name, layout, list(sizes), element

    @property
    def type(self) -> str:
        dims = "".join("?x" if isinstance(size, str) else f"{size}x" for size in self.sizes)
        return f"tensor<{dims}{self.element}>"

    @property
    def typed(self) -> str:
        return f"{self.name} : {self.type}"


class _Writer:
    def __init__(self, case: ConvCase) -> None:
        self.case = case
        self.lines: list[str] = []
        self.count = 0

    def module(self) -> str:
        case = self.case
        arguments = {name: _Value(f"%{name}", "", shape, case.element) for name, shape in case.argument_shapes.items()}
        x = arguments["x"]
        x.layout = case.input
        x.sizes = [f"?{dim}" if case.input[dim] in case.dynamic else size for dim, size in enumerate(x.sizes)]
        if "time" in arguments and "n" in case.dynamic:
            arguments["time"].sizes[0] = "?"
        signature = ", ".join(f"{value.name}: {value.type}" for value in arguments.values())
        x.sizes = [self.dim(x, dim) if isinstance(size, str) else size for dim, size in enumerate(x.sizes)]
        value = self.convolve(self.surround(x, case.before, arguments), self.filter(arguments))
        value = self.surround(self.narrow(value), case.after, arguments)
        body = "\n".join(self.lines)
        return f"func.func @main({signature}) -> {value.type} {{\n{body}\nreturn {value.typed}\n}}\n"

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def line(self, text: str) -> str:
        name = self.name()
        self.lines.append(f"{name} = {text}")
        return name

    def dim(self, value: _Value, dim: int) -> str:
        dims = "".join("?x" if isinstance(size, str) else f"{size}x" for size in value.sizes)
        at = self.line(f"arith.constant {dim} : index")
        return self.line(f"tensor.dim {value.name}, {at} : tensor<{dims}{value.element}>")

    def constant(self, number: str, element: str) -> str:
        return self.line(f"arith.constant {number} : {element}")

    def empty(self, layout: str, sizes: Sequence[int | str], element: str) -> _Value:
        value = _Value("", layout, sizes, element)
        value.name = self.line(f"tensor.empty({', '.join(s for s in sizes if isinstance(s, str))}) : {value.type}")
        return value

    def fill(self, number: str, into: _Value) -> _Value:
        scalar = self.constant(number, into.element)
        name = self.line(f"linalg.fill ins({scalar} : {into.element}) outs({into.typed}) -> {into.type}")
        return _Value(name, into.layout, into.sizes, into.element)

    def generic(self, inputs: Sequence[_Value], out: _Value, body: str, loops: str, maps: Sequence[str]) -> _Value:
        """A generic whose loops are letters; what stands in no map of the result is reduced."""
        dims = ", ".join(loops)
        kinds = ", ".join('"parallel"' if letter in maps[-1] else '"reduction"' for letter in loops)
        spelled = ", ".join(f"affine_map<({dims}) -> ({map_})>" for map_ in maps)
        names, types = ", ".join(v.name for v in inputs), ", ".join(v.type for v in inputs)
        arguments = ", ".join(f"%i{n or ''}: {v.element}" for n, v in enumerate(inputs))
        name = self.line(
            f"linalg.generic {{indexing_maps = [{spelled}], iterator_types = [{kinds}]}} ins({names} : {types}) "
            f"outs({out.typed}) {{\n^bb0({arguments}, %o: {out.element}):\n{body}\n"
            f"linalg.yield %r : {out.element}\n}} -> {out.type}"
        )
        return _Value(name, out.layout, out.sizes, out.element)

    def map(self, inputs: Sequence[_Value], like: _Value, body: str, element: str | None = None) -> _Value:
        """An elementwise generic; inputs with fewer letters are broadcast."""
        element = element or like.element
        out = self.empty(like.layout, like.sizes, element)
        maps = [", ".join(value.layout) for value in (*inputs, out)]
        return self.generic(inputs, out, body.format(e=element), like.layout, maps)

    def narrow(self, value: _Value) -> _Value:
        if value.element == self.case.element or value.element == "i32":
            return value
        body = f"%r = arith.truncf %i : {value.element} to {self.case.element}"
        return self.map([value], value, body, self.case.element)

    def surround(self, value: _Value, steps: Sequence[str], arguments: dict[str, _Value]) -> _Value:
        for step in steps:
            if step == "silu":
                value = self.map([value], value, _SILU)
            elif step == "groupnorm":
                value = self.group_norm(value)
            else:
                extra = arguments["x" if step == "residual" else step]
                channels = "".join(c for c in value.layout if c in "gfm" or (c == "c" and "f" not in value.layout))
                extra.layout = {"residual": value.layout, "time": "n" + channels}.get(step, channels)
                value = self.map([value, extra], value, "%r = arith.addf %i, %i1 : {e}")
        return value

    def group_norm(self, value: _Value) -> _Value:
        """Two groups, sums in f32."""
        at = value.layout.index("c")
        channels = value.sizes[at]
        layout = value.layout[:at] + "gc" + value.layout[at + 1 :]
        sizes = [*value.sizes[:at], 2, channels // 2, *value.sizes[at + 1 :]]
        split = self.reshape("expand", value, layout, sizes, at)
        wide = (
            split
            if split.element == "f32"
            else self.map([split], split, f"%r = arith.extf %i : {split.element} to f32", "f32")
        )
        count = self.count_of(wide)
        mean = self.mean(wide, count)
        centered = self.map([wide, mean], wide, "%r = arith.subf %i, %i1 : f32")
        square = self.map([centered], wide, "%r = arith.mulf %i, %i : f32")
        variance = self.mean(square, count)
        body = (
            "%eps = arith.constant 1.0e-05 : f32\n%a = arith.addf %i1, %eps : f32\n%s = math.rsqrt %a : f32\n"
            "%r = arith.mulf %i, %s : f32"
        )
        normal = self.narrow(self.map([centered, variance], wide, body))
        return self.reshape("collapse", normal, value.layout, value.sizes, at)

    def count_of(self, value: _Value) -> str:
        """How many elements there are in a group, as f32."""
        parts = [s for s, letter in zip(value.sizes, value.layout, strict=True) if letter not in "ng"]
        product = self.constant("1", "index")
        for part in parts:
            factor = part if isinstance(part, str) else self.constant(str(part), "index")
            product = self.line(f"arith.muli {product}, {factor} : index")
        integer = self.line(f"arith.index_cast {product} : index to i32")
        return self.line(f"arith.sitofp {integer} : i32 to f32")

    def mean(self, value: _Value, count: str) -> _Value:
        sizes = [size for size, letter in zip(value.sizes, value.layout, strict=True) if letter in "ng"]
        zero = self.fill("0.0", self.empty("ng", sizes, "f32"))
        maps = [", ".join(value.layout), "n, g"]
        total = self.generic([value], zero, "%r = arith.addf %i, %o : f32", value.layout, maps)
        return self.map([total], total, f"%r = arith.divf %i, {count} : f32")

    def reshape(self, kind: str, value: _Value, layout: str, sizes: Sequence[int | str], at: int) -> _Value:
        result = _Value("", layout, sizes, value.element)
        small = min(len(value.layout), len(layout))
        groups = [[d + (d > at)] if d != at else [at, at + 1] for d in range(small)]
        shape = f" output_shape [{', '.join(map(str, sizes))}]" if kind == "expand" else ""
        result.name = self.line(f"tensor.{kind}_shape {value.name} {groups}{shape} : {value.type} into {result.type}")
        return result

    def filter(self, arguments: dict[str, _Value]) -> _Value:
        case = self.case
        if case.constant:
            value = _Value("", case.filter, case.filter_shape, case.element)
            value.name = self.line(f'arith.constant dense<"0x{case.weights().tobytes().hex()}"> : {value.type}')
            return value
        weights = arguments["w"]
        weights.layout = case.filter
        return self.flip(weights) if case.transposed else weights

    def flip(self, weights: _Value) -> _Value:
        """The filter of a transposed convolution, read backwards as torch's exporter does."""
        out = self.empty(self.case.filter, self.case.filter_shape, weights.element)
        last = self.constant(str(self.case.kernel - 1), "index")
        layout = self.case.filter
        body = "\n".join(f"%x{d} = linalg.index {d} : index" for d in range(len(layout)))
        body += "".join(
            f"\n%y{d} = arith.subi {last}, %x{d} : index" for d, letter in enumerate(layout) if letter in _SPATIAL
        )
        at = [f"%y{d}" if letter in _SPATIAL else f"%x{d}" for d, letter in enumerate(layout)]
        f, c = layout.index("f"), layout.index("c")
        at[f], at[c] = at[c], at[f]
        body += f"\n%r = tensor.extract {weights.name}[{', '.join(at)}] : {weights.type}"
        loops = layout
        kinds = ", ".join(['"parallel"'] * len(loops))
        name = self.line(
            f"linalg.generic {{indexing_maps = [affine_map<({', '.join(loops)}) -> ({', '.join(loops)})>], "
            f"iterator_types = [{kinds}]}} outs({out.typed}) {{\n^bb0(%o: {out.element}):\n{body}\n"
            f"linalg.yield %r : {out.element}\n}} -> {out.type}"
        )
        return _Value(name, loops, out.sizes, out.element)

    def pad(self, x: _Value) -> _Value:
        case = self.case
        if case.transposed:
            return self.spread(x)
        if not case.low and not case.high:
            return x
        low, high = ([amount if c in _SPATIAL else 0 for c in x.layout] for amount in (case.low, case.high))
        sizes = [self.add(size, a + b) for size, a, b in zip(x.sizes, low, high, strict=True)]
        padded = _Value("", x.layout, sizes, x.element)
        zero = (case.zero_points or (0,))[0]
        number = self.constant(str(zero) if x.element == "i8" else f"{float(zero)}", x.element)
        places = ", ".join(f"%p{d}: index" for d in range(len(sizes)))
        padded.name = self.line(
            f"tensor.pad {x.name} low{low} high{high} {{\n^bb0({places}):\ntensor.yield {number} : {x.element}\n}} : "
            f"{x.type} to {padded.type}"
        )
        return padded

    def spread(self, x: _Value) -> _Value:
        """The input of a transposed convolution, with zeros between its elements."""
        case = self.case
        sizes = [case.image(c) if c in _SPATIAL else case.size(c) for c in x.layout]
        into = self.fill("0.0", self.empty(x.layout, sizes, x.element))
        at = [case.low if c in _SPATIAL else 0 for c in x.layout]
        strides = [case.transposed if c in _SPATIAL else 1 for c in x.layout]
        name = self.line(
            f"tensor.insert_slice {x.name} into {into.name}{at} {x.sizes} {strides} : {x.type} into {into.type}"
        )
        return _Value(name, x.layout, sizes, x.element)

    def add(self, size: int | str, amount: int) -> int | str:
        if isinstance(size, int) or not amount:
            return size + amount if isinstance(size, int) else size
        return self.line(f"affine.apply affine_map<(a) -> (a + {amount})>({size})")

    def result_size(self, x: _Value, letter: str) -> int | str:
        case = self.case
        if letter not in x.layout:
            return case.size(letter)
        size = x.sizes[x.layout.index(letter)]
        if letter not in _SPATIAL or isinstance(size, int):
            return size if letter not in _SPATIAL else case.result(letter)
        span = case.dilation * (case.kernel - 1) + 1
        return self.line(f"affine.apply affine_map<(a) -> ((a - {span}) floordiv {case.stride} + 1)>({size})")

    def convolve(self, x: _Value, w: _Value) -> _Value:
        case = self.case
        x = self.pad(x)
        sizes = [self.result_size(x, letter) for letter in case.output]
        zero = "0" if case.accumulator == "i32" else "0.0"
        init = self.fill(zero, self.empty(case.output, sizes, case.accumulator))
        if case.generic:
            return self.generic_convolution(x, w, init)
        inputs = [x.name, w.name]
        types = [x.type, w.type]
        suffix = ""
        if case.zero_points:
            inputs += [self.constant(str(point), "i32") for point in case.zero_points]
            types += ["i32", "i32"]
            suffix = "_q"
        rank = len(case.space)
        prefix = "depthwise_conv" if "f" not in case.output else "conv"
        rate = ", ".join(
            f"{name} = dense<{value}> : tensor<{rank}xi64>"
            for name, value in (("dilations", case.dilation), ("strides", case.stride))
        )
        name = self.line(
            f"linalg.{prefix}_{rank}d_{case.input}_{case.filter}{suffix} {{{rate}}} ins({', '.join(inputs)} : "
            f"{', '.join(types)}) outs({init.typed}) -> {init.type}"
        )
        return _Value(name, init.layout, init.sizes, init.element)

    def generic_convolution(self, x: _Value, w: _Value, init: _Value) -> _Value:
        case = self.case
        inside = {c: f"{c} * {case.stride} + k{c} * {case.dilation}" for c in case.space}
        maps = [
            ", ".join(inside.get(c, c) for c in x.layout),
            ", ".join(f"k{c}" if c in case.space else c for c in w.layout),
            ", ".join(init.layout),
        ]
        reduced = [c for c in w.layout if c not in init.layout and c not in _SPATIAL]
        loops = [*init.layout, *reduced, *(f"k{c}" for c in case.space)]
        kinds = ", ".join('"parallel"' if c in init.layout else '"reduction"' for c in loops)
        spelled = ", ".join(f"affine_map<({', '.join(loops)}) -> ({map_})>" for map_ in maps)
        wide = x.element != init.element
        body = "".join(f"%{n} = arith.extf %{n}n : {x.element} to {init.element}\n" if wide else "" for n in ("a", "b"))
        body += f"%m = arith.mulf %a, %b : {init.element}\n%r = arith.addf %o, %m : {init.element}"
        narrow = "n" if wide else ""
        name = self.line(
            f"linalg.generic {{indexing_maps = [{spelled}], iterator_types = [{kinds}]}} ins({x.name}, {w.name} : "
            f"{x.type}, {w.type}) outs({init.typed}) {{\n"
            f"^bb0(%a{narrow}: {x.element}, %b{narrow}: {w.element}, %o: {init.element}):\n{body}\n"
            f"linalg.yield %r : {init.element}\n}} -> {init.type}"
        )
        return _Value(name, init.layout, init.sizes, init.element)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Count what `prepass-fuse-horizontal-contractions` saves, for gfx942.

Layers of transformers come from a template in the torch dialect, in f16, with their weights as
parameters. Each is compiled as it is and with `prepass-default`, at O0 and O3; dispatches are counted
in the IR, and instructions in the assembly. Nothing is run.

    python docs/horizontal_fusion.py

writes the table of horizontal-fusion.md anew; names of cases as arguments print theirs instead.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prepass.amdgpu.figures import KernelFigures
from prepass.amdgpu.inputs import compile_to_assembly
from prepass.checking.statistics import ProgramStatistics

PAGE = Path(__file__).parent / "horizontal-fusion.md"
START, END = "<!-- table -->\n", "<!-- end of table -->\n"
FLAGS = ("--iree-hal-target-device=hip", "--iree-rocm-target=gfx942")
LEVELS = ("O0", "O3")
PIPELINE = "builtin.module(prepass-default)"
HEADER = """\
| layer | level | | dispatches | of loading | contractions: MFMA / loads | attention: `ds_read_u16` |
| --- | --- | --- | --- | --- | --- | --- |
"""


@dataclass
class Layer:
    """A module in the torch dialect; each method adds an op and returns the name of its result."""

    arguments: list[tuple[str, list[int]]]
    globals: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    shapes: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.shapes.update((f"%{name}", shape) for name, shape in self.arguments)

    def module(self, *results: str) -> str:
        """The text of the module."""
        parameters = ", ".join(f"%{name}: {_tensor(shape)}" for name, shape in self.arguments)
        types = ", ".join(_tensor(self.shapes[result]) for result in results)
        body = "\n  ".join(self.lines)
        returned = f"({types})" if len(results) > 1 else types
        return "\n".join(self.globals) + (
            f"\nfunc.func @main({parameters}) -> {returned} {{\n  {body}\n  return {', '.join(results)} : {types}\n}}\n"
        )

    def linear(self, x: str, columns: int, *, bias: bool = False) -> str:
        """`x` times a weight, and a bias."""
        terms = self.shapes[x][-1]
        weight = self._parameter([columns, terms])
        added = self._parameter([columns]) if bias else self._constant("none")
        types = (
            f"{_tensor(self.shapes[x])}, {_tensor([columns, terms])}, {_tensor([columns]) if bias else '!torch.none'}"
        )
        return self._op(f"aten.linear {x}, {weight}, {added} : {types}", [*self.shapes[x][:-1], columns])

    def heads(self, x: str, heads: int) -> str:
        """[b, t, h * d] as [b, h, t, d]."""
        batch, tokens, columns = self.shapes[x]
        return self._transpose(self.view(x, [batch, tokens, heads, columns // heads]))

    def repeat(self, x: str, times: int) -> str:
        """Each head several times."""
        batch, heads, tokens, channels = self.shapes[x]
        cut = self.view(x, [batch, heads, 1, tokens, channels])
        shape = [batch, heads, times, tokens, channels]
        sizes = self._list(shape)
        no = self._constant("bool", "false")
        types = f"{_tensor(self.shapes[cut])}, !torch.list<int>, !torch.bool"
        expanded = self._op(f"aten.expand {cut}, {sizes}, {no} : {types}", shape)
        return self.view(expanded, [batch, heads * times, tokens, channels], "aten.reshape")

    def attention(self, q: str, k: str, v: str) -> str:
        """Attention, and its heads side by side."""
        none, no = self._constant("none"), self._constant("bool", "false")
        zero = self._constant("float", "0.0")
        types = ", ".join(_tensor(self.shapes[name]) for name in (q, k, v))
        a = self._op(
            f"aten.scaled_dot_product_attention {q}, {k}, {v}, {none}, {zero}, {no}, {none}, {no} : {types}, "
            "!torch.none, !torch.float, !torch.bool, !torch.none, !torch.bool",
            self.shapes[q],
        )
        batch, heads, tokens, channels = self.shapes[q]
        return self.view(self._transpose(a), [batch, tokens, heads * channels], "aten.reshape")

    def unary(self, name: str, x: str, *arguments: str) -> str:
        """An elementwise op of one tensor."""
        operands = ", ".join([x, *arguments])
        types = ", ".join([_tensor(self.shapes[x]), *["!torch.str"] * len(arguments)])
        return self._op(f"aten.{name} {operands} : {types}", self.shapes[x])

    def gelu(self, x: str) -> str:
        """The exact GELU."""
        return self.unary("gelu", x, self._constant("str", '"none"'))

    def multiply(self, a: str, b: str) -> str:
        """The product of two tensors."""
        return self._op(
            f"aten.mul.Tensor {a}, {b} : {_tensor(self.shapes[a])}, {_tensor(self.shapes[b])}", self.shapes[a]
        )

    def add(self, a: str, b: str) -> str:
        """The sum of two tensors, the second broadcast."""
        one = self._constant("int", "1")
        types = f"{_tensor(self.shapes[a])}, {_tensor(self.shapes[b])}, !torch.int"
        return self._op(f"aten.add.Tensor {a}, {b}, {one} : {types}", self.shapes[a])

    def _parameter(self, shape: list[int]) -> str:
        name = f"p{len(self.globals)}"
        type_ = f"tensor<{'x'.join(map(str, shape))}xf16>"
        self.globals.append(f'util.global private @{name} = #flow.parameter.named<"model"::"{name}"> : {type_}')
        self.lines.append(f"%{name} = util.global.load @{name} : {type_}")
        self.lines.append(f"%t{name} = torch_c.from_builtin_tensor %{name} : {type_} -> {_tensor(shape)}")
        return f"%t{name}"

    def view(self, x: str, shape: list[int], op: str = "aten.view") -> str:
        """A reshape."""
        return self._op(f"{op} {x}, {self._list(shape)} : {_tensor(self.shapes[x])}, !torch.list<int>", shape)

    def _transpose(self, x: str) -> str:
        one, two = self._constant("int", "1"), self._constant("int", "2")
        first, second, third, *rest = self.shapes[x]
        types = f"{_tensor(self.shapes[x])}, !torch.int, !torch.int"
        return self._op(f"aten.transpose.int {x}, {one}, {two} : {types}", [first, third, second, *rest])

    def _list(self, sizes: list[int]) -> str:
        numbers = [self._constant("int", str(size)) for size in sizes]
        types = ", ".join(["!torch.int"] * len(sizes))
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = torch.prim.ListConstruct {', '.join(numbers)} : ({types}) -> !torch.list<int>")
        return name

    def _constant(self, kind: str, value: str = "") -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = torch.constant.{kind} {value}".rstrip())
        return name

    def _op(self, text: str, shape: list[int]) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = torch.{text} -> {_tensor(shape)}")
        self.shapes[name] = shape
        return name


def _tensor(shape: Sequence[int]) -> str:
    return f"!torch.vtensor<[{','.join(map(str, shape))}],f16>"


def self_attention(batch: int, tokens: int, width: int, heads: int, kv_heads: int, *, bias: bool = False) -> str:
    """Projections, attention and the projection of its result."""
    layer = Layer([("x", [batch, tokens, width])])
    kv_width = width // heads * kv_heads
    q = layer.heads(layer.linear("%x", width, bias=bias), heads)
    k, v = (layer.heads(layer.linear("%x", kv_width, bias=bias), kv_heads) for _ in range(2))
    if kv_heads < heads:
        k, v = layer.repeat(k, heads // kv_heads), layer.repeat(v, heads // kv_heads)
    return layer.module(layer.linear(layer.attention(q, k, v), width, bias=bias))


def cross_attention(batch: int, tokens: int, width: int, heads: int, keys: int, source: int) -> str:
    """The same with K and V of another tensor."""
    layer = Layer([("x", [batch, tokens, width]), ("c", [batch, keys, source])])
    q = layer.heads(layer.linear("%x", width), heads)
    k, v = (layer.heads(layer.linear("%c", width), heads) for _ in range(2))
    return layer.module(layer.linear(layer.attention(q, k, v), width, bias=True))


def feed_forward(batch: int, tokens: int, width: int, hidden: int, activation: str) -> str:
    """A gated feed-forward layer."""
    layer = Layer([("x", [batch, tokens, width])])
    gate, up = (layer.linear("%x", hidden, bias=activation == "gelu") for _ in range(2))
    active = layer.gelu(gate) if activation == "gelu" else layer.unary("silu", gate)
    return layer.module(layer.linear(layer.multiply(active, up), width))


def time_embedding(batch: int) -> str:
    """Projections of a time step, added to images as wide as those of the UNet of SDXL."""
    widths = (320, 320, 640, 640, 1280)
    images = [(f"x{number}", [batch, width, 32, 32]) for number, width in enumerate(widths)]
    layer = Layer([("t", [batch, 1280]), *images])
    active = layer.unary("silu", "%t")
    sums = []
    for name, (_, width, *_) in images:
        projected = layer.linear(active, width, bias=True)
        sums.append(layer.add(f"%{name}", layer.view(projected, [batch, width, 1, 1])))
    return layer.module(*sums)


CASES: dict[str, Callable[[], str]] = {
    "self attention 2x4096x640": lambda: self_attention(2, 4096, 640, 10, 10),
    "the same with biases": lambda: self_attention(2, 4096, 640, 10, 10, bias=True),
    "self attention 1x4096x640": lambda: self_attention(1, 4096, 640, 10, 10),
    "the same with biases, batch 1": lambda: self_attention(1, 4096, 640, 10, 10, bias=True),
    "GQA 1x4096, 4096/1024/1024": lambda: self_attention(1, 4096, 4096, 32, 8),
    "GQA 2x1024, 4096/1024/1024": lambda: self_attention(2, 1024, 4096, 32, 8),
    "MQA 2x1024, 1024/64/64": lambda: self_attention(2, 1024, 1024, 16, 1),
    "cross attention 2x4096x640, 77x2048": lambda: cross_attention(2, 4096, 640, 10, 77, 2048),
    "self attention 1x1500x1280": lambda: self_attention(1, 1500, 1280, 20, 20),
    "SwiGLU 2x1024x1024, 2816": lambda: feed_forward(2, 1024, 1024, 2816, "silu"),
    "GEGLU 2x1024x640, 2560": lambda: feed_forward(2, 1024, 640, 2560, "gelu"),
    "time embedding 2x1280": lambda: time_embedding(2),
}


def row(name: str, level: str, pipeline: str | None) -> str:
    """A row of the table."""
    statistics = ProgramStatistics()
    flags = (*FLAGS, f"--iree-opt-level={level}")
    kernels = compile_to_assembly(CASES[name](), pipeline=pipeline, flags=flags, hooks=statistics.hooks)
    products = [_ratio(kernel) for kernel in kernels if _is_product(kernel)]
    scalar_reads = [str(kernel.counts.names["ds_read_u16"]) for kernel in kernels if "attention" in kernel.name]
    cells = [
        name,
        level,
        "prepass" if pipeline else "stock",
        str(statistics.dispatches),
        str(statistics.initializer_dispatches),
        ", ".join(dict.fromkeys(products)) or "-",
        ", ".join(scalar_reads) or "-",
    ]
    return f"| {' | '.join(cells)} |\n"


def _is_product(kernel: KernelFigures) -> bool:
    return any(part in kernel.name for part in ("matmul", "contract", "matvec")) and "initializer" not in kernel.name


def _ratio(kernel: KernelFigures) -> str:
    if not kernel.counts.mfmas:
        return "no MFMA"
    return f"{kernel.counts.mfmas} / {kernel.counts.accesses_of('load', width=16)}"


def main() -> None:
    """Write the table, or print rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help="Print these rows only.")
    arguments = parser.parse_args()
    table = HEADER
    for name in arguments.cases or CASES:
        for level in LEVELS:
            for pipeline in (None, PIPELINE):
                table += row(name, level, pipeline)
    if arguments.cases:
        print(table, end="")
        return
    before, rest = PAGE.read_text().split(START)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{START}\n{table}\n{END}{after}")


if __name__ == "__main__":
    main()

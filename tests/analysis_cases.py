# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that each have one issue, in `@main`, and what looks like it but is none, in functions beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .attention_cases import AttentionCase
from .convolution_cases import ConvCase
from .graphs import Graph, Tensor, with_parameters
from .horizontal_cases import Linear as SharedLinear
from .horizontal_cases import build
from .lookup_cases import LookupCase
from .rope_forms import begin, rotate_half
from .unit_dim_cases import Linear

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class IssueCase:
    """A program with an issue.

    Attributes:
      main: A module whose function `main` has the issue.
      near: Modules whose functions `main` do not have it.
      root: A regular expression that matches the ops that may be reported, from their name on.
      count: How many there are.
      state: What becomes of them with prepass-default.
      fix: The pass that fixes them.
    """

    issue: str
    main: str
    near: tuple[str, ...]
    root: str
    count: int = 1
    state: str = "fixed"
    fix: str = ""

    @property
    def text(self) -> str:
        """All functions in one module, `main` first."""
        others = [text.replace("@main(", f"@near{number}(") for number, text in enumerate(self.near)]
        return "\n".join([self.main, *others])

    @property
    def lines(self) -> list[int]:
        """The lines of the text that are to be reported, counted from 1."""
        return [self.main.count("\n", 0, found.start()) + 1 for found in re.finditer(self.root, self.main)]


def _graph(*shapes: tuple[int, ...], element: str = "f16") -> tuple[Graph, list[Tensor]]:
    graph, rng = Graph(), np.random.default_rng(0)
    return graph, [graph.argument(rng.normal(size=shape), element) for shape in shapes]


def _attention(keys: int, queries: int = 64) -> str:
    return AttentionCase((2,), queries, keys, 64, 64, "f16", scale=0.125, key_transposed=True).module()


def _softmax() -> str:
    graph, (x, weight) = _graph((8, 32, 64), (8, 64, 48))
    scores = graph.contract(x, "bmk", weight, "bkn", "bmn", "f32", named=True)
    return graph.module(graph.softmax(scores, 2, named=True))


def _gelu_mlp() -> str:
    graph, (x, up, down) = _graph((64, 32), (32, 48), (48, 32), element="f32")
    wide = graph.unary("math.exp", graph.contract(x, "mk", up, "kn", "mn", "f32", named=True), np.exp)
    return graph.module(graph.contract(wide, "mk", down, "kn", "mn", "f32", named=True))


def _rope(*, rotates: bool) -> str:
    rope = begin("htd", 4, 64, 32, "f16")
    if rotates:
        return rope.graph.module(rotate_half(rope))
    # Halves that are exchanged, and not rotated.
    return rope.graph.module(rope.graph.concat([rope.half(1), rope.half(0)], 2))


def _linear(**given: int) -> str:
    graph, result = Linear(bias=False, **given).graph()
    return graph.module(result)


def _with_weight(**given: int) -> str:
    """The weight is a parameter, and no argument."""
    graph, result = Linear(bias=False, **given).graph()
    return with_parameters(graph, result)


def _sum(element: str) -> str:
    graph, (x,) = _graph((64, 320), element=element)
    return graph.module(graph.reduce("addf", x, 1, 0.0, np.sum))


def _largest() -> str:
    graph, (x,) = _graph((64, 320))
    return graph.module(graph.reduce("maximumf", x, 1, float("-inf"), np.max))


def _before_product() -> str:
    graph, (x, weight) = _graph((64, 32), (32, 48), element="f32")
    return graph.module(graph.contract(graph.unary("math.exp", x, np.exp), "mk", weight, "kn", "mn", "f32", named=True))


def _behind_product(*, alone: bool = False) -> str:
    graph, (x, weight) = _graph((64, 32), (32, 48), element="f32")
    if alone:
        return graph.module(graph.unary("math.exp", x, np.exp))
    return graph.module(graph.unary("math.exp", graph.contract(x, "mk", weight, "kn", "mn", "f32", named=True), np.exp))


def _prompt(*, loops: bool) -> str:
    """A projection of the prompt, added to what a sampler's loop hands on; or no result that could be handed on."""
    graph, (x, prompt, weight) = _graph((64, 48), (64, 32), (32, 48), element="f32")
    projected = graph.contract(prompt, "mk", weight, "kn", "mn", "f32", named=True)
    result = graph.contract(x, "mk", projected, "nk", "mn", "f32")
    if not loops:
        return graph.module(result)
    return graph.module(graph.contract(result, "mk", projected, "kn", "mn", "f32", named=True))


def _inserted(*, pads: bool) -> str:
    """A tensor inserted into zeros, or into another tensor."""
    target = "%zeros" if pads else "%other"
    fill = """
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<1x32x18x18xf16>
  %zeros = linalg.fill ins(%zero : f16) outs(%empty : tensor<1x32x18x18xf16>) -> tensor<1x32x18x18xf16>"""
    return f"""\
func.func @main(%x: tensor<1x32x16x16xf16>, %other: tensor<1x32x18x18xf16>) -> tensor<1x32x18x18xf16> {{{fill}
  %padded = tensor.insert_slice %x into {target}[0, 0, 1, 1] [1, 32, 16, 16] [1, 1, 1, 1]
      : tensor<1x32x16x16xf16> into tensor<1x32x18x18xf16>
  return %padded : tensor<1x32x18x18xf16>
}}
"""


def _transposed(*, meets: bool) -> str:
    graph, (x, weight) = _graph((32, 64), (64, 48), element="f32")
    turned = graph.transpose(x, [1, 0])
    if not meets:
        return graph.module(turned)
    # The contraction reads the transposed tensor in place.
    return graph.module(graph.contract(turned, "mk", graph.transpose(weight, [1, 0]), "nm", "nk", "f32"))


def _scaled(*, casts: bool) -> str:
    text = (DATA / "scaled_transpose.mlir").read_text()
    for name, of in re.findall(r"^(#\w+) = (.*)$", text, re.MULTILINE)[::-1]:
        text = text.replace(f"{name} = {of}\n", "").replace(name, of)
    text = text.replace("module {\n", "").removesuffix("}\n")
    if casts:
        return text
    text = text.replace("      %10 = arith.truncf %cst_0 : f32 to f16\n", "").replace(
        "%in, %10 : f16", "%in, %cst_0 : f16"
    )
    return text.replace("0.353553385 : f32", "0.353553385 : f16")


def _conv(name: str, **given: object) -> str:
    case = ConvCase(name, element="f16", sizes=(("n", 1), ("c", 64), ("f", 64), ("h", 32), ("w", 32)), **given)
    return case.module()


_NHWC = {"input": "nhwc", "filter": "hwcf", "output": "nhwf"}
_NO_PADDING = {"low": 0, "high": 0}

CASES = (
    IssueCase("decomposed-attention", _attention(64), (_softmax(), _gelu_mlp()), "%o = linalg.batch_matmul"),
    IssueCase(
        "unaligned-keys",
        _attention(77, 1024),
        (_attention(80, 1024),),
        "%o = linalg.batch_matmul",
        state="fixable",
        fix="prepass-pad-attention-keys",
    ),
    IssueCase("gather-like-rope", _rope(rotates=True), (_rope(rotates=False),), r"linalg.generic.*\n.*\n.*arith.addf"),
    IssueCase("unit-dim-linears", _linear(), (_linear(batch=2),), "linalg.batch_matmul"),
    IssueCase(
        "horizontal-fusion",
        build([SharedLinear(2, 32)] * 3, 1, 64, 64).text,
        (build([SharedLinear(2, 32)], 1, 64, 64).text,),
        "linalg.generic.*reduction",
        count=3,
    ),
    IssueCase("f16-sums", _sum("f16"), (_sum("f32"), _largest()), "linalg.generic"),
    IssueCase(
        "nchw-convolutions",
        _conv("nchw"),
        (_conv("nhwc", **_NHWC),),
        "linalg.conv_2d",
        state="fixable",
        fix="prepass-transpose-convolutions",
    ),
    IssueCase(
        "small-convolutions",
        ConvCase(
            "patches",
            element="f16",
            sizes=(("c", 3), ("f", 64), ("h", 64), ("w", 64)),
            kernel=16,
            stride=16,
            **_NO_PADDING,
        ).module(),
        (_conv("no patches"),),
        "linalg.conv_2d",
        state="fixable",
        fix="prepass-unfold-patches",
    ),
    IssueCase(
        "padding-insertion",
        _inserted(pads=True),
        (_inserted(pads=False),),
        "tensor.insert_slice",
        state="fixable",
        fix="prepass-fold-padding",
    ),
    IssueCase("copied-padding", _conv("padded"), (_conv("unpadded", **_NO_PADDING),), "tensor.pad", state="left"),
    IssueCase("copied-tensors", _transposed(meets=False), (_transposed(meets=True),), "linalg.generic", state="left"),
    IssueCase(
        "cast-arithmetic", _scaled(casts=True), (_scaled(casts=False),), r"linalg.generic.*\n.*\n.*\n.*arith.mulf"
    ),
    IssueCase("scalar-lookups", LookupCase(asserted=False, element="f16").module(), (_gelu_mlp(),), "%found ="),
    IssueCase("assertions", LookupCase().module(), (LookupCase(asserted=False).module(),), "cf.assert", count=2),
    IssueCase("gated-projections", (DATA / "geglu.mlir").read_text(), (_gelu_mlp(),), "%0 = torch.aten.linear"),
    IssueCase("transposed-weights", _with_weight(), (_linear(),), r"linalg.generic.*\n.*\n *linalg.yield"),
    IssueCase(
        "unfused-elementwise",
        _before_product(),
        (_behind_product(), _behind_product(alone=True)),
        "linalg.generic",
        state="left",
    ),
    IssueCase("prompt-only-work", _prompt(loops=True), (_prompt(loops=False),), "linalg.matmul", state="left"),
    IssueCase("contraction-layouts", _with_weight(batch=2, heads=3), (_linear(batch=2),), "linalg.matmul"),
)

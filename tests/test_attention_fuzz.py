# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random attention graphs, and graphs that nearly are one: raised or not, results stay the same.

PREPASS_FUZZ_CASES sets how many graphs are tried (default 500), PREPASS_FUZZ_SEED which.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import prepass
from prepass.checking.numerics import compare
from prepass.pipeline.base import RemarkKind

from .conftest import LLVM_CPU
from .graphs import Graph, Tensor

GRAPHS_PER_MODULE = 5
PARTS = 4
MODULES = int(os.environ.get("PREPASS_FUZZ_CASES", "500")) // GRAPHS_PER_MODULE
SEED = int(os.environ.get("PREPASS_FUZZ_SEED", "0"))
PIPELINE = "builtin.module(prepass-raise-attention)"
TOLERANCES = {"f32": 2e-5, "f16": 2e-2, "bf16": 1e-1}
NEAR_MISSES = ("", "reused", "wrong dim", "weighted", "no division", "scores reused")


@dataclass(frozen=True)
class Shape:
    """What is drawn for one graph. `groups` query heads share one K and V head."""

    batch: int
    heads: int
    groups: int
    queries: int
    keys: int
    channels: int
    value_channels: int

    @property
    def extents(self) -> dict[str, int]:
        return dict(zip("bhgmkcn", (self.batch, self.heads, self.groups, *self._inner), strict=True))

    @property
    def _inner(self) -> tuple[int, ...]:
        return self.queries, self.keys, self.channels, self.value_channels

    def of(self, dims: str) -> tuple[int, ...]:
        return tuple(self.extents[d] for d in dims)


sizes = st.sampled_from([1, 2, 3, 5, 8, 16, 17])
shapes = st.builds(
    Shape,
    batch=st.integers(1, 2),
    heads=st.integers(1, 3),
    groups=st.sampled_from([1, 1, 2]),
    queries=sizes,
    keys=sizes,
    channels=st.sampled_from([1, 4, 8, 16, 33]),
    value_channels=st.sampled_from([1, 4, 8, 20]),
)


class AttentionGraph:
    """One random graph, drawn while it is built."""

    def __init__(self, draw) -> None:
        self.draw = draw
        self.graph = Graph()
        self.shape = draw(shapes)
        self.element = draw(st.sampled_from(["f32", "f32", "f16", "bf16"]))
        # What stays decomposed is computed in its own type, where half precision overflows, and stock IREE cannot
        # link an f16 softmax for the CPU; so these are f32.
        self.near_miss = draw(st.sampled_from(NEAR_MISSES + ("",) * 4)) if self.element == "f32" else ""
        self.random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        self.results = self.build()

    def flip(self) -> bool:
        return self.draw(st.booleans())

    def argument(self, dims: str) -> Tensor:
        """A random argument whose dims may come in another order, transposed back at once."""
        order = self.draw(st.permutations(range(len(dims)))) if self.flip() else range(len(dims))
        array = self.random.standard_normal(self.shape.of(dims)).transpose(order)
        argument = self.graph.argument(array, self.element)
        return argument if list(order) == sorted(order) else self.graph.transpose(argument, np.argsort(order))

    def scaled(self, tensor: Tensor) -> Tensor:
        if not self.draw(st.sampled_from([False, False, True])):
            return tensor
        op = self.draw(st.sampled_from(["mulf", "divf"]))
        return self.graph.scalar(op, tensor, self.draw(st.sampled_from([0.5, 0.125, 2.0, -1.0, 0.35355339])))

    def heads(self, dims: str) -> Tensor:
        """K or V with a dim of groups, made by copying when there are any."""
        tensor = self.scaled(self.argument(dims)) if dims[-1] == "c" else self.argument(dims)
        wide = dims.replace("h", "hg")
        return self.graph.broadcast(tensor, dims, wide, self.shape.extents)

    def build(self) -> list[Tensor]:
        query = self.scaled(self.argument("bhgmc"))
        key, value = self.heads("bhkc"), self.heads("bhkn")
        scores = self.scores(query, key)
        raw = scores
        scores = self.masked(self.scaled(scores))
        probabilities = self.probabilities(scores)
        result = self.weigh(probabilities, value)
        extra = {"reused": [probabilities], "scores reused": [raw]}.get(self.near_miss, [])
        return [result, *extra]

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        wide = self.element != "f32" and self.flip()
        accumulate = "f32" if wide or self.element == "f32" else self.element
        operands = ((query, "bhgmc"), (key, "bhgkc"))
        first, second = operands[::-1] if self.flip() else operands
        if self.flip():
            merged = self.merge(query, "mc"), self.graph.transpose(self.merge(key, "kc"), (0, 2, 1))
            scores = self.graph.contract(merged[0], "amc", merged[1], "ack", "amk", accumulate, named=True)
            scores = self.split(scores, "mk")
        else:
            scores = self.graph.contract(*first, *second, "bhgmk", accumulate)
        if self.draw(st.sampled_from([False, False, False, True])):
            scores = self.graph.scalar("mulf", scores, 0.1)
            scores = self.graph.unary("math.tanh", scores, np.tanh)
            scores = self.graph.scalar("mulf", scores, 10.0)
        return scores

    def masked(self, scores: Tensor) -> Tensor:
        for kind in self.draw(st.lists(st.sampled_from(["add", "select", "infinite"]), max_size=2)):
            dims = "".join(d for d in "bhgmk" if self.flip()) or "k"
            if kind == "add":
                array = self.random.standard_normal(self.shape.of(dims))
                low = self.draw(st.sampled_from([0.0, 0.0, -30.0, -np.inf]))
                array = np.where(self.random.random(array.shape) < 0.3, low or array, array)
                scores = self.graph.binary(
                    "addf", scores, self.graph.argument(array, scores.element), "bhgmk", dims, swap=self.flip()
                )
                continue
            kept = self.graph.argument(self.random.random(self.shape.of(dims)) < 0.7, "i1")
            keep_true = self.flip()
            lowest = -65504.0 if scores.element == "f16" else -3e38
            fill = -np.inf if kind == "infinite" else lowest
            scores = self.graph.select(kept, dims, scores, "bhgmk", fill, keep_true=keep_true)
        return scores

    def probabilities(self, scores: Tensor) -> Tensor:
        if self.flip():
            scores = self.graph.cast(scores, "f32")
        if self.near_miss == "no division":
            return self.graph.cast(self.graph.unary("math.exp", scores, np.exp), self.element)
        dim = 3 if self.near_miss == "wrong dim" else 4
        named = self.flip()
        if self.flip():
            merged = self.graph.softmax(self.merge(scores, "mk"), dim - 2, named=named)
            result = self.split(merged, "mk")
        else:
            result = self.graph.softmax(scores, dim, named=named)
        if self.near_miss == "weighted":
            weights = self.graph.argument(self.random.random(self.shape.of("bhgmk")), result.element)
            result = self.graph.binary("mulf", result, weights, "bhgmk", "bhgmk")
        return self.graph.cast(result, self.element)

    def weigh(self, probabilities: Tensor, value: Tensor) -> Tensor:
        if self.flip():
            merged = self.merge(probabilities, "mk"), self.merge(value, "kn")
            return self.split(
                self.graph.contract(merged[0], "amk", merged[1], "akn", "amn", self.element, named=True), "mn"
            )
        operands = ((probabilities, "bhgmk"), (value, "bhgkn"))
        first, second = operands[::-1] if self.flip() else operands
        out = self.draw(st.sampled_from(["bhgmn", "bmhgn", "bhgnm"]))
        return self.graph.contract(*first, *second, out, self.element)

    def merge(self, tensor: Tensor, inner: str) -> Tensor:
        shape = (self.shape.batch * self.shape.heads * self.shape.groups, *self.shape.of(inner))
        return self.graph.reshape(tensor, [[0, 1, 2], [3], [4]], shape)

    def split(self, tensor: Tensor, inner: str) -> Tensor:
        return self.graph.reshape(tensor, [[0, 1, 2], [3], [4]], self.shape.of("bhg" + inner))


attention_graphs = st.composite(lambda draw: AttentionGraph(draw))()


@pytest.mark.parametrize("part", range(PARTS))
def test_results_stay_the_same(part):
    """Split in parts so that workers share them."""

    @seed(SEED + part)
    @settings(
        max_examples=max(1, MODULES // PARTS),
        deadline=None,
        database=None,
        # Shrinking compiles for minutes; the failing function alone is printed instead.
        phases=[Phase.generate],
        suppress_health_check=HealthCheck,
    )
    @given(st.lists(attention_graphs, min_size=GRAPHS_PER_MODULE, max_size=GRAPHS_PER_MODULE))
    def check(graphs):
        check_graphs(graphs)

    check()


def check_graphs(graphs: list[AttentionGraph]) -> None:
    source = "\n".join(g.graph.module(*g.results, function=f"f{n}") for n, g in enumerate(graphs))
    result = prepass.Pipeline.parse(PIPELINE).run(source)
    raised = functions_with_attention(str(result.module))
    for number, graph in enumerate(graphs):
        if graph.near_miss:
            assert f"f{number}" not in raised, graph.near_miss
    unexplained = len(graphs) - len(raised) > sum(r.kind is RemarkKind.MISSED for r in result.remarks)
    assert not unexplained, result.remarks
    program = prepass.compile(source, pipeline=PIPELINE, flags=LLVM_CPU)
    for number, graph in enumerate(graphs):
        outputs = prepass.run(program, *graph.graph.inputs(), function=f"f{number}")
        for output, expected in zip(outputs, graph.results, strict=True):
            reach = max(1.0, float(np.nanmax(np.abs(np.where(np.isfinite(expected.array), expected.array, 0.0)))))
            difference = compare([output], [expected.array])
            message = (
                f"{difference}, {graph.shape}, near miss: {graph.near_miss!r}\n{graph.graph.module(*graph.results)}"
            )
            assert difference.within(TOLERANCES[graph.element] * reach), message


def functions_with_attention(text: str) -> set[str]:
    functions = re.split(r"func\.func @", text)[1:]
    return {f.partition("(")[0] for f in functions if "iree_linalg_ext.attention" in f}

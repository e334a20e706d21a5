# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a kernel costs beside IREE's own code for the same op, by the static cost model; nothing is run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import iree_gpu

from prepass.amdgpu.cost import Cycles
from prepass.amdgpu.figures import KernelFigures, LoopFigures
from prepass.amdgpu.inputs import compile_to_assembly, with_target
from prepass.compiler.kernels import kernel_dispatches
from prepass.errors import PrepassError
from prepass.ir.kernels import ATTENTION, Example, Kernel
from prepass.ir.match import walk_ops

STOCK, CONFIGURED = "IREE", "IREE, configured by prepass"

_WAVE = 64
_SCORES = 1024
_OPERATIONS = 1 << 20
_ONLINE_ATTENTION = "iree_linalg_ext.online_attention"


@dataclass(frozen=True)
class PricedCode:
    """The code for one op, and its hottest loop in cycles of a CU with one wave on each SIMD.

    Attributes:
      per: What the cycles are for: "1,024 scores" of a wave, "2^20 operations" of a wave's matrix instructions,
        or "an iteration" where there are none.
      iterations: How many iterations of the loop that is.
    """

    figures: KernelFigures
    per: str
    iterations: float

    @property
    def loop(self) -> LoopFigures | None:
        """The hottest loop."""
        return self.figures.hottest

    @property
    def cycles(self) -> Cycles:
        """The cycles of each unit; of the whole code where there is no loop."""
        cost = self.loop.cost if self.loop else self.figures.cost
        return (cost.cu if cost else Cycles()) * self.iterations


def price_example(kernel: Kernel, example: Example) -> dict[str, PricedCode]:
    """The code for an example: the kernel's under its name, and IREE's own, for attention with and without a config.

    Raises PrepassError when the kernel does not fit the example, or when the example does not compile.
    """
    names: list[str] = []
    with_kernel = _compile(
        example, example.pipeline, kernel.name, {"executable-sources": lambda m: names.extend(kernel_dispatches(m))}
    )
    if not names:
        raise PrepassError(f"kernel '{kernel.name}' does not fit its example {example.name}")
    name = names[0]
    facts = kernel.description
    scores = math.prod(facts.tile.values()) * math.prod(facts.step.values()) * _WAVE / facts.workgroup_size
    priced = {kernel.name: price_dispatch(with_kernel, name, scores if kernel.kind is ATTENTION else None)}
    ways = {STOCK: example.pipeline}
    if kernel.kind is ATTENTION:
        ways[CONFIGURED] = _followed_by(example.pipeline, "prepass-configure-attention")
    for way, pipeline in ways.items():
        found: dict[str, float] = {}
        read = {"executable-configurations": lambda module, found=found: found.update(read_scores(module))}
        priced[way] = price_dispatch(_compile(example, pipeline, "none", read), name, found.get(name))
    return priced


def _compile(example: Example, pipeline: str, kernels: str, hooks: Mapping[str, object]) -> list[KernelFigures]:
    return compile_to_assembly(
        example.source, pipeline=pipeline or None, kernels=kernels, flags=with_target(()), hooks=hooks
    )


def price_dispatch(code: Sequence[KernelFigures], name: str, scores: float | None = None) -> PricedCode:
    """One dispatch of a program; `scores` are those that a wave computes in an iteration. Raises PrepassError."""
    figures = next((figures for figures in code if figures.name == name), None)
    if figures is None:
        raise PrepassError(f"the code has no '{name}', but {', '.join(other.name for other in code) or 'nothing'}")
    if scores is not None:
        return PricedCode(figures, f"{_SCORES:,} scores", _SCORES / scores)
    cost = figures.hottest.cost if figures.hottest else figures.cost
    operations = sum(cost.flops.values()) if cost else 0
    if not operations:
        return PricedCode(figures, "an iteration", 1)
    return PricedCode(figures, "2^20 operations", _OPERATIONS / operations)


def _followed_by(pipeline: str, element: str) -> str:
    inner = pipeline.removeprefix("builtin.module(").removesuffix(")")
    return f"builtin.module({','.join(filter(None, (inner, element)))})"


def read_scores(module: ir.Operation) -> dict[str, float]:
    """How many scores of an attention a wave computes in an iteration, by dispatch, once IREE has configured it.

    A score counts once: where workgroups share the channels of the result, each computes all scores again.
    """
    scores: dict[str, float] = {}
    for op in walk_ops(module, _ONLINE_ATTENTION):
        name, waves = _function_of(op)
        config = iree_gpu.LoweringConfigAttr(op.attributes["lowering_config"]).attributes
        maps = [ir.AffineMapAttr(attribute).value for attribute in ir.ArrayAttr(op.attributes["indexing_maps"])]
        query, key, value, *_, sums = ([ir.AffineDimExpr(expr).position for expr in map_.results] for map_ in maps)
        rows = _tile(config, "workgroup", {*query} & {*sums} - {*key})
        keys = _tile(config, "reduction", {*key} & {*value} - {*query})
        (channels,) = {*value} - {*key} - {*query}
        whole = ir.RankedTensorType(op.operands[2].type).shape[value.index(channels)]
        share = (_tile(config, "workgroup", {channels}) or whole) / whole
        scores[name] = rows * keys * share / waves
    return scores


def _tile(config: ir.DictAttr, level: str, loops: set[int]) -> int:
    sizes = [ir.IntegerAttr(size).value for size in ir.ArrayAttr(config[level])]
    return math.prod(sizes[loop] for loop in loops)


def _function_of(op: ir.Operation) -> tuple[str, int]:
    """The name of the function that an op is in, and the waves of its workgroups."""
    function = op
    while function.name != "func.func":
        function = function.parent.operation
    name = ir.StringAttr(function.attributes["sym_name"]).value
    return name, math.prod(function.attributes["translation_info"].workgroup_size) // _WAVE

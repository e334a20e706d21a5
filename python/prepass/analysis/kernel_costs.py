# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a kernel costs beside IREE's own code for the same op, by the static cost model; nothing is run on a GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from iree.compiler import ir

from prepass.amdgpu.cost import Cycles
from prepass.amdgpu.figures import KernelFigures
from prepass.amdgpu.inputs import read_assembly
from prepass.analysis.attention_scores import WAVE, scores_per_iteration
from prepass.compiler.compilation import Hook
from prepass.compiler.kernels import kernel_dispatches
from prepass.errors import PrepassError
from prepass.ir.kernels import ATTENTION, Example, Kernel
from prepass.ir.parse import copy_module
from prepass.simulator.executed import ExecutedWorkgroup, execute_first_workgroup
from prepass.simulator.run import DeviceProgram, compile_program

STOCK, CONFIGURED = "IREE", "IREE, configured by prepass"

_SCORES = 1024
_OPERATIONS = 1 << 20
_TYPES = {"f16": np.float16, "bf16": np.float32, "f32": np.float32, "i1": np.bool_, "i8": np.int8}


@dataclass(frozen=True)
class PricedLoop:
    """The hottest loop of a dispatch in cycles of a CU with one wave on each SIMD.

    Attributes:
      per: What the cycles are for: "1,024 scores" of a wave, "2^20 operations" of a wave's matrix instructions,
        or "an iteration" where there are none.
      iterations: How many iterations of the loop that is.
    """

    figures: KernelFigures
    per: str
    iterations: float

    @property
    def cycles(self) -> Cycles:
        """The cycles of each unit; of the whole code where there is no loop."""
        loop = self.figures.hottest
        cost = loop.cost if loop else self.figures.cost
        return (cost.cu if cost else Cycles()) * self.iterations


@dataclass(frozen=True)
class PricedCode:
    """The code for one op."""

    loop: PricedLoop
    workgroup: ExecutedWorkgroup

    @property
    def figures(self) -> KernelFigures:
        """Those of the whole code."""
        return self.loop.figures


def price_example(kernel: Kernel, example: Example) -> dict[str, PricedCode]:
    """The code for an example: the kernel's under its name, and IREE's own, for attention with and without a config.

    Raises PrepassError when the kernel does not fit the example, or when the example does not compile.
    """
    ours = _compile_kernel(kernel, example)
    programs = {kernel.name: ours, STOCK: _compile(example, example.pipeline, "none")}
    if kernel.kind is ATTENTION:
        configured = _followed_by(example.pipeline, "prepass-configure-attention")
        programs[CONFIGURED] = _compile(example, configured, "none")
    name, inputs = ours.dispatches[0], _zeros(example)
    return {
        way: PricedCode(compiled.price(name), execute_first_workgroup(compiled.program, inputs, name))
        for way, compiled in programs.items()
    }


def price_kernel(kernel: Kernel, example: Example) -> PricedLoop:
    """The hottest loop of a kernel on an example. Raises PrepassError as `price_example`."""
    compiled = _compile_kernel(kernel, example)
    return compiled.price(compiled.dispatches[0])


def price_loop(code: Sequence[KernelFigures], name: str, scores: float | None = None) -> PricedLoop:
    """The hottest loop of one dispatch of a program.

    Args:
      code: That of the program.
      name: The dispatch's name.
      scores: For attention, those that a wave computes in an iteration.

    Raises PrepassError when the program has no such dispatch.
    """
    figures = next((figures for figures in code if figures.name == name), None)
    if figures is None:
        raise PrepassError(f"the code has no '{name}', but {', '.join(other.name for other in code) or 'nothing'}")
    if scores is not None:
        return PricedLoop(figures, f"{_SCORES:,} scores", _SCORES / scores)
    cost = figures.hottest.cost if figures.hottest else figures.cost
    operations = sum(cost.flops.values()) if cost else 0
    if not operations:
        return PricedLoop(figures, "an iteration", 1)
    return PricedLoop(figures, "2^20 operations", _OPERATIONS / operations)


@dataclass(frozen=True)
class _Compiled:
    """A program, the dispatches that a kernel computes, and the scores of an iteration by dispatch."""

    program: DeviceProgram
    dispatches: list[str]
    scores: dict[str, float]

    def price(self, name: str) -> PricedLoop:
        """The hottest loop of a dispatch."""
        code = [figures for text in self.program.assembly for figures in read_assembly(text)]
        return price_loop(code, name, self.scores.get(name))


def _compile_kernel(kernel: Kernel, example: Example) -> _Compiled:
    compiled = _compile(example, example.pipeline, kernel.name)
    if not compiled.dispatches:
        raise PrepassError(f"kernel '{kernel.name}' does not fit its example {example.name}")
    if kernel.kind is ATTENTION:
        compiled.scores[compiled.dispatches[0]] = _scores_per_iteration(kernel)
    return compiled


def _compile(example: Example, pipeline: str, kernels: str) -> _Compiled:
    dispatches: list[str] = []
    scores: dict[str, float] = {}
    hooks: dict[str, Hook] = {
        "executable-sources": lambda module: dispatches.extend(kernel_dispatches(module)),
        "executable-configurations": lambda module: scores.update(scores_per_iteration(module)),
    }
    program = compile_program(example.source, pipeline=pipeline or None, kernels=kernels, hooks=hooks)
    return _Compiled(program, dispatches, scores)


def _scores_per_iteration(kernel: Kernel) -> float:
    """Those of a wave: the queries of a workgroup by the keys of an iteration, for all its waves."""
    facts = kernel.description
    return math.prod(facts.tile.values()) * math.prod(facts.step.values()) * WAVE / facts.workgroup_size


def _zeros(example: Example) -> list[np.ndarray]:
    """Arguments for the function of an example."""
    module = copy_module(example.source)
    (function,) = module.body.operations
    with module.context:
        types = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs
        shaped = [ir.RankedTensorType(type_) for type_ in types]
        return [np.zeros(type_.shape, _TYPES[str(type_.element_type)]) for type_ in shaped]


def _followed_by(pipeline: str, element: str) -> str:
    inner = pipeline.removeprefix("builtin.module(").removesuffix(")")
    return f"builtin.module({','.join(filter(None, (inner, element)))})"

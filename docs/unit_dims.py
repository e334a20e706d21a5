# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measure what `prepass-fold-unit-dims` does to linear layers, and write docs/unit-dims.md.

    python docs/unit_dims.py --output docs/unit-dims.md

Dispatches and kernels are of gfx942, and only compiled. Times are of this machine's CPU, each form and the one that it
is compared with in turn, the least of many runs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np
from iree.compiler import ir

import prepass
from prepass.amdgpu.inputs import compile_to_assembly
from prepass.checking.statistics import ProgramStatistics
from prepass.ir.match import walk_ops

PIPELINE = "builtin.module(prepass-fold-unit-dims,util.func(canonicalize,cse))"
ALWAYS = PIPELINE.replace("-dims", "-dims{matrices=always}")
GFX942 = ("--iree-hal-target-device=hip", "--iree-rocm-target=gfx942")
CPU = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)
LEVELS = ("O0", "O3")
DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
ROUNDS = 40


@dataclass(frozen=True)
class Layer:
    """A linear layer with a bias, in the torch dialect."""

    batch: int
    tokens: int
    channels: int
    outputs: int
    element: str = "f16"
    gelu: bool = False

    @property
    def shape(self) -> str:
        return f"{self.batch}×{self.tokens}×{self.channels} → {self.outputs}"

    def module(self) -> str:
        """The module."""

        def tensor(*sizes: int) -> str:
            return f"!torch.vtensor<[{','.join(map(str, sizes))}],{self.element}>"

        x, y = tensor(self.batch, self.tokens, self.channels), tensor(self.batch, self.tokens, self.outputs)
        w, b = tensor(self.outputs, self.channels), tensor(self.outputs)
        activation = (
            f'  %kind = torch.constant.str "none"\n  %1 = torch.aten.gelu %0, %kind : {y}, !torch.str -> {y}\n'
            if self.gelu
            else ""
        )
        return (
            f"func.func @main(%x: {x}, %w: {w}, %b: {b}) -> {y} {{\n"
            f"  %0 = torch.aten.linear %x, %w, %b : {x}, {w}, {b} -> {y}\n{activation}"
            f"  return %{int(self.gelu)} : {y}\n}}\n"
        )

    def inputs(self) -> list[np.ndarray]:
        """Arguments of `main`."""
        rng = np.random.default_rng(0)
        shapes = ((self.batch, self.tokens, self.channels), (self.outputs, self.channels), (self.outputs,))
        return [rng.normal(0, 1, shape).astype(DTYPES[self.element]) for shape in shapes]


FUSION = (
    Layer(1, 1024, 640, 640),
    Layer(2, 1024, 640, 640),
    Layer(1, 1024, 640, 2560, gelu=True),
    Layer(2, 1024, 640, 2560, gelu=True),
    Layer(1, 1, 1280, 1280),
    Layer(2, 1, 1280, 1280),
)
ROWS = (
    Layer(1, 77, 2048, 640),
    Layer(1, 197, 768, 768),
    Layer(1, 257, 1024, 1024),
    Layer(1, 577, 1024, 1024),
    Layer(1, 1500, 1280, 1280),
    Layer(1, 4096, 640, 640),
)
ON_CPU = (
    Layer(1, 1, 2048, 2048, "f32"),
    Layer(1, 197, 768, 768, "f32"),
    Layer(1, 197, 768, 768, "bf16"),
    Layer(1, 1024, 640, 640, "f32"),
)


def dispatches(layer: Layer, pipeline: str | None, level: str) -> int:
    """How many dispatches a layer takes on gfx942."""
    statistics = ProgramStatistics()
    flags = (*GFX942, f"--iree-opt-level={level}")
    prepass.compile(layer.module(), pipeline=pipeline, flags=flags, hooks={"flow": statistics.hooks["flow"]})
    return statistics.dispatches + statistics.initializer_dispatches


def cpu_ratio(layer: Layer, pipeline: str, level: str) -> str:
    """The time of a layer with a pipeline by that of stock IREE, or that nothing differs."""
    flags = (*CPU, f"--iree-opt-level={level}")
    if kernels(layer, pipeline, flags) == kernels(layer, None, flags):
        return "the same kernels"
    calls = [prepass.load(prepass.compile(layer.module(), pipeline=p, flags=flags)) for p in (None, pipeline)]
    best, inputs = [float("inf")] * 2, layer.inputs()
    for _ in range(ROUNDS):
        for number, call in enumerate(calls):
            start = time.perf_counter()
            call(*inputs)
            best[number] = min(best[number], time.perf_counter() - start)
    return f"{best[1] / best[0]:.2f}"


def kernels(layer: Layer, pipeline: str | None, flags: Sequence[str]) -> list[str]:
    """The text of the executables of a layer before they are lowered."""
    found: list[str] = []

    def flow(module: ir.Operation) -> None:
        found.extend(str(op) for op in walk_ops(module, "flow.executable"))

    prepass.compile(layer.module(), pipeline=pipeline, flags=flags, hooks={"flow": flow})
    return sorted(found)


def table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def fusion_table() -> str:
    """Dispatches of layers at batch 1 and 2, those of initializers included."""
    rows = []
    for layer in FUSION:
        counts = [dispatches(layer, pipeline, level) for level in LEVELS for pipeline in (None, PIPELINE)]
        rows.append([layer.shape, "GELU" if layer.gelu else "", *counts])
    return table(["layer", "", *(f"{level}, {form}" for level in LEVELS for form in ("stock", "folded"))], rows)


def rows_table() -> str:
    """The kernels of layers by their number of rows."""
    rows = []
    for layer in ROWS:
        (kernel,) = compile_to_assembly(layer.module(), pipeline=PIPELINE, flags=GFX942)
        rows.append([layer.shape, kernel.counts.mfmas, kernel.metadata.vgprs, kernel.spills])
    return table(["layer", "MFMA", "VGPR", "spilled"], rows)


def cpu_table() -> str:
    """Times on this machine, by those of stock IREE."""
    rows = []
    for layer in ON_CPU:
        ratios = [cpu_ratio(layer, pipeline, level) for level in LEVELS for pipeline in (PIPELINE, ALWAYS)]
        rows.append([layer.shape, layer.element, *ratios])
    forms = ("default", "`matrices=always`")
    return table(["layer", "type", *(f"{level}, {form}" for level in LEVELS for form in forms)], rows)


_PAGE = """\
# Batch 1, and rows that fill no tile

Generated by docs/unit_dims.py:

```
python docs/unit_dims.py --output docs/unit-dims.md
```

## Why batch 1 did not fuse

torch writes a linear layer of batch 2 as one `linalg.matmul` of all rows, and of batch 1 as a `linalg.batch_matmul` of
one matrix, for which it copies the weight into a tensor with a batch dim. Below O2 IREE drops unit dims from
elementwise ops, and keeps named contractions as they are. A reshape then stands between the product and its cast, bias
and activation, and a dispatch is formed along each side of it; the copied weight is transposed in a dispatch too, or in
an initializer. From O2 on IREE makes generics of all contractions first.

`prepass-fold-unit-dims` takes the unit loops from every linalg op, from attention, slices and concatenations, and reads
each operand from before the reshapes on its way. What is left of those stands at the edges: arguments, results, and
convolutions, which keep their batch. Dispatches of a layer with a bias, and with GELU, initializers included, gfx942:

{fusion}

A lowering config names loops, so the pass leaves alone what carries one; `prepass-configure-attention` attaches its
configs later, when no loop can go any more.

## Rows that are no multiple of 16

A product needs no padding for its rows: IREE masks the last tile and keeps the matrix instructions. What loses them is
a dispatch of several products, as IREE's own horizontal fusion makes it, and attention whose *keys* are no multiple of
16. For that `prepass-pad-attention-keys` pads what the keys and values are computed from. Kernels of a layer with a
bias, gfx942, static counts in the code:

{rows}

## On llvm-cpu

At O0 a batch of one matrix can be far faster there than the matrix, in bf16 above all: IREE transposes the copied
weight in memory, but reads that of the matrix transposed in place. So products of matrices keep their batch where the
target is llvm-cpu, unless `matrices=always`, and nothing changes; a single row gains, and is folded. Time by that of
stock IREE, below 1 is faster, on {machine}:

{cpu}
"""


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--machine", default="two cores", help="what the page calls this machine")
    arguments = parser.parse_args()
    page = _PAGE.format(fusion=fusion_table(), rows=rows_table(), cpu=cpu_table(), machine=arguments.machine)
    arguments.output.write_text(page)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stock IREE against prepass on the self attention of the SDXL UNet, as torch exports it.

Compiles both for this machine's CPU, checks them against numpy, times them side by side, and compiles the full-size
attention for gfx942. Run it with `tools/demo`.
"""

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import prepass
from prepass.checking.numerics import compare
from prepass.checking.statistics import ProgramStatistics
from prepass.standard_error import captured_stderr

PIPELINE = prepass.Pipeline().raise_attention()
LLVM_CPU = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-opt-level=O3",
)
GFX942 = ("--iree-hal-target-device=hip", "--iree-rocm-target=gfx942")
BATCH, HEADS, CHANNELS = 2, 10, 64
TOKENS, FULL_TOKENS = 1024, 4096
ROUNDS = 7


def attention_module(tokens: int, element: str) -> str:
    """Softmax attention between two batch matmuls; the softmax sees batch and heads apart, the matmuls together."""
    merged, split = BATCH * HEADS, f"{BATCH}x{HEADS}"
    query = f"tensor<{merged}x{tokens}x{CHANNELS}x{element}>"
    key = f"tensor<{merged}x{CHANNELS}x{tokens}x{element}>"
    value = f"tensor<{split}x{tokens}x{CHANNELS}x{element}>"
    scores = f"tensor<{merged}x{tokens}x{tokens}x{element}>"
    split_scores = f"tensor<{split}x{tokens}x{tokens}x{element}>"
    return f"""
func.func @main(%q: {query}, %k: {key}, %v: {value}) -> {query} {{
  %zero = arith.constant 0.0 : {element}
  %e0 = tensor.empty() : {scores}
  %f0 = linalg.fill ins(%zero : {element}) outs(%e0 : {scores}) -> {scores}
  %s = linalg.batch_matmul ins(%q, %k : {query}, {key}) outs(%f0 : {scores}) -> {scores}
  %x = tensor.expand_shape %s [[0, 1], [2], [3]] output_shape [{BATCH}, {HEADS}, {tokens}, {tokens}]
      : {scores} into {split_scores}
  %e1 = tensor.empty() : {split_scores}
  %p = linalg.softmax dimension(3) ins(%x : {split_scores}) outs(%e1 : {split_scores}) -> {split_scores}
  %c = tensor.collapse_shape %p [[0, 1], [2], [3]] : {split_scores} into {scores}
  %w = tensor.collapse_shape %v [[0, 1], [2], [3]] : {value} into {query}
  %e2 = tensor.empty() : {query}
  %f2 = linalg.fill ins(%zero : {element}) outs(%e2 : {query}) -> {query}
  %o = linalg.batch_matmul ins(%c, %w : {scores}, {query}) outs(%f2 : {query}) -> {query}
  return %o : {query}
}}
"""


def attention_reference(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The same in numpy, in float64."""
    scores = q.astype(np.float64) @ k.astype(np.float64)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights @ v.reshape(q.shape).astype(np.float64)


@dataclass
class Program:
    """One way of compiling the module; `call` is None when it does not compile."""

    statistics: ProgramStatistics
    call: Callable[..., tuple[np.ndarray, ...]] | None
    error: float = 0.0
    seconds: list[float] = field(default_factory=list)

    def cells(self) -> list[str]:
        """Dispatches, transient megabytes, median milliseconds, largest error."""
        if self.call is None:
            return ["does not compile", "-", "-", "-"]
        megabytes = (self.statistics.transient_bytes or 0) / 1e6
        milliseconds = statistics.median(self.seconds) * 1e3
        return [str(self.statistics.dispatches), f"{megabytes:.1f}", f"{milliseconds:.0f}", f"{self.error:.1e}"]


def try_compile(
    source: str, pipeline: prepass.Pipeline | None, flags: tuple[str, ...], counts: ProgramStatistics
) -> bytes | None:
    try:
        # A compiler that fails prints what its linker said, and the table says that it failed.
        with captured_stderr():
            return prepass.compile(source, pipeline=pipeline, flags=flags, hooks=counts.hooks)
    except prepass.CompileError:
        return None


def build(source: str, pipeline: prepass.Pipeline | None) -> Program:
    counts = ProgramStatistics()
    vmfb = try_compile(source, pipeline, LLVM_CPU, counts)
    return Program(counts, prepass.load(vmfb) if vmfb else None)


def measure(element: str, dtype: type, progress: Progress) -> tuple[Program, Program]:
    """Both programs, checked and timed in turn, so that a change of the machine's speed hits both."""
    task = progress.add_task(f"{element}: compiling and running", total=ROUNDS + 2)
    source = attention_module(TOKENS, element)
    stock, ours = build(source, None), build(source, PIPELINE)
    programs = [program for program in (stock, ours) if program.call]
    progress.advance(task)
    rng = np.random.default_rng(0)
    shapes = (
        (BATCH * HEADS, TOKENS, CHANNELS),
        (BATCH * HEADS, CHANNELS, TOKENS),
        (BATCH, HEADS, TOKENS, CHANNELS),
    )
    inputs = [(0.5 * rng.standard_normal(shape)).astype(dtype) for shape in shapes]
    reference = attention_reference(*inputs)
    for program in programs:
        program.error = compare(program.call(*inputs), [reference]).largest
    progress.advance(task)
    for _ in range(ROUNDS):
        for program in programs:
            started = time.perf_counter()
            program.call(*inputs)
            program.seconds.append(time.perf_counter() - started)
        progress.advance(task)
    return stock, ours


def rows(element: str, stock: Program, ours: Program) -> list[tuple[str, ...]]:
    """One table row for each figure."""
    memory = time_ratio = ""
    if stock.call and ours.call:
        speedups = [a / b for a, b in zip(stock.seconds, ours.seconds, strict=True)]
        time_ratio = f"{statistics.median(speedups):.1f}x"
        if ours.statistics.transient_bytes:
            memory = f"{(stock.statistics.transient_bytes or 0) / ours.statistics.transient_bytes:.0f}x"
        else:
            memory = "none left"
    names = ("dispatches", "transient memory, MB", "time, ms (median)", "largest error against numpy")
    return list(
        zip((element, "", "", ""), names, stock.cells(), ours.cells(), ("", memory, time_ratio, ""), strict=True)
    )


def compile_for_gpu() -> list[tuple[str, ...]]:
    """What becomes of the full-size attention on gfx942, which is compiled and not run."""
    outcome: list[str] = []
    for pipeline in (None, PIPELINE):
        counts = ProgramStatistics()
        source = attention_module(FULL_TOKENS, "f16")
        if try_compile(source, pipeline, GFX942, counts):
            outcome.append(f"compiles, {counts.dispatches} dispatch{'es' if counts.dispatches > 1 else ''}")
        else:
            outcome.append("does not compile")
    return [("f16", f"gfx942, {FULL_TOKENS} tokens (not run)", *outcome, "")]


def main() -> None:
    # A pipe has no width; the table should not be cut to the default.
    console = Console(width=None if sys.stdout.isatty() else 110)
    quiet = not sys.stdout.isatty()
    table = Table(
        "type",
        "",
        "stock",
        "prepass",
        "ratio",
        title=f"Attention {BATCH}x{HEADS}x{TOKENS}x{CHANNELS}, llvm-cpu at O3, both in this process in turn",
    )
    with Progress(console=console, transient=True, disable=quiet) as progress:
        for element, dtype in (("f32", np.float32), ("f16", np.float16)):
            for row in rows(element, *measure(element, dtype, progress)):
                table.add_row(*row)
            table.add_section()
        task = progress.add_task("f16: compiling for gfx942", total=None)
        for row in compile_for_gpu():
            table.add_row(*row)
        progress.remove_task(task)
    console.print(table)


if __name__ == "__main__":
    main()

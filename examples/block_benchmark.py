# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A transformer block and a resnet block of SDXL on this CPU: stock IREE, prepass and torch, in turns.

    python examples/block_benchmark.py                     # 1280 channels, 32x32, f32, the lowest level of the UNet
    python examples/block_benchmark.py --channels 320 --side 64 --level O0

All three run in one process with as many threads as torch has, round by round, so that a change of the machine's speed
hits all alike; ratios are medians over the rounds. Weights are external parameters, as programs are deployed. It needs
`pip install 'prepass[models]'`, and an idle machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from diffusers.models.attention_processor import AttnProcessor
from diffusers.models.resnet import ResnetBlock2D
from diffusers.models.transformers.transformer_2d import Transformer2DModel
from iree.turbine import aot
from models.weights import fill_parameters, untouched_parameters, write_archive
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import prepass
from prepass.checking.numerics import compare
from prepass.checking.statistics import ProgramStatistics
from prepass.ir.targets.devices import compile_flags

HEAD, TEXT, TOKENS = 64, 2048, 77
Call = Callable[[], np.ndarray]


class Block(torch.nn.Module):
    """A resnet block with a time embedding, and a transformer of one layer behind it, as in the UNet of SDXL."""

    def __init__(self, channels: int, attention: str, part: str) -> None:
        super().__init__()
        self.part = part
        self.resnet = ResnetBlock2D(in_channels=channels, temb_channels=1280, eps=1e-5)
        self.transformer = Transformer2DModel(
            channels // HEAD, HEAD, channels, num_layers=1, cross_attention_dim=TEXT, use_linear_projection=True
        )
        if attention == "eager":
            for block in self.transformer.transformer_blocks:
                block.attn1.set_processor(AttnProcessor())
                block.attn2.set_processor(AttnProcessor())

    def forward(self, image: torch.Tensor, embedding: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        if self.part != "transformer":
            image = self.resnet(image, embedding)
        if self.part == "resnet":
            return image
        return self.transformer(image, encoder_hidden_states=text, return_dict=False)[0]


def make_block(channels: int, side: int, attention: str, part: str) -> tuple[Block, tuple[torch.Tensor, ...]]:
    """The block with generated weights, and inputs."""
    with untouched_parameters():
        block = Block(channels, attention, part).eval().requires_grad_(False)
    fill_parameters(block.named_parameters())
    torch.manual_seed(0)
    return block, (torch.randn(1, channels, side, side), torch.randn(1, 1280), torch.randn(1, TOKENS, TEXT))


@dataclass
class Times:
    """Seconds of each round, on the clock and of all threads together, which change less with a machine's load."""

    clock: list[float] = field(default_factory=list)
    threads: list[float] = field(default_factory=list)


def time_in_turns(calls: dict[str, Call], rounds: int, progress: Progress) -> dict[str, Times]:
    """Times of each call in each round, after one that is not counted."""
    task = progress.add_task("running", total=rounds + 1)
    times = {name: Times() for name in calls}
    for number in range(rounds + 1):
        for name, call in calls.items():
            clock, threads = time.perf_counter(), time.process_time()
            call()
            if number:
                times[name].clock.append(time.perf_counter() - clock)
                times[name].threads.append(time.process_time() - threads)
        progress.advance(task)
    return times


def median_ratio(slower: Times, faster: Times) -> float:
    """How many times longer the first took on the clock, in the median of the rounds."""
    return statistics.median(a / b for a, b in zip(slower.clock, faster.clock, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--channels", type=int, default=1280, help="a multiple of 64 (default: 1280)")
    parser.add_argument("--side", type=int, default=32, help="of the image (default: 32)")
    parser.add_argument("--attention", choices=("sdpa", "eager"), default="sdpa", help="torch's operator, or spelt out")
    parser.add_argument("--part", choices=("both", "resnet", "transformer"), default="both", help="(default: both)")
    parser.add_argument("--level", help="--iree-opt-level of both programs (default: IREE's own)")
    parser.add_argument("--preset", default="prepass-sdxl", help="(default: prepass-sdxl)")
    parser.add_argument("--rounds", type=int, default=7, help="(default: 7)")
    arguments = parser.parse_args()
    block, inputs = make_block(arguments.channels, arguments.side, arguments.attention, arguments.part)
    flags = [*compile_flags("local-task"), *([f"--iree-opt-level={arguments.level}"] if arguments.level else [])]
    arrays = [tensor.numpy() for tensor in inputs]
    aot.externalize_module_parameters(block, external_scope="model")
    calls: dict[str, Call] = {}
    counts = {"stock": ProgramStatistics(), "prepass": ProgramStatistics()}
    console = Console(width=None if sys.stdout.isatty() else 100)
    quiet = not sys.stdout.isatty()
    with TemporaryDirectory() as folder, Progress(console=console, transient=True, disable=quiet) as progress:
        weights = Path(folder, "block.irpa")
        write_archive(block, "", weights)
        for name, found in counts.items():
            task = progress.add_task(f"compiling: {name}", total=None)
            preset = arguments.preset if name == "prepass" else None
            vmfb = prepass.turbine.compile(block, inputs, preset=preset, flags=flags, hooks=found.hooks)
            program = prepass.load(vmfb, parameters={"model": weights})
            calls[name] = lambda program=program: program(*arrays)[0]
            progress.remove_task(task)
        calls["torch"] = lambda: block(*inputs).numpy()
        expected = calls["torch"]()
        errors = {name: compare([call()], [expected]).largest / np.abs(expected).max() for name, call in calls.items()}
        times = time_in_turns(calls, arguments.rounds, progress)
    console.print(report(times, counts, errors))
    print(f"stock / prepass: {median_ratio(times['stock'], times['prepass']):.2f}")
    print(f"prepass / torch: {median_ratio(times['prepass'], times['torch']):.2f}")


def report(times: dict[str, Times], counts: dict[str, ProgramStatistics], errors: dict[str, float]) -> Table:
    """A row for each of the three; medians over the rounds."""
    columns = ("", "ms", "ms of all threads", "dispatches", "transient MB", "relative error")
    table = Table(*columns, title=f"{torch.get_num_threads()} threads of torch, {os.cpu_count()} CPUs")
    for name, found in times.items():
        static = ("", "")
        if name in counts:
            static = (str(counts[name].dispatches), f"{(counts[name].transient_bytes or 0) / 1e6:.1f}")
        measured = (f"{statistics.median(seconds) * 1e3:.0f}" for seconds in (found.clock, found.threads))
        table.add_row(name, *measured, *static, f"{errors[name]:.1e}")
    return table


if __name__ == "__main__":
    # torch warns about its own use of itself.
    warnings.filterwarnings("ignore", category=FutureWarning, module="copyreg")
    main()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compare convolutions of each kind with and without the preset for them, and write the page docs/convolution-kinds.md.

    python docs/convolution_report.py --output docs/convolution-kinds.md
    python docs/convolution_report.py --part gfx942 --output docs/convolution-kinds.md

For gfx942 the figures are static: dispatches, and loads and matrix instructions of the kernel that does the work. On
this machine's CPU the programs run in turns, and the ratio is that of their least times; it is to be idle. `--part`
and `--only` choose what is measured. Other rows of a page that exists stay as they are, and each row is written once it
is measured, so that nothing is lost when the program is stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import rich.progress
from rich.console import Console

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import prepass  # noqa: E402
from prepass.amdgpu.figures import KernelFigures  # noqa: E402
from prepass.amdgpu.inputs import compile_to_assembly  # noqa: E402
from prepass.checking.statistics import ProgramStatistics  # noqa: E402
from prepass.compiler.compilation import Hook  # noqa: E402
from tests.convolution_cases import DEPTHWISE, GROUPED, ConvCase  # noqa: E402

PRESET = "prepass-sdxl"
GFX942 = ("--iree-hal-target-device=hip", "--iree-rocm-target=gfx942")
CPU = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)
WIDE = (("c", 320), ("f", 320), ("h", 64), ("w", 64))
MIDDLE = (("c", 128), ("f", 128), ("h", 32), ("w", 32))
ONE = {"input": "ncw", "filter": "fcw", "output": "nfw"}
THREE = {"input": "ncdhw", "filter": "fcdhw", "output": "nfdhw"}


def _sized(case: ConvCase, sizes: tuple[tuple[str, int], ...], **more: int) -> ConvCase:
    return replace(case, sizes=tuple({**dict(sizes), **more}.items()), constant=True)


# Of each kind: how it is called, and the convolution in f32.
KINDS: tuple[ConvCase, ...] = (
    _sized(ConvCase("3x3, 2x320x64x64"), WIDE),
    _sized(ConvCase("3x3, 2x128x32x32"), MIDDLE),
    _sized(ConvCase("3x3 stride 2", stride=2), MIDDLE),
    _sized(ConvCase("3x3 dilation 2", dilation=2, low=2, high=2), MIDDLE),
    _sized(ConvCase("1x1", kernel=1, low=0, high=0), MIDDLE),
    _sized(ConvCase("1x1 stride 2", kernel=1, stride=2, low=0, high=0), MIDDLE),
    _sized(ConvCase("bias, SiLU", after=("bias", "silu")), MIDDLE),
    _sized(ConvCase("GroupNorm, SiLU, 3x3, bias", before=("groupnorm", "silu"), after=("bias",)), MIDDLE),
    _sized(ConvCase("1-D, kernel 3", **ONE), (("c", 384), ("f", 384), ("w", 1500))),
    _sized(ConvCase("3-D, 3x3x3", **THREE), (("c", 32), ("f", 32), ("d", 8), ("h", 16), ("w", 16))),
    _sized(ConvCase("grouped, 4 groups", **GROUPED), (("g", 4), ("c", 32), ("f", 32), ("h", 32), ("w", 32))),
    _sized(ConvCase("depthwise", **DEPTHWISE), (("c", 128), ("h", 32), ("w", 32))),
    _sized(ConvCase("stem, 3 channels"), MIDDLE, c=3),
    _sized(ConvCase("stem, 4 channels"), MIDDLE, c=4),
    _sized(ConvCase("out, 4 channels"), MIDDLE, f=4),
    _sized(
        ConvCase("patches, 16x16", kernel=16, stride=16, low=0, high=0), (("c", 3), ("f", 256), ("h", 224), ("w", 224))
    ),
    _sized(
        ConvCase("transposed, 4x4 stride 2", kernel=4, transposed=2, low=2, high=2),
        (("c", 64), ("f", 64), ("h", 32), ("w", 32)),
    ),
    _sized(
        ConvCase("transposed, 2x2 stride 2", kernel=2, transposed=2, low=1, high=1),
        (("c", 64), ("f", 64), ("h", 32), ("w", 32)),
    ),
    _sized(ConvCase("int8 to int32, zero points", element="i8", accumulator="i32", zero_points=(3, 0)), MIDDLE),
)


@dataclass(frozen=True)
class Static:
    """What a program is for gfx942: dispatches, and figures of the kernel with the most matrix instructions."""

    dispatches: int
    mfmas: int
    widths: str

    def __str__(self) -> str:
        return f"{self.dispatches} | {self.mfmas or 'none'} | {self.widths}"


def static(case: ConvCase, preset: str | None) -> Static | str:
    """The figures of a case in f16, or why there are none."""
    if case.element == "f32":
        case = replace(case, element="f16")
    statistics = ProgramStatistics()
    try:
        _compile_until(case, preset, "flow", statistics.hooks["flow"])
        kernels = compile_to_assembly(case.module(), preset=preset, flags=GFX942)
    except prepass.CompileError:
        return "does not compile | |"
    main = [kernel for kernel in kernels if "_initializer" not in kernel.name] or kernels
    kernel = max(main, key=_work)
    counts = kernel.hottest.counts if kernel.hottest else kernel.counts
    loads = {width: counts.accesses_of("load", "global", "buffer", "flat", width=width) for width in (16, 8, 4, 2, 1)}
    widths = ", ".join(f"{count}×{width} B" for width, count in loads.items() if count)
    return Static(statistics.dispatches, kernel.counts.mfmas, widths or "none")


def _work(kernel: KernelFigures) -> tuple[bool, bool, int]:
    return kernel.counts.mfmas > 0, "conv" in kernel.name or "matmul" in kernel.name, kernel.counts.total


class _StopError(Exception):
    """Compilation has gone far enough."""


def _compile_until(case: ConvCase, preset: str | None, phase: str, hook: Hook) -> None:
    def last(module: object) -> None:
        hook(module)
        raise _StopError

    with contextlib.suppress(_StopError):
        prepass.compile(case.module(), preset=preset, flags=GFX942, hooks={phase: last})


def times(calls: Sequence[Callable[[], object]], seconds: float) -> list[float]:
    """The least time of each call, all called in turns."""
    least = [float("inf")] * len(calls)
    end = time.monotonic() + seconds
    rounds = 0
    while rounds < 5 or time.monotonic() < end:
        for number, call in enumerate(calls):
            start = time.perf_counter()
            call()
            least[number] = min(least[number], time.perf_counter() - start)
        rounds += 1
    return least


def on_cpu(case: ConvCase, seconds: float) -> str:
    """The times of a case without and with the preset, and their ratio; checks that results agree."""
    inputs = case.inputs()
    programs = [prepass.load(prepass.compile(case.module(), preset=p, flags=CPU)) for p in (None, PRESET)]
    (stock,), (ours,) = (program(*inputs) for program in programs)
    if not np.allclose(stock, ours, rtol=1e-3, atol=1e-3):
        raise SystemExit(f"{case.name}: results differ by {np.abs(stock - ours).max()}")
    before, after = times([lambda program=program: program(*inputs) for program in programs], seconds)
    return f"{before * 1e3:.2f} | {after * 1e3:.2f} | {before / after:.2f}"


GFX942_PART, CPU_PART = "gfx942", "llvm-cpu"
INTRODUCTION = """\
# Convolutions, kind by kind

Generated by docs/convolution_report.py: one row a kind, each convolution alone in a program, NCHW as torch exports it,
with constant filters. *stock* is IREE at its defaults, without preprocessing; *preset* is
`--prepass-preset=prepass-sdxl`.
"""
HEADS = {
    GFX942_PART: """\
Static figures in f16, nothing was run: dispatches, and of the kernel that does the work the matrix instructions in its
code and the loads from memory in its innermost loop, or in all of it where it has none. An isolated convolution pays
for the transpose of its input; between convolutions there is none.

| kind | stock: dispatches | MFMA | loads | preset: dispatches | MFMA | loads |
| --- | --- | --- | --- | --- | --- | --- |
""",
    CPU_PART: """\
f32 on this machine, {cpus} threads: least times in ms of programs that ran in turns, and their ratio. Where other
programs have most of the machine, times are long and ratios rough.

| kind | stock, ms | preset, ms | ratio |
| --- | --- | --- | --- |
""",
}


def measure(part: str, kind: ConvCase, seconds: float) -> str:
    """A row of a part, without the kind."""
    return f"{static(kind, None)} | {static(kind, PRESET)}" if part == GFX942_PART else on_cpu(kind, seconds)


def read_parts(page: str) -> dict[str, str]:
    """The parts of a page by their headings."""
    _, *rest = re.split(r"^## (.+)\n\n", page, flags=re.MULTILINE)
    return dict(zip(rest[::2], rest[1::2], strict=True))


def write_part(part: str, before: str, measured: dict[str, str]) -> str:
    """A part with new rows; the others are those it had. Its head is the old one where some rows are."""
    old = dict(re.findall(r"^\| (.+?) \| (.+) \|$", before.partition("| --- |")[2], re.MULTILINE))
    rows = {kind.name: measured.get(kind.name, old.get(kind.name)) for kind in KINDS}
    head = HEADS[part].format(cpus=os.cpu_count())
    if any(kind not in measured for kind, row in rows.items() if row):
        head = before[: before.index("\n| --- |")].rpartition("\n")[0] + "\n" + head[head.index("| kind |") :]
    return head + "".join(f"| {kind} | {row} |\n" for kind, row in rows.items() if row)


def report(before: str, parts: Sequence[str], kinds: Sequence[ConvCase], seconds: float) -> Iterator[str]:
    """The page, with what is measured in place of what `before` says of it, after each row."""
    written = read_parts(before)
    for part in parts:
        old, measured = written.get(part, ""), {}
        for number, kind in enumerate(track(kinds, part)):
            if not sys.stderr.isatty():
                print(f"{part}, {number + 1} of {len(kinds)}: {kind.name}", file=sys.stderr)
            measured[kind.name] = measure(part, kind, seconds)
            written[part] = write_part(part, old, measured)
            yield INTRODUCTION + "".join(
                f"\n## {name}\n\n{written[name].rstrip()}\n" for name in HEADS if name in written
            )


def track(kinds: Sequence[ConvCase], part: str) -> Iterable[ConvCase]:
    """The kinds, with a bar of progress on a terminal."""
    console = Console(stderr=True)
    return rich.progress.track(kinds, description=part, console=console, disable=not console.is_terminal)


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="the page to write; standard output by default")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long each kind runs on the CPU")
    parser.add_argument("--part", choices=list(HEADS), help="the part to measure; both by default")
    parser.add_argument("--only", nargs="*", help="names of kinds")
    arguments = parser.parse_args()
    unknown = set(arguments.only or ()) - {kind.name for kind in KINDS}
    if unknown:
        parser.error(f"no such kind: {', '.join(sorted(unknown))}")
    kinds = [kind for kind in KINDS if not arguments.only or kind.name in arguments.only]
    parts = [arguments.part] if arguments.part else list(HEADS)
    output: Path | None = arguments.output
    before, page = output.read_text() if output and output.exists() else "", ""
    for page in report(before, parts, kinds, arguments.seconds):
        if output is not None:
            beside = output.with_suffix(".part")
            beside.write_text(page)
            beside.replace(output)
    if output is None:
        print(page, end="")


if __name__ == "__main__":
    main()

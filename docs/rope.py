# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compare rotary embeddings for gfx942, stock against prepass, in every spelling.

    python docs/rope.py --output docs/rope.md

The spellings are those of tests/rope_forms.py. Nothing is run: the figures are counts in the
assembly. It takes some minutes.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from prepass.amdgpu.figures import KernelFigures
from prepass.amdgpu.inputs import compile_to_assembly
from prepass.amdgpu.opcodes import Kind
from prepass.checking.statistics import ProgramStatistics

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.rope_forms import FORMS, begin  # noqa: E402
from tests.test_fuse_query_rope import rotated_attention  # noqa: E402

FLAGS = ("--iree-hal-target-device=hip", "--iree-rocm-target=gfx942")
HEADS, TOKENS, CHANNELS, ELEMENT = 24, 4608, 128, "bf16"
# Fewer, as the result is computed with numpy too; the code is the same.
ATTENTION_HEADS, ATTENTION_TOKENS = 4, 1024
ROTATE = "builtin.module(prepass-canonicalize-rope,canonicalize,cse)"
APART = "builtin.module(prepass-fuse-query-rope{fuse=never},prepass-canonicalize-rope,canonicalize,cse)"
FUSED = "builtin.module(prepass-fuse-query-rope,prepass-canonicalize-rope,canonicalize,cse)"
ATTENTION_FORMS = (
    "rotate_half",
    "stacked_pairs",
    "joined_tables",
    "complex_numbers",
    "gathered_pairs",
    "first_channels",
    "first_neighbours",
)

PAGE = """\
# Rotary embeddings

`prepass-canonicalize-rope` and `prepass-fuse-query-rope` on gfx942, written by `python docs/rope.py`.
All figures are static counts in the assembly of {version}; nothing here has run on an MI300.

## A rotation alone

{heads}×{tokens}×{channels}, {element}, each form as models write it. A cell is stock → prepass. Loads are the vector
memory loads of all kernels, by bytes a lane; instructions are those of all kernels together. A lane of prepass's
rotation computes 8 to 64 channels, one of stock's 4, so the last column has its instructions by channel that it
writes. Tables that the program does not have, or not in rows, are a dispatch of their own, once for all rotations
that share them.

| form | level | dispatches | loads, stock | loads, prepass | instructions | a channel |
| --- | --- | --- | --- | --- | --- | --- |
{rotations}

What the forms are:

{forms}

## In attention

{attention_heads} heads, {attention_tokens} queries and keys, {channels} channels, {element}, V as (n, k2), with O3.
*Apart* has both rotations in dispatches of their own, *fused* has that of the query in the attention. Registers and LDS
are those of the attention's kernel; VALU instructions and MFMAs those of its loop.

| form | | dispatches | VGPRs | spills | LDS bytes | MFMAs | VALU | narrowest load in the loop |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
{attentions}

## 16 bytes a lane

IREE lets a lane compute 4 elements, 8 bytes in f16 and bf16. `prepass-configure-rope`, which
`prepass-canonicalize-rope` brings along, sets a config on the executables under which a lane computes 8 pairs, both
channels of each: all loads and stores are 16 bytes wide, and no select decides which half a lane is in. Rows of pairs
that are no multiple of 8, such as 12 or 20, keep IREE's choice.

## Some channels only

Where some channels are rotated and the others stay, the row is split into blocks such that whole blocks are rotated:
of 128 channels of which 32 turn in halves, 8 blocks of 16. One kernel reads and writes them all, and selects; the
channels that stay keep their bits, infinities and NaNs included, which a product with a cosine of 1 would not
promise. Blocks may be a fraction of a half, an eighth at least. Beyond, or where the other channels come from another
tensor, the concatenation is left to IREE, with a remark.

## What is not done: neighbours as halves

Pairs of neighbours could be made halves by permuting the rows of Wq and Wk, which changes no score. It is not done,
as there is little left to gain: a pair is read and written as one integer, in loads of 16 bytes, and takes 0.6 to 3
instructions a channel more than halves do; in the attention both forms have the same loop. What it costs is a
permuted copy of each weight, and of each bias and norm between the projection and the rotation.

## When the query is fused

On gfx942, where the attention has a config of `prepass-configure-attention` that goes through LDS and no mask, the
head dim is up to 160, the blocks in which the query is rotated (halves where all of it is) are a multiple of 16
channels, and the queries are 256 or more and fill whole tiles: beyond, registers run out, or matrix instructions are
not whole. Each query belongs to one workgroup, so nothing is computed twice; a dispatch and two passes over the query
are saved. A key belongs to all workgroups and is never fused. On other targets the rotation stays outside.
`fuse=always` and `fuse=never` decide otherwise.
"""


@dataclass(frozen=True)
class Program:
    """A compiled program."""

    dispatches: int
    kernels: list[KernelFigures]

    def loads(self) -> str:
        """Loads by width, the widest first."""
        widths: Counter[int] = Counter()
        for kernel in self.kernels:
            for access, count in kernel.counts.accesses.items():
                if access.direction == "load" and access.space in ("global", "buffer", "flat"):
                    widths[access.width] += count
        return ", ".join(f"{count} × {width}" for width, count in sorted(widths.items(), reverse=True))

    def instructions(self) -> int:
        """Of all kernels."""
        return sum(kernel.counts.total for kernel in self.kernels)

    def instructions_a_channel(self) -> float:
        """Of the last kernel, by element of two bytes that a lane writes."""
        counts = self.kernels[-1].counts
        stores = [(access, count) for access, count in counts.accesses.items() if access.direction == "store"]
        written = sum(access.width * count for access, count in stores if access.space in ("global", "buffer"))
        return counts.total / (written / 2)


def compile_program(source: str, pipeline: str | None, level: str) -> Program:
    """A module compiled for gfx942."""
    statistics = ProgramStatistics()
    flags = (*FLAGS, f"--iree-opt-level={level}")
    kernels = compile_to_assembly(source, pipeline=pipeline, flags=flags, hooks=statistics.hooks)
    return Program(statistics.dispatches, kernels)


def rotation_rows() -> list[str]:
    """A row for each form and level."""
    rows = []
    for name, form in FORMS.items():
        rope = begin("thd", HEADS, TOKENS, CHANNELS, ELEMENT)
        source = rope.graph.module(form(rope))
        for level in ("O0", "O3"):
            stock, ours = (compile_program(source, pipeline, level) for pipeline in (None, ROTATE))
            rows.append(
                f"| {name} | {level} | {stock.dispatches} → {ours.dispatches} | {stock.loads()} | {ours.loads()} | "
                f"{stock.instructions()} → {ours.instructions()} | {ours.instructions_a_channel():.1f} |"
            )
            print(rows[-1], file=sys.stderr)
    return rows


def attention_rows() -> list[str]:
    """Two rows for each form."""
    rows = []
    for name in ATTENTION_FORMS:
        source, *_ = rotated_attention(name, "thd", ATTENTION_HEADS, ATTENTION_TOKENS, CHANNELS, ELEMENT)
        for title, pipeline in (("apart", APART), ("fused", FUSED)):
            program = compile_program(source, f"{pipeline[:-1]},prepass-configure-attention)", "O3")
            kernel = max(program.kernels, key=lambda kernel: kernel.counts.mfmas)
            loop = kernel.hottest
            assert loop is not None
            reads = [access for access in loop.counts.accesses if access.direction == "load"]
            narrowest = min(access.width for access in reads if access.space in ("global", "buffer"))
            counts = f"{loop.counts.mfmas} | {loop.counts.kinds[Kind.VALU]}"
            rows.append(
                f"| {name} | {title} | {program.dispatches} | {kernel.metadata.vgprs} | {kernel.spills} | "
                f"{kernel.metadata.lds_bytes} | {counts} | {narrowest} bytes |"
            )
            print(rows[-1], file=sys.stderr)
    return rows


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="The page to write.")
    arguments = parser.parse_args()
    forms = [f"- {name}: {form.__doc__.splitlines()[0]}" for name, form in FORMS.items()]
    page = PAGE.format(
        version="iree-base-compiler 3.13.0",
        heads=HEADS,
        tokens=TOKENS,
        attention_heads=ATTENTION_HEADS,
        attention_tokens=ATTENTION_TOKENS,
        channels=CHANNELS,
        element=ELEMENT,
        rotations="\n".join(rotation_rows()),
        forms="\n".join(forms),
        attentions="\n".join(attention_rows()),
    )
    arguments.output.write_text(page)


if __name__ == "__main__":
    main()

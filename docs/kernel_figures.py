# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compare each kernel with IREE's own code for the same op, by the static cost model.

    python docs/kernel_figures.py --output docs/kernel-figures.md [KERNEL...]

The ops are the examples of the kernels. Nothing is run: the figures are counts in the assembly. It takes some seconds
for each example.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from importlib import metadata
from pathlib import Path

from prepass.amdgpu.figures import KernelFigures
from prepass.analysis.kernel_costs import PricedCode, price_example
from prepass.ir.kernels import Kernel
from prepass.pipeline.registry import default_registry
from prepass.tools.common import whole_output

PAGE = """\
# Kernels against IREE's own code

Each kernel of prepass on gfx942 beside the code that IREE makes of the same op, written by
`python docs/kernel_figures.py`. All figures are static, of the assembly of {version} and of the cost
model that [isa.md](isa.md) describes; nothing here has run on an MI300. [kernels.md](kernels.md) says how kernels are
chosen.

Cycles are those of a CU with one wave on each SIMD, in the hottest loop: for attention per 1,024 scores of a wave, each
score counted once, else per 2^20 operations of a wave's matrix instructions. The unit with the most cycles bounds the
loop; *busy* is how busy the matrix cores are when all units overlap. VGPRs, LDS and spills are of the whole kernel, and
so is the narrowest store to memory, in bytes a lane. *kcycles* are the thousands of cycles of the busiest unit of the
CU with the most workgroups, of 304 CUs: all that the first workgroup executes, counted in the simulator, prologue and
epilogue included, times the workgroups that the CU has.

{sections}"""

HEAD = """\
| | MFMA | VALU | LDS | memory | bound by | busy | VGPRs | LDS bytes | spills | narrowest store | workgroups | kcycles |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


def section(kernel: Kernel) -> str:
    """What the page says about a kernel."""
    facts = kernel.description
    selected = "Selected by default" if kernel.by_default else "Not selected by default"
    summary = textwrap.fill(f"{facts.summary} {selected}: {lower_first(facts.reason)}", 120)
    asks = "\n".join(f"- {clause};" for clause in (*facts.conditions, *facts.masks))
    parts = [f"## {kernel.name}\n\n{summary} It asks that\n\n{asks[:-1]}.\n"]
    for example in kernel.examples():
        print(f"{kernel.name}: {example.name}", file=sys.stderr)
        priced = price_example(kernel, example)
        per = priced[kernel.name].loop.per
        rows = "\n".join(row(way, code) for way, code in priced.items())
        parts.append(f"{example.name}, cycles for {per}:\n\n{HEAD}{rows}\n")
    return "\n".join(parts)


def row(way: str, code: PricedCode) -> str:
    """A line of a table."""
    cycles, figures = code.loop.cycles, code.figures
    units = cycles.units
    busiest = max(units, key=lambda unit: units[unit])
    busy = cycles.mfma / units[busiest] if units[busiest] else 0
    counts = " | ".join(f"{units[unit]:.0f}" for unit in ("MFMA", "VALU", "LDS", "memory"))
    kept = f"{figures.metadata.vgprs} | {figures.metadata.lds_bytes} | {figures.spills}"
    shared = f"{code.workgroup.workgroups} | {code.workgroup.busiest_cu_cycles / 1000:.0f}"
    return f"| {way} | {counts} | {busiest} | {busy:.0%} | {kept} | {narrowest_store(figures)} | {shared} |"


def narrowest_store(figures: KernelFigures) -> str:
    """Bytes a lane."""
    stores = [a.width for a in figures.counts.accesses if a.direction == "store" and a.space in ("global", "buffer")]
    return str(min(stores, default="none"))


def lower_first(text: str) -> str:
    """A sentence behind a colon. Names keep their capitals."""
    return text if text[:2].isupper() else text[:1].lower() + text[1:]


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="The page to write.")
    parser.add_argument("kernels", nargs="*", help="The kernels to compare; all by default.")
    arguments = parser.parse_args()
    registry = default_registry()
    kernels = [registry.kernel(name) for name in arguments.kernels or registry.kernel_names()]
    sections = "\n".join(section(kernel) for kernel in kernels)
    page = PAGE.format(version=f"iree-base-compiler {metadata.version('iree-base-compiler')}", sections=sections)
    with whole_output(str(arguments.output)) as temporary:
        Path(temporary).write_text(page)


if __name__ == "__main__":
    main()

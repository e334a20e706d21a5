# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `llvm-mca` of an installed LLVM says of a loop: one wave alone, its instructions in order.

It knows dependencies and latencies, which the cost model does not, but neither LDS nor memory
bandwidth, and it takes a transcendental instruction for as fast as an addition.

Source: https://llvm.org/docs/CommandGuide/llvm-mca.html; the rates are those of LLVM's
`SISchedule.td`, in cycles of four clocks.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from prepass.amdgpu.assembly import Instruction
from prepass.amdgpu.llvm_tools import find_llvm_tool
from prepass.errors import PrepassError

# The first whose llvm-mca takes the code that IREE emits for gfx942.
LLVM_VERSION = 22
_CLOCKS = 4
_ITERATIONS = 100


@dataclass(frozen=True)
class McaReport:
    """An analysis; figures are clocks of the engine per iteration.

    Attributes:
      clocks: How long an iteration takes when iterations follow each other.
      issue_clocks: How long when nothing waits for a result, the block's reciprocal throughput.
      units: How long each unit works, by LLVM's name: HWXDL is the matrix core.
    """

    clocks: float
    issue_clocks: float
    units: Mapping[str, float] = field(hash=False)


def analyse(instructions: Iterable[Instruction], architecture: str) -> McaReport:
    """Let llvm-mca analyse a loop. Raises PrepassError when none is installed, or when it fails."""
    tool = find_llvm_tool("llvm-mca", LLVM_VERSION)
    if tool is None:
        raise PrepassError(
            f"no llvm-mca of LLVM {LLVM_VERSION} or newer is installed (set PREPASS_LLVM to its folder if it is not "
            "on PATH)"
        )
    text = "".join(f"{instruction}\n" for instruction in instructions)
    command = [tool, "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={architecture}", f"-iterations={_ITERATIONS}", "-json"]
    result = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if result.returncode:
        raise PrepassError(f"llvm-mca: {result.stderr.strip().splitlines()[0]}")
    return _read(result.stdout)


def _read(text: str) -> McaReport:
    document = json.loads(text)
    region = document["CodeRegions"][0]
    summary = region["SummaryView"]
    names = document["TargetInfo"]["Resources"]
    pressure = region["ResourcePressureView"]["ResourcePressureInfo"]
    # The entry behind the last instruction is the whole region's.
    whole = len(region["Instructions"])
    return McaReport(
        clocks=_CLOCKS * summary["TotalCycles"] / summary["Iterations"],
        issue_clocks=_CLOCKS * summary["BlockRThroughput"],
        units={
            names[entry["ResourceIndex"]]: _CLOCKS * entry["ResourceUsage"]
            for entry in pressure
            if entry["InstructionIndex"] == whole
        },
    )

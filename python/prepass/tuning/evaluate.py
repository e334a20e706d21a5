# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One way to compile an op: compile it so, as a table of that one entry would, and price the code."""

from __future__ import annotations

import hashlib
import json
import math
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iree.compiler import ir
from iree.compiler import version as compiler_version

from prepass.amdgpu.figures import KernelFigures
from prepass.amdgpu.inputs import compile_to_assembly
from prepass.errors import PrepassError
from prepass.ir.match import find_ops, walk_ops
from prepass.ir.targets.attention_shape import AttentionShape
from prepass.ir.targets.tuning_table import Choice, Entry, TuningTable, entry_from_record
from prepass.pipeline.base import Remark, RemarkKind
from prepass.pipeline.kernels import tuned_kernel
from prepass.tuning.check import check_config
from prepass.tuning.extract import PHASE
from prepass.tuning.price import PRICING, Price, price_kernel
from prepass.tuning.terms import terms_of_iteration

# `partial_reduction` as well, in which a workgroup has one of several parts.
_REDUCTION = re.compile(r"reduction = \[([\d, ]+)\]")

NOT_TAKEN = "the choice was not taken"
UNPRICED = "it cannot be told how often its loop runs"


@dataclass(frozen=True)
class Request:
    """A dispatch to compile in one way.

    Attributes:
      source: The dispatch as a program in the phase `flow`.
      entry: The op and the choice.
      flags: Of iree-compile.
      files: Python files of passes and kernels to load.
      check: Whether its results are checked as well, on a small op.
    """

    source: str
    entry: Entry
    target: str
    flags: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    check: bool = False

    @property
    def key(self) -> str:
        """What the result depends on, as a digest."""
        entry = self.entry.record()
        parts = [PRICING, compiler_version.VERSION, self.source, entry["op"], entry["shape"], entry["choice"]]
        parts += [self.target, list(self.flags), *(["check"] if self.check else [])]
        text = json.dumps(parts, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "source": self.source,
            "entry": self.entry.record(),
            "target": self.target,
            "flags": list(self.flags),
            "files": list(self.files),
            "check": self.check,
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Request:
        """The request that a record spells."""
        entry = entry_from_record(record["entry"])
        flags, files = tuple(record["flags"]), tuple(record["files"])
        return cls(record["source"], entry, record["target"], flags, files, record["check"])


def evaluate(request: Request) -> Price:
    """Compile a dispatch and price it.

    Raises CompileError when it does not compile, and PrepassError when the choice is not what it was compiled
    with, when its results are wrong, and when its code cannot be priced.
    """
    if request.check:
        check_config(request.entry, request.target, request.flags)
    seen = _Seen(request.entry.choice)
    table = TuningTable(request.target, compiler_version.VERSION, (request.entry,))
    with tempfile.TemporaryDirectory(prefix="prepass-tune-") as directory:
        path = Path(directory, "table.json")
        path.write_text(table.text())
        kernels = compile_to_assembly(
            request.source,
            flags=request.flags,
            start=PHASE,
            tuning_table=path,
            hooks={
                "executable-sources": seen.check,
                "executable-configurations": seen.read_config,
                "executable-targets": seen.read_grid,
            },
            on_remark=seen.add_remark,
        )
    if len(kernels) != 1 or seen.workgroups is None:
        raise PrepassError(f"expected one kernel with a grid of static size, found {len(kernels)}")
    return price_kernel(kernels[0], seen.workgroups, _steps(request.entry, seen.tile, kernels[0]))


@dataclass
class _Seen:
    """What compiling shows on the way.

    Attributes:
      tile: The tile of the reduction, 0 where none is known.
      workgroups: Of the dispatch, None where the number is not static.
    """

    choice: Choice
    tile: int = 0
    workgroups: int | None = None
    applied: bool = False
    missed: list[str] = field(default_factory=list)

    def check(self, _: ir.Operation) -> None:
        """Raise PrepassError when the choice was not taken, before more time is spent."""
        if (self.choice.config or self.choice.kernel) and not self.applied:
            raise PrepassError(f"{NOT_TAKEN}: {'; '.join(self.missed) or 'it is not for such ops'}")

    def read_config(self, module: ir.Operation) -> None:
        for op in find_ops(module, lambda op: "lowering_config" in op.attributes):
            for numbers in _REDUCTION.findall(str(op.attributes["lowering_config"])):
                tiles = [int(number) for number in numbers.split(",") if int(number)]
                self.tile = tiles[0] if len(tiles) == 1 else 0

    def read_grid(self, module: ir.Operation) -> None:
        for op in walk_ops(module, "hal.executable.export"):
            counts = [_constant(value) for end in walk_ops(op, "hal.return") for value in end.operands]
            self.workgroups = math.prod(count for count in counts if count) if counts and None not in counts else None

    def add_remark(self, remark: Remark, _: ir.Location) -> None:
        self.applied |= remark.kind is RemarkKind.APPLIED and "tuning table" in remark.message
        if remark.kind is RemarkKind.MISSED:
            self.missed.append(remark.message)


def _constant(value: ir.Value) -> int | None:
    owner = value.owner
    is_constant = isinstance(owner, ir.Operation | ir.OpView) and owner.operation.name == "arith.constant"
    return ir.IntegerAttr(owner.attributes["value"]).value if is_constant else None


def _steps(entry: Entry, tile: int, kernel: KernelFigures) -> float:
    """How many iterations of the hottest loop go through all that a wave adds up."""
    if kernel.hottest is None:
        return 0
    if isinstance(entry.shape, AttentionShape):
        tile = _kernel_step(entry.choice) or tile
        steps = -(-(entry.shape.k2 or 0) // tile) if tile else 0
    else:
        # MFMAs tell it for whatever made the code: IREE's configs for them are in several units. A loop may do several
        # steps. Without MFMAs the config is in elements.
        terms = terms_of_iteration(kernel) or tile
        steps = (entry.shape.reduction_extent or 0) / terms if terms else 0
    if not steps:
        raise PrepassError(UNPRICED)
    return steps


def _kernel_step(choice: Choice) -> int:
    return math.prod(tuned_kernel(choice).description.step.values()) if choice.kernel else 0

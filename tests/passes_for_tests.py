# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small passes to test the pipeline with; also loaded with --prepass-load."""

from dataclasses import dataclass
from typing import Literal

from iree.compiler import ir

from prepass import Pass, PassContext, option
from prepass.ir.match import walk_ops
from prepass.pipeline.named import Flag, NamedPipeline, Step


@dataclass(frozen=True)
class ReportAddsPass(Pass):
    """Remark on each addf."""

    name = "test-report-adds"

    def run(self, op: ir.Operation, context: PassContext) -> None:
        for add in walk_ops(op, "arith.addf"):
            context.missed(add, f"seen for {context.target.name if context.target else 'no target'}")
            context.count("adds")


@dataclass(frozen=True)
class MarkAddsPass(Pass):
    """Set an attribute on each addf."""

    name = "test-mark-adds"

    def run(self, op: ir.Operation, context: PassContext) -> None:
        for add in walk_ops(op, "arith.addf"):
            context.applied(add, "marked")
            add.attributes["marked"] = ir.UnitAttr.get()


@dataclass(frozen=True)
class OptionsPass(Pass):
    """Take options of every type."""

    name = "test-options"
    flag: bool = option(False, help="A switch.")
    pad_keys: int = option(16, help="An integer.")
    scale: float = option(1.0, help="A number.")
    text: str = option("", help="A string.")
    mode: Literal["strip", "keep"] = option("strip", help="A choice.")
    axes: tuple[int, ...] = option((), help="A list.")
    limit: int | None = option(None, help="An integer or none.", least=0)

    def run(self, op: ir.Operation, context: PassContext) -> None:
        context.count(f"ran on {op.name}")


@dataclass(frozen=True)
class FailPass(Pass):
    """Fail, in one of the ways a pass can."""

    name = "test-fail"
    how: Literal["raise", "emit", "break"] = option("raise", help="The way.")

    def run(self, op: ir.Operation, context: PassContext) -> None:
        add = walk_ops(op, "arith.addf")[0]
        if self.how == "raise":
            raise ValueError("deliberate\nsecond line")
        if self.how == "emit":
            add.location.emit_error("deliberate")
            raise ir.MLIRError("deliberate", [])
        add.operands[0] = walk_ops(op, "arith.mulf")[0].results[0]


@dataclass(frozen=True)
class ModuleOnlyPass(Pass):
    """Run on modules only."""

    name = "test-module-only"
    anchor = "builtin.module"

    def run(self, op: ir.Operation, context: PassContext) -> None:
        context.count("modules")


PIPELINE = NamedPipeline(
    "test-pipeline",
    "Two steps.",
    (Step("cse", "Equal ops first."), Step("test-report-adds", "Then what is left.")),
    (Flag("--mlir-print-debuginfo", "Where ops come from."), Flag("--iree-opt-level=O3", "All of it.")),
)

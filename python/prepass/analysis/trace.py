# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each pass of a pipeline did, and which ops of the program went with what it rewrote."""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir

from prepass.analysis.provenance import Snapshot, numbers_of, snapshot
from prepass.compiler.compilation import Compilation
from prepass.pipeline.base import Remark, RemarkHandler, RemarkKind
from prepass.pipeline.resolve import ROOT, Nest, python_passes


@dataclass(frozen=True)
class Finding:
    """A remark of a pass, and the source ops that it is about.

    Attributes:
      roots: The numbers of the op that the remark is made at.
      ops: Those, and the ops that were removed with it.
    """

    remark: Remark
    roots: frozenset[int]
    ops: frozenset[int]

    @property
    def applied(self) -> bool:
        """Whether the pass rewrote the op."""
        return self.remark.kind is RemarkKind.APPLIED


@dataclass(frozen=True)
class Trace:
    """All findings of a pipeline in order, and the ops that are left in the end.

    Attributes:
      passes: The names of the passes that ran.
    """

    findings: tuple[Finding, ...] = ()
    left: frozenset[int] = frozenset()
    passes: frozenset[str] = frozenset()


def trace_pipeline(pipeline: Nest, compilation: Compilation, on_remark: RemarkHandler | None = None) -> Trace:
    """Run a pipeline on a module whose ops are numbered. Raises CompileError and PassFailure."""
    findings: list[Finding] = []
    before = snapshot(compilation.module)
    for element in pipeline.elements:
        remarks: list[tuple[Remark, frozenset[int]]] = []

        def note(remark: Remark, location: ir.Location, remarks: list = remarks) -> None:
            remarks.append((remark, numbers_of(location)))
            if on_remark:
                on_remark(remark, location)

        compilation.run_pipeline(Nest(ROOT, (element,)), on_remark=note)
        after = snapshot(compilation.module)
        findings += _findings(remarks, before, after)
        before = after
    passes = frozenset(instance.name for instance in python_passes(pipeline))
    return Trace(tuple(findings), frozenset(before.operands), passes)


def _findings(remarks: list[tuple[Remark, frozenset[int]]], before: Snapshot, after: Snapshot) -> list[Finding]:
    gone = frozenset(before.operands) - frozenset(after.operands)
    return [
        Finding(remark, roots, before.closure(roots, gone) if remark.kind is RemarkKind.APPLIED else roots)
        for remark, roots in remarks
    ]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a pass is: a frozen dataclass with options, remarks and counters.

A pass is written as

    @dataclass(frozen=True)
    class FoldThingPass(Pass):
        \"\"\"Fold things into their users.\"\"\"

        name = "prepass-fold-thing"
        limit: int = option(4, help="Largest thing to fold.")

        def run(self, op: ir.Operation, context: PassContext) -> None: ...

Its options are the dataclass fields. Their command-line spelling is the field
name in kebab-case.
"""

from __future__ import annotations

import enum
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

from iree.compiler import ir

from prepass.ir.locations import describe_location
from prepass.ir.match import NoMatch
from prepass.ir.targets import Target
from prepass.pipeline.control import RewriteLimit

Match = TypeVar("Match")


class RemarkKind(enum.Enum):
    """Whether a pass changed something, left it alone, or found it wrong.

    Warnings are shown whether or not remarks are asked for.
    """

    APPLIED = "applied"
    MISSED = "missed"
    WARNING = "warning"


@dataclass(frozen=True)
class Remark:
    """What a pass did, or left alone, at one op.

    Holds text only, so that it outlives the IR it speaks of.
    """

    kind: RemarkKind
    pass_name: str
    message: str
    op_name: str
    location: str

    @property
    def text(self) -> str:
        """The message with the pass and the op, without the location."""
        kind = "" if self.kind is RemarkKind.WARNING else f"{self.kind.value}: "
        return f"{self.pass_name}: {kind}{self.message} [{self.op_name}]"

    @property
    def severity(self) -> str:
        """The severity of the diagnostic that it is shown as."""
        return "warning" if self.kind is RemarkKind.WARNING else "remark"

    def __str__(self) -> str:
        return f"{self.location}: {self.severity}: {self.text}"


PREPROCESSING = "preprocessing"

RemarkHandler = Callable[[Remark, ir.Location], None]


@dataclass
class PassContext:
    """What a running pass reports to, and what it may know of the compilation.

    Attributes:
      pass_name: The pass the remarks are credited to.
      target: The target the module is compiled for, or None when nothing in
        the module or the flags says.
      on_remark: Called with each remark as it is made.
      rewrites_left: How many rewrites it may still make, or None for any number; see `Control`.
    """

    pass_name: str
    target: Target | None = None
    on_remark: RemarkHandler | None = None
    remarks: list[Remark] = field(default_factory=list)
    counters: Counter[str] = field(default_factory=Counter)
    rewrites_left: int | None = None

    def applied(self, op: ir.Operation | ir.OpView, message: str) -> None:
        """Record that the pass rewrites `op`, before anything of the rewrite is done.

        Where rewrites are limited it does not return once they are used up.
        """
        if self.rewrites_left is not None:
            if self.rewrites_left == 0:
                raise RewriteLimit(op.operation)
            self.rewrites_left -= 1
        self._remark(RemarkKind.APPLIED, op, message)

    def configured(self, op: ir.Operation, message: str, attributes: Mapping[str, ir.Attribute]) -> None:
        """Record and count that the pass gives `op` a lowering config, and attach the attributes that are it."""
        self.applied(op, message)
        self.count("configured")
        for name, attribute in attributes.items():
            op.attributes[name] = attribute

    def missed(self, op: ir.Operation | ir.OpView, reason: str) -> None:
        """Record that the pass left `op` alone, and why."""
        self._remark(RemarkKind.MISSED, op, reason)

    def missed_match(self, miss: NoMatch) -> None:
        """Record a failed match, at the op that made it fail."""
        self.missed(miss.op, miss.reason)

    def matches(
        self, ops: Iterable[ir.Operation], match: Callable[[ir.Operation], Match | None]
    ) -> Iterator[tuple[ir.Operation, Match]]:
        """The ops that match, each with what `match` returns for it, one after the other.

        `match` raises NoMatch with the reason to leave an op alone, which becomes a remark, or
        returns None for an op that it has nothing to say about. An op is matched once those
        before it have been rewritten.
        """
        for op in ops:
            try:
                found = match(op)
            except NoMatch as miss:
                self.missed_match(miss)
                continue
            if found is not None:
                yield op, found

    def warning(self, op: ir.Operation | ir.OpView, message: str) -> None:
        """Warn of something wrong in the program; it is shown even where no remarks are asked for."""
        self._remark(RemarkKind.WARNING, op, message)

    def count(self, counter: str, amount: int = 1) -> None:
        """Add to a counter; counters appear in reports and `--mlir-pass-statistics`."""
        self.counters[counter] += amount

    def _remark(self, kind: RemarkKind, op: ir.Operation | ir.OpView, message: str) -> None:
        operation = op.operation
        remark = Remark(kind, self.pass_name, message, operation.name, describe_location(operation.location))
        self.remarks.append(remark)
        if self.on_remark:
            self.on_remark(remark, operation.location)
        elif kind is RemarkKind.WARNING:
            print(remark, file=sys.stderr)


@dataclass(frozen=True)
class Pass:
    """Base of all prepass passes.

    Class attributes:
      name: The command-line name, kebab-case with the prefix `prepass-` for
        passes of this project.
      anchor: The op a pass must be nested on, or "" for any.
      dependent_dialects: The dialects of the ops that the pass creates. They are
        loaded before the pass runs; an op of a dialect that is not loaded is not
        verified, and prints in generic form.
      phase: The phase of the compiler after which the pass runs when a program is
        compiled, wherever it stands in the pipeline. `prepass-opt` knows no phases
        and runs it where it stands.
      followed_by: Passes of later phases that are run too where this one is.
      precedes: Passes of the same later phase that run after this one, wherever they stand in the pipeline.
    """

    name: ClassVar[str]
    anchor: ClassVar[str] = ""
    dependent_dialects: ClassVar[tuple[str, ...]] = ()
    phase: ClassVar[str] = PREPROCESSING
    followed_by: ClassVar[tuple[str, ...]] = ()
    precedes: ClassVar[tuple[str, ...]] = ()

    def run(self, op: ir.Operation, context: PassContext) -> None:
        """Rewrite the IR nested in `op` in place.

        `op` is the anchor the pass is nested on: the module, or each op of the
        anchor's kind in turn.
        """
        raise NotImplementedError

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Remove assertions before anything is hoisted, and keep what they prove.

Frontends put two assertions into the body of each embedding or gather. They have side effects, so that equal lookups
are not merged, and each is hoisted for itself. Assertions in the body of a linalg op end in a kernel, which cannot
report anything: the compiler drops them there at every level. Those in functions and initializers do fail at run time.

Before:

    ^bb0(%in: i64, %out: f16):
      %row = arith.index_cast %in : i64 to index
      %column = linalg.index 1 : index
      %less = arith.cmpi slt, %row, %c77 : index
      cf.assert %less, "index must be smaller than dim size"
      %positive = arith.cmpi sge, %in, %c0_i64 : i64
      cf.assert %positive, "index must be larger or equal to 0"
      %element = tensor.extract %table[%row, %column] : tensor<77x768xf16>

The rest is what remains with `mode=assume`; with the default, `%row` is read as it is.

After:

    ^bb0(%in: i64, %out: f16):
      %row = arith.index_cast %in : i64 to index
      %column = linalg.index 1 : index
      %known = util.assume.int %row<umin = 0, umax = 76> : index
      %element = tensor.extract %table[%known, %column] : tensor<77x768xf16>

An assumption holds where the assertion was known to: after it in its block, and in regions there. Comparisons with
constants and other values of known range count, in either operand order, signed or unsigned, joined by `andi`, and
negated by `xori`; what holds for a value holds for its casts.

An assumption in the body of a lookup changes how the body is compiled, see prepass-vectorize-lookups; so run that
pass too.

Left alone when

- the condition is constant false, or the assertions contradict each other: also a warning, at their locations;
- `message` does not match the assertion's message, or `keep` does;
- it is outside of linalg ops, with `scope=linalg`;
- the mode is `keep`.

With `mode=assume` it is removed without an assumption, with a remark, when

- the condition says nothing new of an integer;
- the assertions do not bound the value as unsigned number, as an upper bound of a signed one alone does;
- the value does not change in the loop around, where an assumption could be hoisted to where the loop does not run.

Source: https://mlir.llvm.org/docs/Dialects/ControlFlowDialect/#cfassert-cfassertop
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from iree.compiler import ir

from prepass.ir.assumptions import Assumptions, Proof
from prepass.ir.emit import erase_dead_producers
from prepass.ir.match import NoMatch, walk_ops
from prepass.ir.ranges import constant_integer
from prepass.pipeline.base import Pass, PassContext
from prepass.pipeline.options import OptionError, option


def _message(assertion: ir.Operation) -> str:
    return ir.StringAttr(assertion.attributes["msg"]).value


def _is_in_linalg(op: ir.Operation) -> bool:
    while op.parent is not None:
        op = op.parent.operation
        if op.name.startswith("linalg."):
            return True
    return False


def _depth(op: ir.Operation) -> int:
    return 0 if op.parent is None else 1 + _depth(op.parent.operation)


def _by_block(assertions: Iterable[ir.Operation]) -> list[list[ir.Operation]]:
    """The assertions of each block, outer blocks first."""
    blocks: list[list[ir.Operation]] = []
    for assertion in sorted(assertions, key=_depth):
        block = next((b for b in reversed(blocks) if b[0].block == assertion.block), None)
        if block is None:
            blocks.append([assertion])
        else:
            block.append(assertion)
    return blocks


def _report(assertions: Iterable[tuple[ir.Operation, str]], remark: Callable[[ir.Operation, str], None]) -> None:
    """One remark for each message, at the first assertion that has it; `what` is done to each."""
    kinds: dict[tuple[str, str], list[ir.Operation]] = {}
    for assertion, what in assertions:
        kinds.setdefault((_message(assertion), what), []).append(assertion)
    for (message, what), group in kinds.items():
        remark(group[0], f'{len(group)} with the message "{message}": {what}')


@dataclass(frozen=True)
class StripAssertionsPass(Pass):
    """Remove assertions before anything is hoisted, and keep what they prove."""

    name = "prepass-strip-assertions"
    dependent_dialects = ("util",)
    mode: Literal["strip", "assume", "keep"] = option(
        "strip", help="Remove assertions, turn them into assumptions, or only count them."
    )
    scope: Literal["module", "linalg"] = option(
        "module", help="Where: everywhere, or in the bodies of linalg ops, which cannot report a failure."
    )
    message: str = option("", help="Only assertions whose message has a match of this regular expression.")
    keep: str | None = option(None, help="Not those whose message has a match of this regular expression.")

    def __post_init__(self) -> None:
        for name, pattern in (("message", self.message), ("keep", self.keep or "")):
            try:
                re.compile(pattern)
            except re.error as error:
                raise OptionError(f"option '{name}' is no regular expression: {error}") from None

    def run(self, op: ir.Operation, context: PassContext) -> None:
        selected: list[ir.Operation] = []
        kept: list[tuple[ir.Operation, str]] = []
        for assertion in walk_ops(op, "cf.assert"):
            try:
                self._match_selected(assertion)
                selected.append(assertion)
            except NoMatch as miss:
                kept.append((assertion, miss.reason))
        _report(kept, context.missed)
        assumptions = Assumptions()
        removed: list[ir.Operation] = []
        for assertions in _by_block(selected):
            removed += self._run_on_block(assertions, assumptions, context)
        context.count("kept", len(kept) + len(selected) - len(removed))
        context.count("removed", len(removed))
        _report(((assertion, "removed") for assertion in removed), context.applied)
        conditions = [assertion.operands[0] for assertion in removed]
        for assertion in removed:
            assertion.erase()
        erase_dead_producers(conditions)
        context.count("assumptions", assumptions.erase_unread())

    def _match_selected(self, assertion: ir.Operation) -> None:
        if self.mode == "keep":
            raise NoMatch("kept, as the mode says", assertion)
        if self.scope == "linalg" and not _is_in_linalg(assertion):
            raise NoMatch("kept, being outside of linalg ops", assertion)
        message = _message(assertion)
        if not re.search(self.message, message) or (self.keep is not None and re.search(self.keep, message)):
            raise NoMatch("kept, as the options say", assertion)

    def _run_on_block(
        self, assertions: list[ir.Operation], assumptions: Assumptions, context: PassContext
    ) -> list[ir.Operation]:
        """Assume what the assertions of a block prove; returns those that may be removed."""
        false = [assertion for assertion in assertions if constant_integer(assertion.operands[0]) == 0]
        proofs = assumptions.prove([assertion for assertion in assertions if assertion not in false])
        contradictory = [a for proof in proofs if proof.is_contradiction for a, _ in proof.steps]
        for assertion in assertions:
            if assertion in false:
                self._keep_failing(assertion, "the condition is constant false", context)
            elif assertion in contradictory:
                self._keep_failing(assertion, "what the assertions say of a value contradicts itself", context)
        removed = [assertion for assertion in assertions if assertion not in false and assertion not in contradictory]
        if self.mode == "assume":
            self._assume(removed, [proof for proof in proofs if not proof.is_contradiction], assumptions, context)
        return removed

    def _keep_failing(self, assertion: ir.Operation, why: str, context: PassContext) -> None:
        context.missed(assertion, f"kept, because it always fails: {why}")
        context.warning(assertion, f'the assertion "{_message(assertion)}" always fails: {why}')

    def _assume(
        self, removed: list[ir.Operation], proofs: list[Proof], assumptions: Assumptions, context: PassContext
    ) -> None:
        reasons = dict.fromkeys(removed, "the condition says nothing new of an integer")
        proved: list[ir.Operation] = []
        for proof in proofs:
            assertions = [assertion for assertion, _ in proof.steps]
            try:
                assumptions.assume(proof)
                proved += assertions
            except NoMatch as miss:
                reasons |= dict.fromkeys(assertions, miss.reason)
        missed = [(a, f"nothing is assumed: {why}") for a, why in reasons.items() if a not in proved]
        _report(missed, context.missed)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From what passes did to issues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from prepass.analysis.graph import DispatchGraph
from prepass.analysis.issue_kinds import IssueKind, kinds_of
from prepass.analysis.issues import Instance, Issue, State, make_issue
from prepass.analysis.provenance import SourceOp
from prepass.analysis.trace import Finding, Trace


@dataclass(frozen=True)
class Evidence:
    """What issues are read from.

    Attributes:
      sources: The ops of the program by their numbers.
      before, after: The dispatches without and with the pipeline and its flags.
      flagged: The dispatches with the flags alone.
      trace: What the pipeline did.
      further: What passes that it lacks would do behind it.
    """

    sources: Mapping[int, SourceOp]
    before: DispatchGraph
    after: DispatchGraph
    flagged: DispatchGraph
    trace: Trace
    further: Trace


def pass_issues(evidence: Evidence) -> Iterator[Issue]:
    """The issues that passes find, of each kind that there is."""
    for kind in kinds_of(evidence.trace.passes):
        instances = list(_instances(kind, evidence))
        if instances:
            yield make_issue(kind.name, kind.title, kind.why, instances, evidence.before, evidence.after)


def _instances(kind: IssueKind, evidence: Evidence) -> Iterator[Instance]:
    """One for each source op: several remarks at one op are about the same thing, and a rewrite counts most."""
    found: dict[int, Instance] = {}
    findings = [(f, State.FIXED) for f in evidence.trace.findings]
    findings += [(f, State.FIXABLE) for f in evidence.further.findings]
    rewrites = [(f, state) for f, state in findings if f.applied]
    misses = [(f, State.LEFT) for f, _ in findings if not f.applied]
    for finding, state in [*rewrites, *misses]:
        if not kind.concerns(finding.remark, applied=finding.applied):
            continue
        root = _root(finding, kind, evidence.sources)
        if root is None:
            continue
        if root not in found:
            found[root] = _instance(finding, state, root, evidence.sources)
    yield from found.values()


def _root(finding: Finding, kind: IssueKind, sources: Mapping[int, SourceOp]) -> int | None:
    """The source op that a finding is about, of the kinds that the issue is about."""
    roots = sorted(finding.roots)
    if kind.roots:
        roots = [root for root in roots if sources[root].kind in kind.roots]
    return roots[-1] if roots else None


def _instance(finding: Finding, state: State, root: int, sources: Mapping[int, SourceOp]) -> Instance:
    source, remark = sources[root], finding.remark
    fix = remark.pass_name if state is not State.LEFT else ""
    what = f"{source.name} {source.type}".strip()
    return Instance(source.location, what, state, remark.message, fix, finding.ops)


def passes_at(findings: Iterable[Finding], ops: frozenset[int]) -> list[str]:
    """The passes that rewrote any of some source ops, in order."""
    return list(dict.fromkeys(f.remark.pass_name for f in findings if f.applied and f.ops & ops))

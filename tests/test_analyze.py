# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The issues of small programs: each is found where it is, and what only looks like it is not reported."""

import re

import pytest

from prepass.analysis.analyze import analyze
from prepass.analysis.issues import State
from prepass.analysis.savings import without_passes

from .analysis_cases import CASES, DATA
from .conftest import GFX942


def found(text, issue, **given):
    """The issue of a name, or None."""
    issues = {issue.name: issue for issue in analyze(text, flags=GFX942, **given).issues}
    return issues.get(issue)


def line_of(instance):
    name, line, _ = instance.location.rsplit(":", 2)
    assert name == "<text>"
    return int(line)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.issue)
def test_an_issue_is_found_where_it_is(case):
    issue = found(case.text, case.issue)
    assert issue is not None
    lines = [line_of(instance) for instance in issue.instances]
    assert len(lines) == case.count
    assert set(lines) <= set(case.lines)
    assert {instance.state for instance in issue.instances} == {State(case.state)}
    if case.fix:
        assert {instance.fix for instance in issue.instances} == {case.fix}
    assert all(bool(instance.fix) == (case.state != "left") for instance in issue.instances)
    assert all(instance.note for instance in issue.instances)


def test_what_passes_save_is_found_out_by_leaving_them_out():
    case = next(case for case in CASES if case.issue == "decomposed-attention")
    saving = found(case.main, case.issue, measure=True).saving
    assert saving.passes == ("prepass-raise-attention",)
    # Two contractions and a softmax are one dispatch; scores and probabilities were written and read.
    assert (saving.dispatches, saving.initializers) == (2, 0)
    assert saving.bytes == 4 * 2 * 64 * 64 * 2


def test_passes_are_left_out_wherever_they_stand():
    names = frozenset({"prepass-raise-attention", "prepass-fold-unit-dims"})
    text = "builtin.module(cse,prepass-llm,util.func(prepass-fold-unit-dims,canonicalize))"
    rest = without_passes(text, names)
    assert "prepass-pad-attention-keys" in rest
    assert not any(name in rest for name in names)
    assert rest.endswith("util.func(canonicalize))")


@pytest.mark.slow
def test_issues_of_a_torch_model_are_at_its_own_lines(tmp_path):
    torch = pytest.importorskip("torch")
    aot = pytest.importorskip("iree.turbine.aot")

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)

        def forward(self, x):
            return torch.softmax(self.left(x) @ self.right(x).transpose(-1, -2), -1) @ x

    exported = aot.export(Model().half().eval(), torch.zeros(1, 32, 64, dtype=torch.float16), strict_export=False)
    path = tmp_path / "model.mlirbc"
    exported.save_mlir(path)
    issue = found(path, "unit-dim-linears")
    assert len(issue.instances) == 2
    line = Model.forward.__code__.co_firstlineno + 1
    assert {instance.location for instance in issue.instances} == {f"{__file__}:{line}:0"}


def test_equal_constants_are_found_and_different_ones_are_not():
    text = (DATA / "equal_lookups.mlir").read_text()
    issue = found(text, "equal-constants")
    lines = [number for number, line in enumerate(text.splitlines(), 1) if "dense_resource" in line]
    assert {line_of(instance) for instance in issue.instances} <= set(lines)
    assert len(issue.instances) == 2
    # The first index of each table becomes another.
    number = iter(range(1, 4))
    different = re.sub(r'"0x0800000000', lambda _: f'"0x08000000{next(number):02}', text)
    assert found(different, "equal-constants") is None

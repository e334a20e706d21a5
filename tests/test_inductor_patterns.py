# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every attention pattern of the installed PyTorch Inductor is raised and right, or left alone for a reason."""

import importlib
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

COVERAGE = Path(__file__).resolve().parent.parent / "docs" / "coverage"
NUMBERS = range(1, 31)
WITH_DROPOUT = (3, 4, 6, 7, 9, 12, 16, 25, 26, 27, 28)
LIVE_DROPOUT = "the probabilities are multiplied before they weigh values, as live dropout does"


@pytest.fixture
def coverage(monkeypatch):
    """Imports a module of docs/coverage, which needs torch."""
    pytest.importorskip("torch")
    pytest.importorskip("iree.turbine")
    monkeypatch.syspath_prepend(COVERAGE)
    return importlib.import_module


def test_the_patterns_are_known_by_number(coverage):
    patterns = list(coverage("inductor_patterns").patterns())
    assert {int(p.name[1:3]) for p in patterns} == set(NUMBERS)
    assert {int(p.name[1:3]) for p in patterns if p.drops} == set(WITH_DROPOUT)


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("number", NUMBERS)
def test_patterns_are_raised_and_right(number, element, coverage, tmp_path):
    cases = list(_cases(coverage, number, element, drops=False))
    assert cases
    for case in cases:
        outcome = _outcome(coverage, case, tmp_path)
        assert outcome.raised == 1, outcome
        assert outcome.is_right, outcome


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("number", WITH_DROPOUT)
def test_live_dropout_is_left_alone(number, element, coverage, tmp_path):
    cases = list(_cases(coverage, number, element, drops=True))
    assert cases
    for case in cases:
        outcome = _outcome(coverage, case, tmp_path)
        assert not outcome.failure
        assert outcome.raised == 0
        assert outcome.missed == ((LIVE_DROPOUT, 1),)


def _cases(coverage, number, element, *, drops):
    inductor = coverage("inductor_patterns")
    for pattern in inductor.patterns():
        if pattern.name.startswith(f"p{number:02}_{element}") and pattern.drops is drops:
            yield from inductor.cases(pattern)


def _outcome(coverage, case, folder):
    coverage("cases").export_case(case, folder)
    return coverage("report").evaluate(folder, case.name, case.expected, "O3")

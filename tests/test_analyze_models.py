# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The issues of whole models: all of what the passes for a model fix, and what is left."""

import pytest

from prepass.analysis.analyze import analyze
from prepass.analysis.issues import State

from .conftest import GFX942

# How many places of each issue are fixed, and how many are left.
MODELS = {
    ("clip1_eager", "prepass-llm"): {
        "assertions": (4, 0),
        "decomposed-attention": (12, 0),
        "f16-sums": (50, 0),
        "horizontal-fusion": (36, 0),
        "scalar-lookups": (2, 0),
        "transposed-weights": (72, 0),
        "unaligned-keys": (0, 12),
        "unit-dim-linears": (72, 0),
    },
    ("flux11", "prepass-flux"): {
        "assertions": (3, 0),
        "gather-like-rope": (2, 0),
        "horizontal-fusion": (9, 2),
        "prompt-only-work": (0, 22),
        "transposed-weights": (20, 0),
        "unit-dim-linears": (30, 0),
    },
    ("vae64", "prepass-sdxl"): {
        "copied-padding": (29, 0),
        "f16-sums": (30, 0),
        "nchw-convolutions": (36, 0),
    },
}


@pytest.mark.slow
@pytest.mark.parametrize(("model", "preset"), MODELS)
def test_issues_of_whole_models(corpus, model, preset):
    analysis = analyze(corpus / "models" / f"{model}.mlir", preset=preset, flags=GFX942)
    issues = {issue.name: issue for issue in analysis.issues}
    assert not any(issue.count(State.FIXABLE) for issue in analysis.issues)
    for name, counts in MODELS[model, preset].items():
        assert (issues[name].count(State.FIXED), issues[name].count(State.LEFT)) == counts, name
        assert all(instance.location.partition(":")[0].endswith(".mlir") for instance in issues[name].instances)

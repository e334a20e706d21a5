# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-fold-contraction-layouts` keeps results and leaves no transpose a dispatch."""

import numpy as np
import pytest

import prepass
from prepass.checking.numerics import compare

from .conftest import LLVM_CPU
from .dispatches import cost
from .horizontal_cases import Linear, attention, build

PASS = "prepass-fold-contraction-layouts"


def folded(program):
    """The results of a program with the pass, and how many contractions it rewrote."""
    found = []

    def on_remark(remark, _):
        if remark.kind.value == "applied":
            found.append(remark)

    pipeline = f"builtin.module({PASS}{{when=always}})"
    compiled = prepass.compile(program.text, pipeline=pipeline, flags=LLVM_CPU, on_remark=on_remark)
    return [np.asarray(result) for result in prepass.run(compiled, *program.inputs)], len(found)


@pytest.mark.parametrize("seed", range(8))
def test_results_stay_the_same(seed):
    rng = np.random.default_rng(seed)
    linear = Linear(
        *(int(size) for size in rng.choice([1, 2, 3], 2)),
        stored=str(rng.choice(["nk", "kn", "bkn"])),
        weight=str(rng.choice(["constant", "constant", "argument"])),
        bias=str(rng.choice(["", "constant", "argument"])),
        scale=rng.choice([None, 0.5]),
        layout=str(rng.choice(["tokens", "heads"])),
        accumulates=bool(rng.choice([False, False, False, True])),
    )
    batch, tokens, terms = (int(rng.integers(low, 6)) for low in (2, 2, 3))
    program = build([linear], batch, tokens, terms, seed=seed)
    results, found = folded(program)
    assert compare(results, program.expected).within(1e-4)
    moves = linear.stored == "bkn" or (linear.layout == "heads" and linear.heads > 1)
    assert found == (moves and linear.weight == "constant" and not linear.accumulates)


@pytest.mark.parametrize("level", ["O0", "O3"])
def test_no_dispatch_is_left_to_a_transpose(level):
    program = attention(2, 128, 128, 4, 4, 64, element="f16", parameters=True)
    before, after = (cost(program.text, pipeline, level) for pipeline in (None, f"builtin.module({PASS})"))
    assert after.dispatches == 4  # Q, K, V and attention.
    assert before.dispatches >= after.dispatches
    assert not any("transpose" in name for name in after.names)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of random control flow against walks through it; random conditions against Python."""

import itertools
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from prepass.amdgpu.assembly import read_kernels
from prepass.amdgpu.conditions import parse_condition
from prepass.amdgpu.control_flow import ControlFlow

from .kernel_assembly import kernel_assembly

STEPS = 300


def random_kernel(rng, blocks):
    """Blocks that fall through, jump or branch anywhere; the last ends."""
    lines = []
    for block in range(blocks):
        lines += [f".LBB0_{block}:", "\tv_mov_b32_e32 v0, 0"]
        kind = rng.choice(["fall", "branch", "branch", "branch", "jump"])
        if kind == "branch":
            lines.append(f"\ts_cbranch_scc1 .LBB0_{rng.randrange(blocks)}")
        elif kind == "jump":
            lines.append(f"\ts_branch .LBB0_{rng.randrange(block + 1, blocks + 1)}")
    lines += [f".LBB0_{blocks}:", "\ts_endpgm"]
    (kernel,) = read_kernels(kernel_assembly("\n".join(lines)))
    return kernel


def check_walk(flow, walk):
    """Whatever comes back to a loop's first block without leaving the loop has run what it always runs."""
    for loop in flow.loops:
        header = next(i for i, b in enumerate(flow.blocks) if flow.kernel.labels[loop.label] == b.start)
        visits = [at for at, block in enumerate(walk) if block == header]
        for start, end in itertools.pairwise(visits):
            iteration = walk[start:end]
            if loop.blocks.issuperset(iteration):
                assert loop.always <= set(iteration)
            # A loop is entered through its first block alone.
        for before, block in itertools.pairwise(walk):
            assert block not in loop.blocks or before in loop.blocks or block == header


@given(st.integers(0, 10**6), st.integers(2, 10))
@settings(max_examples=150, deadline=None)
def test_loops(seed, blocks):
    rng = random.Random(seed)
    flow = ControlFlow(random_kernel(rng, blocks))
    for loop in flow.loops:
        assert loop.always <= loop.blocks
        outer = [other for other in flow.loops if loop.blocks < other.blocks]
        assert loop.depth >= 1 + len(outer)
    walk = [0]
    while len(walk) < STEPS and flow.blocks[walk[-1]].successors:
        walk.append(rng.choice(flow.blocks[walk[-1]].successors))
    check_walk(flow, walk)
    if not flow.blocks[walk[-1]].successors:
        ran = {i for block in walk for i in range(flow.blocks[block].start, flow.blocks[block].end)}
        lines = {flow.kernel.instructions[i].line for i in ran}
        assert {instruction.line for instruction in flow.always} <= lines


NUMBERS = st.sampled_from(["0", "1", "2.5", "spills", "valu", "mfma", "loop.mfma"])
SUMS = st.recursive(
    NUMBERS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*"), inner).map(" ".join),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"-({text})"),
    ),
    max_leaves=6,
)
COMPARISONS = st.tuples(SUMS, st.sampled_from([">", ">=", "<", "<=", "==", "!="]), SUMS).map(" ".join)
CONDITIONS = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"not {text}"),
    ),
    max_leaves=5,
)


@given(CONDITIONS, st.tuples(*[st.integers(0, 5)] * 4))
@settings(max_examples=300, deadline=None)
def test_conditions_are_what_python_makes_of_them(text, values):
    names = dict(zip(("spills", "valu", "mfma", "loop.mfma"), values, strict=True))
    known = {name.replace("loop.", "loop_"): value for name, value in names.items()}
    expected = eval(text.replace("loop.", "loop_"), {"__builtins__": {}}, known)
    assert parse_condition(text).holds(names) is expected

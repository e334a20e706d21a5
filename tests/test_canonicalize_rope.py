# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-canonicalize-rope` on every spelling: results on llvm-cpu against numpy, and bit for bit against stock."""

import random

import numpy as np
import pytest

import prepass
from prepass.checking.numerics import compare

from .conftest import LLVM_CPU
from .graphs import Graph
from .rope_forms import FORMS, Rope, begin, partial

PIPELINE = "builtin.module(prepass-canonicalize-rope,canonicalize,cse)"
OTHER_ROWS = "the channels that are not rotated are not those of the same rows"
NO_BLOCKS = "the row does not split into few blocks of which the rotated ones are whole"
TOLERANCES = {"f32": 1e-5, "f16": 2e-2, "bf16": 1e-1}


def run(source, inputs, pipeline, level="O0"):
    program = prepass.compile(source, pipeline=pipeline, flags=(*LLVM_CPU, f"--iree-opt-level={level}"))
    return [np.asarray(array) for array in prepass.run(program, *inputs)]


def canonicalize(source):
    return prepass.Pipeline().canonicalize_rope().native("canonicalize").cse().run(source)


@pytest.mark.parametrize("dims", ["htd", "thd"])
@pytest.mark.parametrize("name", FORMS)
def test_a_form_against_numpy(name, dims):
    rope = begin(dims, 3, 24, 32, "f32")
    result = FORMS[name](rope)
    source = rope.graph.module(result)
    assert canonicalize(source).counters["canonicalized"] == 1
    found = run(source, rope.graph.inputs(), PIPELINE, "O0" if dims == "htd" else "O3")
    assert compare(found, [result.array]).within(TOLERANCES["f32"])


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_forms_round_as_they_did(element):
    """Only what the compiler contracts to fused multiply-adds differs, by a unit in the last place of a product."""
    graph, results = Graph(), []
    for seed, form in enumerate(FORMS.values()):
        results.append(form(begin("thd", 2, 8, 32, element, seed, graph)))
    source = graph.module(*results)
    assert canonicalize(source).counters["canonicalized"] == len(FORMS)
    stock, ours = (run(source, graph.inputs(), pipeline) for pipeline in (None, PIPELINE))
    assert compare(ours, [result.array for result in results]).within(TOLERANCES[element])
    ulp = {"f16": 2.0**-10, "bf16": 2.0**-7}[element]
    for a, b in zip(stock, ours, strict=True):
        a, b = a.astype(np.float64), b.astype(np.float64)
        assert np.abs(a - b).max() <= 2 * ulp * np.abs(a).max()
        assert np.mean(a == b) > 0.75


def swapped_sign(rope: Rope):
    """x0 · cos + x1 · sin for the first channel."""
    cos, sin = rope.table(np.cos, "f32"), rope.table(np.sin, "f32")
    low, high = rope.half(0), rope.half(1)
    first = rope.added(rope.scaled(low, cos), rope.scaled(high, sin))
    second = rope.added(rope.scaled(high, cos), rope.scaled(low, sin))
    return rope.graph.concat([first, second], rope.last)


def wrong_stride(rope: Rope):
    """The second half is turned by channels that stand a quarter further up."""
    cos, sin = rope.table(np.cos, "f32", repeat="halves"), rope.table(np.sin, "f32", repeat="halves")
    size = rope.channels
    turned = [rope.negated(rope.half(1)), rope.graph.slice(rope.x, rope.last, size // 4, size // 2)]
    return rope.added(rope.scaled(rope.x, cos), rope.scaled(rope.graph.concat(turned, rope.last), sin))


def rolled(rope: Rope):
    """The partner of a channel is its right neighbour, whose partner is the next."""
    cos, sin = rope.table(np.cos, "f32", repeat="halves"), rope.table(np.sin, "f32", repeat="halves")
    size = rope.channels
    rest, first = rope.graph.slice(rope.x, rope.last, 1, size - 1), rope.graph.slice(rope.x, rope.last, 0, 1)
    turned = rope.graph.concat([rest, rope.negated(first)], rope.last)
    return rope.added(rope.scaled(rope.x, cos), rope.scaled(turned, sin))


def other_tables(rope: Rope):
    """Different cosines for the two halves."""
    cos, sin = rope.table(np.cos, "f32"), rope.table(np.sin, "f32")
    other = rope.graph.argument(np.cos(2 * rope.angles), "f32")
    low, high = rope.half(0), rope.half(1)
    first = rope.added(rope.scaled(low, cos), rope.scaled(high, sin), "subf")
    second = rope.added(rope.scaled(high, other), rope.scaled(low, sin))
    return rope.graph.concat([first, second], rope.last)


def two_tensors(rope: Rope):
    """The partners come from another tensor."""
    cos, sin = rope.table(np.cos, "f32", repeat="halves"), rope.table(np.sin, "f32", repeat="halves")
    other = rope.graph.argument(rope.x.array[::-1], "f32")
    turned = rope.graph.concat([rope.negated(rope.half(1, other)), rope.half(0, other)], rope.last)
    return rope.added(rope.scaled(rope.x, cos), rope.scaled(turned, sin))


def other_rows(rope: Rope):
    """The channels that are not rotated come from another tensor; what is rotated is a rotation of its own."""
    graph, x, size = rope.graph, rope.x, rope.channels // 2
    part = Rope(graph, graph.slice(x, rope.last, 0, size), rope.dims, rope.angles[:, : size // 2])
    other = graph.argument(x.array[::-1], "f32")
    return graph.concat([FORMS["rotate_half"](part), graph.slice(other, rope.last, size, size)], rope.last)


def many_parts(rope: Rope):
    """18 of 32 channels: a half is nine parts."""
    return partial(rope, FORMS["rotate_half"], 0, 18)


NEAR_MISSES = {
    swapped_sign: "the signs are not those of a rotation",
    wrong_stride: "the partner of a channel has another partner",
    rolled: None,
    other_tables: "the two channels of a pair have different tables",
    two_tensors: None,
}
# IREE 3.13 takes the concatenation of any negated slice and another for that of rotate_half, and computes that.
SOUND_NEAR_MISSES = [form for form in NEAR_MISSES if form is not wrong_stride]


@pytest.mark.parametrize("form", NEAR_MISSES, ids=lambda form: form.__name__)
def test_a_near_miss_is_left_alone(form):
    rope = begin("htd", 3, 24, 32, "f32")
    source = rope.graph.module(form(rope))
    result = canonicalize(source)
    assert not result.counters["canonicalized"]
    assert result.after == prepass.Pipeline().native("canonicalize").cse().run(source).after
    reason = NEAR_MISSES[form]
    assert [remark.message for remark in result.remarks] == ([reason] if reason else [])


@pytest.mark.parametrize(("form", "reason"), [(other_rows, OTHER_ROWS), (many_parts, NO_BLOCKS)])
def test_a_part_that_is_no_part_of_a_row(form, reason):
    """What is rotated is vectorized, and the concatenation stays."""
    rope = begin("htd", 3, 24, 32, "f32")
    expected = form(rope)
    source = rope.graph.module(expected)
    result = canonicalize(source)
    assert [remark.message for remark in result.remarks] == [reason, "rotation of halves vectorized"]
    assert "tensor.concat" in result.after
    assert compare(run(source, rope.graph.inputs(), PIPELINE), [expected.array]).within(TOLERANCES["f32"])


@pytest.mark.parametrize("inner", ["rotate_half", "strided_slices", "complex_numbers"])
@pytest.mark.parametrize(("first", "size"), [(0, 8), (24, 8), (8, 16), (0, 24), (4, 8), (0, 28)])
def test_a_part_against_numpy(inner, first, size):
    """In any place and of any size; the bits of the other channels stay, whatever they are."""
    rope = begin("thd", 3, 5, 32, "f32")
    special = rope.x.array
    rest = [channel for channel in range(32) if not first <= channel < first + size]
    special[0, 0, rest] = np.resize(np.array([np.inf, -np.inf, np.nan, -0.0, 1e-45]), len(rest))
    expected = partial(rope, FORMS[inner], first, size)
    source = rope.graph.module(expected)
    assert canonicalize(source).counters["canonicalized"] == 1
    assert "tensor.concat" not in canonicalize(source).after
    (found,) = run(source, rope.graph.inputs(), PIPELINE)
    assert compare([found[..., first : first + size]], [expected.array[..., first : first + size]]).within(1e-5)
    bits = special.astype(np.float32).view(np.uint32)
    assert np.array_equal(found.view(np.uint32)[..., rest], bits[..., rest])


@pytest.mark.parametrize("inner", ["rotate_half", "strided_slices"])
def test_a_part_of_the_keys_of_a_joined_projection(inner):
    """Heads and channels are one dim, and so are those of query, key and value."""
    rng, graph = np.random.default_rng(0), Graph()
    tokens, heads, channels = 5, 3, 32
    flat = graph.argument(rng.normal(size=(tokens, heads * 3 * channels)), "f32")
    joined = graph.reshape(flat, [[0], [1, 2]], (tokens, heads, 3 * channels))
    keys = graph.slice(joined, 2, channels, channels)
    expected = partial(Rope(graph, keys, "thd", rng.uniform(0, 6, (tokens, channels // 2))), FORMS[inner], 0, 8)
    source = graph.module(expected)
    result = canonicalize(source)
    assert result.counters["canonicalized"] == 1
    assert "tensor.concat" not in result.after
    assert compare(run(source, graph.inputs(), PIPELINE), [expected.array]).within(TOLERANCES["f32"])


@pytest.mark.parametrize("seed", range(6))
def test_forms_and_near_misses_side_by_side(seed):
    """Random spellings in one program, some of them no rotations: all results stay right."""
    choice = random.Random(seed)
    graph, results, expected = Graph(), [], 0
    for number in range(6):
        form = choice.choice([*FORMS.values(), *SOUND_NEAR_MISSES])
        expected += form in FORMS.values()
        dims = choice.choice(["htd", "thd"])
        sizes = choice.choice([1, 2, 5]), choice.choice([2, 7, 16]), choice.choice([16, 32, 48])
        results.append(form(begin(dims, *sizes, "f32", 10 * seed + number, graph)))
    source = graph.module(*results)
    assert canonicalize(source).counters["canonicalized"] == expected
    found = run(source, graph.inputs(), PIPELINE, choice.choice(["O0", "O3"]))
    assert compare(found, [result.array for result in results]).within(TOLERANCES["f32"])


def test_running_twice_equals_once():
    graph = Graph()
    results = [form(begin("thd", 2, 8, 32, "bf16", 0, graph)) for form in FORMS.values()]
    once = canonicalize(graph.module(*results)).after
    twice = canonicalize(once)
    assert not twice.counters["canonicalized"]
    assert twice.after == once

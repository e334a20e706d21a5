# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-fuse-horizontal-contractions` keeps results, saves dispatches, and packs weights once."""

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from iree.compiler import ir

import prepass
from prepass.amdgpu.inputs import compile_to_assembly
from prepass.checking.numerics import compare
from prepass.ir.match import walk_ops

from .conftest import GFX942, LLVM_CPU
from .dispatches import cost
from .graphs import with_constants, with_parameters
from .horizontal_cases import Linear, attention, build, layers_of_cross_attention

PASS = "prepass-fuse-horizontal-contractions"
FOR_GFX942 = f"builtin.module(prepass-fold-unit-dims,canonicalize,cse,{PASS},prepass-fold-contraction-layouts)"
DOCS = Path(__file__).parent.parent / "docs"
GEGLU = Path(__file__).parent / "data" / "geglu.mlir"
FORMS = ("results", "packed")


def run(program, form, flags=()):
    """The results of a program with the pass, and how many contractions it joined."""
    joined = []

    def on_remark(remark, _):
        if remark.kind.value == "applied" and "at once" in remark.message:
            joined.append(remark)

    pipeline = f"builtin.module({PASS}{{form={form}}})"
    compiled = prepass.compile(program.text, pipeline=pipeline, flags=(*LLVM_CPU, *flags), on_remark=on_remark)
    return [np.asarray(result) for result in prepass.run(compiled, *program.inputs)], len(joined)


def check(program, form, joined):
    results, found = run(program, form)
    assert compare(results, program.expected).within(1e-4)
    assert found == joined


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("linears", "joined"),
    [
        ([Linear(2, 4, bias="constant"), Linear(2, 4), Linear(2, 4, scale=0.5)], 3),
        ([Linear(2, 4, layout="heads", bias="constant"), Linear(2, 4, "kn", layout="heads")], 2),
        ([Linear(2, 4, "bkn"), Linear(2, 4, "bkn"), Linear(3, 4)], None),
        ([Linear(2, 4), Linear(2, 4, depends_on=0)], 0),
        ([Linear(2, 4), Linear(2, 4, accumulates=True), Linear(2, 4, shorter=True)], 0),
    ],
    ids=["biases", "heads", "widths", "dependent", "near misses"],
)
def test_results_stay_the_same(linears, joined, form):
    # Of different widths all are packed, as they have few rows.
    check(build(linears, 2, 6, 8), form, {"results": 2, "packed": 3}[form] if joined is None else joined)


@pytest.mark.parametrize(("form", "joined"), [("results", 2), ("packed", 0)])
def test_weights_of_every_call_are_not_packed(form, joined):
    check(build([Linear(2, 4, weight="argument"), Linear(2, 4, weight="argument")], 2, 6, 8), form, joined)


@pytest.mark.parametrize(("form", "joined"), [("results", 2), ("packed", 0)])
def test_a_gate(form, joined):
    check(build([Linear(2, 4, bias="constant"), Linear(2, 4)], 2, 6, 8, gate=True), form, joined)


@pytest.mark.parametrize(("batch", "kv_heads"), [(1, 4), (2, 4), (1, 2), (2, 2), (2, 1)])
@pytest.mark.parametrize("form", FORMS)
def test_attention(form, batch, kv_heads):
    """Heads of K and V, fewer than those of Q, join Q where packed, and each other in any case."""
    program = attention(batch, 32, 16, 4, kv_heads, 8)
    check(program, form, 3 if kv_heads == 4 or form == "packed" else 2)


LAYERS = f"builtin.module(prepass-raise-attention,{PASS}{{form=packed}})"


@pytest.mark.parametrize("layers", [1, 3])
def test_attention_of_layers_to_one_text(layers):
    """Of more than one layer, each reads its part at an offset that its dispatch is given."""
    graph, expected = layers_of_cross_attention(layers)
    slices = []

    def count(module):
        found = walk_ops(module, "tensor.extract_slice")
        slices.extend([len(found), sum(len(op.operands) > 1 for op in found)])

    program = with_constants(graph, *expected)
    compiled = prepass.compile(program, pipeline=LAYERS, flags=LLVM_CPU, hooks={"preprocessing": count})
    assert compare(prepass.run(compiled, graph.inputs()[0]), [each.array for each in expected]).within(1e-4)
    assert slices == [2 * layers, 2 * layers if layers > 1 else 0]


@pytest.mark.parametrize("level", ["O0", "O3"])
def test_attention_of_equal_layers_is_one_executable(level):
    graph, expected = layers_of_cross_attention(4, 80, 256, 4, 64, "f16")
    found = cost(with_parameters(graph, *expected), LAYERS, level)
    assert sum("attention" in name for name in found.names) == 1
    # One packed product, and the attention of each layer.
    assert found.dispatches == 1 + 4


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed):
    """Of the members, in any form, all are joined but those that only look alike."""
    rng = np.random.default_rng(seed)
    form = FORMS[seed % 2]
    heads, channels = (int(size) for size in rng.choice([2, 3], 2))
    # Packed results are parts of one tensor, so they are laid out alike.
    layouts = ["tokens", "heads"] if form == "results" else [str(rng.choice(["tokens", "heads"]))]
    misses = ["", "depends", "shorter", "accumulates"]
    linears = []
    for number in range(int(rng.integers(2, 5))):
        miss = str(rng.choice(misses, p=[0.7, *[0.3 / (len(misses) - 1)] * (len(misses) - 1)])) if number else ""
        if miss == "shorter":
            misses.remove(miss)  # Two of them would share what they read.
        linears.append(
            Linear(
                heads,
                channels,
                stored=str(rng.choice(["nk", "kn", "bkn"])) if miss != "depends" else "nk",
                bias=str(rng.choice(["", "constant"])),
                scale=rng.choice([None, 0.5]),
                layout=str(rng.choice(layouts)),
                depends_on=0 if miss == "depends" else None,
                shorter=miss == "shorter",
                accumulates=miss == "accumulates",
            )
        )
    alike = sum(not (each.depends_on == 0 or each.shorter or each.accumulates) for each in linears)
    batch, tokens, terms = (int(rng.integers(low, high)) for low, high in ((1, 4), (2, 9), (3, 9)))
    check(build(linears, batch, tokens, terms, seed=seed), form, alike if alike > 1 else 0)


def test_llvm_cpu_declines():
    reasons = set()
    program = build([Linear(2, 4), Linear(2, 4)], 2, 6, 8)
    prepass.compile(
        program.text,
        pipeline=f"builtin.module({PASS})",
        flags=LLVM_CPU,
        on_remark=lambda remark, _: reasons.add(remark.message),
    )
    assert reasons == {"llvm-cpu computes them faster one by one"}


def test_no_layer_of_the_corpus_changes_for_llvm_cpu(corpus):
    """So none is slower there."""

    class _StopError(Exception):
        pass

    def program(text, pipeline):
        found = []

        def keep(module):
            found.append(str(module))
            raise _StopError

        with pytest.raises(_StopError):
            prepass.compile(text, pipeline=pipeline, flags=LLVM_CPU, hooks={"preprocessing": keep})
        return found

    for path in sorted((corpus / "contractions").glob("*.mlir")):
        text = path.read_text().replace("f16", "f32")
        passes = f"builtin.module({PASS},prepass-fold-contraction-layouts)"
        assert program(text, None) == program(text, passes)


def test_the_page_has_a_row_for_each_case(context):
    spec = importlib.util.spec_from_file_location("horizontal_fusion", DOCS / "horizontal_fusion.py")
    script = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = script
    spec.loader.exec_module(script)
    page = (DOCS / "horizontal-fusion.md").read_text()
    for name, make in script.CASES.items():
        assert ir.Module.parse(make(), context)
        assert page.count(f"| {name} |") == len(script.LEVELS) * 2


@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize(("batch", "kv_heads"), [(1, 4), (2, 4), (1, 2), (2, 2)])
def test_three_dispatches_for_gfx942(level, batch, kv_heads):
    program = attention(batch, 128, 128, 4, kv_heads, 64, element="f16", parameters=True)
    found = cost(program.text, FOR_GFX942, level)
    assert found.dispatches == 2  # The output projection would be the third.
    assert any("attention" in name for name in found.names)


@pytest.mark.parametrize("level", ["O0", "O3"])
def test_a_gate_in_one_dispatch_for_gfx942(level):
    """A projection to value and gate is split in two that are joined again, by the elementwise op as well."""
    before = cost(GEGLU, "builtin.module(prepass-split-gated-projections)", level)
    after = cost(GEGLU, f"builtin.module(prepass-split-gated-projections,{PASS})", level)
    assert (before.dispatches, after.dispatches) == (3, 2)


def test_full_tiles_for_gfx942():
    """As many matrix instructions a load as a contraction of its own has: 128 to 24."""
    program = attention(1, 256, 640, 10, 10, 64, element="f16", parameters=True)
    kernels = compile_to_assembly(program.text, pipeline=FOR_GFX942, flags=GFX942)
    (counts,) = (kernel.counts for kernel in kernels if "multi_contract" in kernel.name)
    assert counts.mfmas / counts.accesses_of("load", width=16) >= 128 / 24
    assert not any(kernel.spills for kernel in kernels)
    # V comes with the keys innermost: attention reads no element alone.
    assert not any(kernel.counts.names["ds_read_u16"] for kernel in kernels)


@pytest.mark.parametrize("level", ["O0", "O3"])
def test_weights_are_packed_once_and_kept_once(level):
    program = attention(2, 128, 128, 4, 2, 64, element="f16", parameters=True)
    kept, copies = [], []

    def stream(module):
        text = str(module)
        initializers = re.findall(r"util\.initializer.*?\n  }", text, re.DOTALL)
        copies.extend(re.findall(r"stream\.cmd\.copy .*?, %c(\d+) :", "".join(initializers)))
        stores = re.findall(r"util\.global\.store %\S+, @(\S+) : !stream", "".join(initializers))
        kept.extend(stores)
        assert "stream.cmd.dispatch" not in "".join(initializers)

    flags = (*GFX942, f"--iree-opt-level={level}")
    prepass.compile(program.text, pipeline=FOR_GFX942, flags=flags, hooks={"stream": stream})
    # 8 heads of 64 columns, 128 terms, f16.
    assert sum(map(int, copies)) == 8 * 64 * 128 * 2
    assert len(kept) == 1

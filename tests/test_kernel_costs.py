# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What kernels say they cost is what their code costs, and those that are selected by default beat IREE's."""

import importlib.util
from pathlib import Path

import pytest

from prepass.amdgpu.inputs import compile_to_assembly
from prepass.analysis.attention_scores import scores_per_iteration
from prepass.analysis.kernel_costs import STOCK, price_example, price_kernel, price_loop
from prepass.kernels import KERNELS
from prepass.pipeline.registry import default_registry

from .conftest import GFX942

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("name", KERNELS)
def test_figures_are_those_of_the_code(name):
    kernel = default_registry().kernel(name)
    facts, expected = kernel.description, kernel.description.figures
    loop = price_kernel(kernel, kernel.examples()[0])
    assert loop.figures.metadata.lds_bytes >= facts.lds_bytes
    if expected is None:
        return
    share = 1 / loop.iterations if expected.per == "an iteration" else 1
    assert expected.per in ("an iteration", loop.per)
    for unit in ("mfma", "valu", "lds"):
        assert getattr(loop.cycles, unit) * share == pytest.approx(getattr(expected, unit), rel=0.02), unit
    assert loop.figures.metadata.vgprs == pytest.approx(expected.vgprs, abs=4)
    assert loop.figures.spills == expected.spills


def attention(heads, tokens, channels, element):
    """Self attention with V as (n, k2)."""
    qk, v = f"tensor<{heads}x{tokens}x{channels}x{element}>", f"tensor<{heads}x{channels}x{tokens}x{element}>"
    maps = ("(b, m, k1)", "(b, k2, k1)", "(b, n, k2)", "()", "(b, m, n)")
    text = ", ".join(f"affine_map<(b, m, n, k1, k2) -> {dims}>" for dims in maps)
    return f"""\
func.func @main(%q: {qk}, %k: {qk}, %v: {v}) -> {qk} {{
  %scale = arith.constant 0.125 : {element}
  %e = tensor.empty() : {qk}
  %o = iree_linalg_ext.attention <{{indexing_maps = [{text}]}}>
      ins(%q, %k, %v, %scale : {qk}, {qk}, {v}, {element}) outs(%e : {qk}) {{
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  }} -> {qk}
  return %o : {qk}
}}
"""


@pytest.mark.parametrize(
    ("channels", "cycles"),
    # With 128 channels IREE computes all scores twice, in one workgroup for each half of the result's channels.
    [(64, (512, 596, 672)), (128, (1536, 1208, 1984))],
)
def test_scores_of_iree_s_attention_count_once(channels, cycles):
    scores = {}
    hooks = {"executable-configurations": lambda module: scores.update(scores_per_iteration(module))}
    code = compile_to_assembly(attention(20, 4096, channels, "f16"), flags=GFX942, hooks=hooks)
    ((name, count),) = scores.items()
    found = price_loop(code, name, count).cycles
    assert (found.mfma, found.valu, found.lds) == cycles


def test_the_page_has_a_row_for_each_way(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("kernel_figures", ROOT / "docs" / "kernel_figures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = tmp_path / "page.md"
    monkeypatch.setattr("sys.argv", ["kernel_figures.py", f"--output={page}", "direct-matmul"])
    module.main()
    rows = [line for line in page.read_text().splitlines() if line.startswith(("| direct-matmul |", f"| {STOCK} |"))]
    assert len(rows) == 2 * len(default_registry().kernel("direct-matmul").examples())
    assert "| direct-matmul | 2048 | 112 | 0 | 5120 | memory | 40% | 40 | 0 | 0 | 16 | 256 | 10 |" in rows


def default_examples():
    """Every example of the kernels that are selected by default."""
    kernels = [kernel for kernel in map(default_registry().kernel, KERNELS) if kernel.by_default]
    return [
        pytest.param(kernel, example, id=f"{kernel.name}: {example.name}")
        for kernel in kernels
        for example in kernel.examples()
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "example"), default_examples())
def test_what_is_selected_by_default_is_never_worse(kernel, example):
    priced = price_example(kernel, example)
    ours = priced.pop(kernel.name)
    assert ours.figures.spills <= priced[STOCK].figures.spills
    assert ours.workgroup.busiest_cu_cycles <= min(code.workgroup.busiest_cu_cycles for code in priced.values())

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-select-kernels`: selected kernels against numpy and against the code that IREE makes, in the simulator."""

import numpy as np
import pytest

import prepass
from prepass.checking.numerics import compare
from prepass.errors import PipelineError, PrepassError
from prepass.simulator import compile_program, run_program, simulate

from .conftest import GFX942


def product(rows, columns, terms, element="f16", *, body="%x", sums="%zero"):
    """A matrix product and something done with each element of it."""
    a, b, c = (
        f"tensor<{rows}x{terms}x{element}>",
        f"tensor<{columns}x{terms}x{element}>",
        f"tensor<{rows}x{columns}xf32>",
    )
    return f"""\
func.func @main(%a: {a}, %b: {b}) -> {c} {{
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : {c}
  %f = linalg.fill ins({sums} : f32) outs(%e : {c}) -> {c}
  %p = linalg.matmul indexing_maps = [
      affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : {a}, {b}) outs(%f : {c}) -> {c}
  %r = linalg.generic {{
      indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}} ins(%p : {c}) outs(%e : {c}) {{
    ^bb0(%x: f32, %o: f32):
      %m = arith.maximumf %x, %zero : f32
      linalg.yield {body} : f32
  }} -> {c}
  return %r : {c}
}}
"""


def inputs(rows, columns, terms):
    random = np.random.default_rng(rows + terms)
    return [random.standard_normal((size, terms)).astype(np.float16) for size in (rows, columns)]


def remarks_of(source, **options):
    """The messages of the pass."""
    found = []
    prepass.compile(source, flags=GFX942, on_remark=lambda remark, _: found.append(remark), **options)
    return [remark.message for remark in found if remark.pass_name == "prepass-select-kernels"]


@pytest.mark.parametrize("sizes", [(64, 64, 16), (128, 64, 80), (64, 192, 48)])
@pytest.mark.parametrize("body", ["%x", "%m"])
def test_against_numpy_and_the_stock_compile(sizes, body):
    a, b = inputs(*sizes)
    source = product(*sizes, body=body)
    (result,) = simulate(source, [a, b], kernels="direct-matmul")
    (stock,) = simulate(source, [a, b])
    expected = a.astype(np.float64) @ b.astype(np.float64).T
    expected = np.maximum(expected, 0) if body == "%m" else expected
    scale = abs(expected).max()
    assert compare([result], [expected]).within(1e-5 * scale)
    assert compare([result], [stock]).within(1e-5 * scale)


def test_bf16():
    a, b = (array.astype(np.float32) for array in inputs(64, 64, 32))
    program = compile_program(product(64, 64, 32, "bf16"), kernels="direct-matmul")
    (result,) = run_program(program, [a, b])
    assert "v_mfma_f32_16x16x16_bf16" in program.assembly[0]
    expected = a @ b.T
    assert compare([result], [expected]).within(1e-2 * abs(expected).max())


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (product(80, 64, 16), "direct-matmul: M is 80, not a multiple of 64"),
        (product(64, 80, 16), "direct-matmul: N is 80, not a multiple of 64"),
        (product(64, 64, 24), "direct-matmul: K is 24, not a multiple of 16"),
        (product(64, 64, 16, "f32"), "direct-matmul: the operands are of type f32, not all f16 or bf16"),
        (product(64, 64, 16, sums="%one"), "direct-matmul: the sums do not start from zero"),
    ],
)
def test_each_reason_to_leave_an_op_alone(source, reason):
    assert remarks_of(source, kernels="direct-matmul") == [reason]


def test_the_argument_wins_over_the_pipeline():
    pipeline = "builtin.module(prepass-select-kernels{kernels=direct-matmul})"
    source = product(64, 64, 16)
    assert remarks_of(source, pipeline=pipeline) == ["computed by direct-matmul"]
    assert remarks_of(source, pipeline=pipeline, kernels="none") == []
    assert remarks_of(source, kernels=["direct-matmul"]) == ["computed by direct-matmul"]


def test_names_are_checked():
    with pytest.raises(PrepassError, match="no kernel 'direct-matmal'; did you mean 'direct-matmul'"):
        prepass.compile(product(64, 64, 16), kernels="direct-matmal", flags=GFX942)
    with pytest.raises(PipelineError, match=r"column 16.*'all' stands alone"):
        prepass.compile(product(64, 64, 16), pipeline="builtin.module(prepass-select-kernels{kernels=all,none})")


def test_other_targets_are_untouched():
    source = product(64, 64, 16)
    flags = ["--iree-hal-target-device=hip", "--iree-rocm-target=gfx1100"]
    found = []
    selected = prepass.compile(
        source, kernels="direct-matmul", flags=flags, on_remark=lambda remark, _: found.append(remark)
    )
    assert selected == prepass.compile(source, flags=flags)
    assert [remark.message for remark in found] == ["no kernel is for gfx1100"]


def test_ops_with_a_config_are_left_to_it_and_kernels_come_before_configs():
    pipeline = "builtin.module(prepass-configure-attention,prepass-select-kernels{kernels=direct-matmul})"
    order = []
    prepass.compile(
        ATTENTION, pipeline=pipeline, flags=GFX942, on_remark=lambda remark, _: order.append(remark.pass_name)
    )
    assert order.index("prepass-select-kernels") < order.index("prepass-configure-attention")


ATTENTION = f"""\
{product(64, 64, 16).strip()}
func.func @attend(%q: tensor<2x64x64xf16>, %k: tensor<2x64x64xf16>, %v: tensor<2x64x64xf16>) -> tensor<2x64x64xf16> {{
  %scale = arith.constant 0.125 : f16
  %e = tensor.empty() : tensor<2x64x64xf16>
  %o = iree_linalg_ext.attention <{{indexing_maps = [
      affine_map<(b, m, n, k1, k2) -> (b, m, k1)>, affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>,
      affine_map<(b, m, n, k1, k2) -> (b, k2, n)>, affine_map<(b, m, n, k1, k2) -> ()>,
      affine_map<(b, m, n, k1, k2) -> (b, m, n)>]}}>
      ins(%q, %k, %v, %scale : tensor<2x64x64xf16>, tensor<2x64x64xf16>, tensor<2x64x64xf16>, f16)
      outs(%e : tensor<2x64x64xf16>) {{
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  }} -> tensor<2x64x64xf16>
  return %o : tensor<2x64x64xf16>
}}
"""


def test_a_compile_goes_on_from_the_phase_of_kernels(program, tmp_path):
    source, sources = tmp_path / "product.mlir", tmp_path / "sources.mlir"
    source.write_text(product(64, 64, 32))
    first = program(
        "prepass-compile",
        source,
        *GFX942,
        "--prepass-kernels=direct-matmul",
        "--compile-to=executable-sources",
        "-o",
        sources,
    )
    dump = f"--iree-hal-dump-executable-intermediates-to={tmp_path}"
    go_on = ["--compile-from=executable-sources", dump, "-o", tmp_path / "product.vmfb"]
    second = program("iree-compile", sources, *GFX942, *go_on)
    assert [first.returncode, second.returncode] == [0, 0], second.stderr
    (assembly,) = tmp_path.glob("*.rocmasm")
    whole = compile_program(product(64, 64, 32), kernels="direct-matmul").assembly[0]
    assert instructions(assembly.read_text()) == instructions(whole)


def instructions(assembly):
    """The instructions of assembly, without directives and comments."""
    return [line for line in assembly.splitlines() if line.startswith("\t") and not line.startswith(("\t.", "\t;"))]

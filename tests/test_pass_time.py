# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-raise-attention` takes time in proportion to the module, and not long on the largest models."""

import importlib
from pathlib import Path

import pytest

import prepass

DOCS = Path(__file__).resolve().parent.parent / "docs"


@pytest.fixture
def pass_time(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    return importlib.import_module("pass_time")


def test_time_is_linear_in_the_ops(pass_time):
    few, many = (pass_time.measure(pass_time.transformer(n), f"{n} layers") for n in (4, 32))
    assert (few.raised, many.raised) == (4, 32)
    assert many.ops > 7 * few.ops
    # CPU time, but that of a machine which may be busy: anything quadratic would be 8.
    assert many.seconds / many.ops < 2.5 * few.seconds / few.ops


@pytest.mark.slow
@pytest.mark.parametrize(("name", "raised"), [("clip2_eager", 32), ("unet", 0)])
def test_large_models_take_less_than_two_seconds(name, raised, pass_time, corpus):
    measured = pass_time.measure(corpus / "models" / f"{name}.mlir", name)
    assert measured.raised == raised
    assert measured.seconds < 2


# A value used twice at every step has 2^60 paths to its root.
SHARED = """\
#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
func.func @f(%q: tensor<2x8x16xf32>, %k: tensor<2x16x12xf32>, %v: tensor<2x12x16xf32>) -> tensor<2x8x16xf32> {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x8x12xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x8x12xf32>) -> tensor<2x8x12xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<2x8x16xf32>, tensor<2x16x12xf32>)
    outs(%f : tensor<2x8x12xf32>) -> tensor<2x8x12xf32>
  %g = linalg.generic {{indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%s : tensor<2x8x12xf32>) outs(%e : tensor<2x8x12xf32>) {{
  ^bb0(%x0: f32, %out: f32):
    {steps}
    %y = arith.divf %x60, %x0 : f32
    linalg.yield %y : f32
  }} -> tensor<2x8x12xf32>
  {softmax}
  %eo = tensor.empty() : tensor<2x8x16xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x8x12xf32>, tensor<2x12x16xf32>)
    outs(%fo : tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %o : tensor<2x8x16xf32>
}}
"""
SOFTMAX = (
    "%p = linalg.softmax dimension(2) ins(%g : tensor<2x8x12xf32>) outs(%e : tensor<2x8x12xf32>) -> tensor<2x8x12xf32>"
)


@pytest.mark.parametrize("op", ["arith.addf", "arith.mulf", "arith.subf", "arith.divf", "arith.maximumf"])
@pytest.mark.parametrize("with_softmax", [True, False])
def test_shared_values_do_not_multiply_the_time(op, with_softmax):
    steps = "\n    ".join(f"%x{n + 1} = {op} %x{n}, %x{n} : f32" for n in range(60))
    text = SHARED.format(steps=steps, softmax=SOFTMAX if with_softmax else "")
    result = prepass.Pipeline().raise_attention().run(text if with_softmax else text.replace("%p", "%g"))
    assert "iree_linalg_ext.attention" not in result.after
    assert result.seconds < 5

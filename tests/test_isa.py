# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading the assembly of kernels."""

import pytest

from prepass.checking.isa import compile_to_assembly, read_assembly

from .conftest import GFX942

MATMUL = """\
func.func @FUNCTION(%a: tensor<128x256xf16>, %b: tensor<256x128xf16>) -> tensor<128x128xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x128xf32>) -> tensor<128x128xf32>
  %r = linalg.matmul ins(%a, %b : tensor<128x256xf16>, tensor<256x128xf16>) outs(%f : tensor<128x128xf32>)
      -> tensor<128x128xf32>
  return %r : tensor<128x128xf32>
}
"""


@pytest.mark.parametrize("function", ["main", '"main$async"'])
def test_counts_a_matmul(function):
    (kernel,) = compile_to_assembly(MATMUL.replace("FUNCTION", function), flags=GFX942)
    assert kernel.name.startswith(function.strip('"'))
    assert kernel.mfmas == sum(n for name, n in kernel.instructions.items() if name.startswith("v_mfma")) > 0
    assert 0 < kernel.loop.total() < kernel.instructions.total()
    assert kernel.vgprs > 0
    assert kernel.vgpr_spills == 0
    assert 0 < kernel.lds_bytes <= 65536


def test_text_without_kernels_has_none():
    assert read_assembly("s_endpgm\n") == []

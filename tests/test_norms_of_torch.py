# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Norms and statistics of torch in half precision, at means and scales that break sums in half precision."""

import ml_dtypes
import numpy as np
import pytest

import prepass

from .conftest import LLVM_CPU

torch = pytest.importorskip("torch")
aot = pytest.importorskip("iree.turbine.aot")

pytestmark = pytest.mark.slow

PIPELINE = "builtin.module(prepass-promote-accumulators,prepass-simplify-casts,canonicalize,cse)"
# Relative to the largest result; bf16 has three bits less.
TOLERANCES = {"float16": 2e-3, "bfloat16": 1.6e-2}


class Function(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def rms_norm(x):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


# torch exports no bf16 constants, so the norms are without weights.
CASES = {
    "layer_norm": (torch.nn.LayerNorm(640, elementwise_affine=False), (2, 64, 640)),
    "rms_norm": (Function(rms_norm), (2, 64, 640)),
    "group_norm_unet": (torch.nn.GroupNorm(32, 320, affine=False), (2, 320, 32, 32)),
    "group_norm_vae": (torch.nn.GroupNorm(32, 128, affine=False), (1, 128, 64, 64)),
    "mean": (Function(lambda x: x.mean(-1)), (64, 4096)),
    "variance": (Function(lambda x: x.var(-1)), (64, 640)),
}


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_torch(name, dtype):
    module, shape = CASES[name]
    generator = torch.Generator().manual_seed(0)
    torch_dtype = getattr(torch, dtype)
    numpy_dtype = np.dtype(np.float16 if dtype == "float16" else ml_dtypes.bfloat16)
    normal = torch.randn(shape, generator=generator)
    source = f"{aot.export(module.eval(), normal.to(torch_dtype)).mlir_module}\n"
    program = prepass.load(prepass.compile(source, pipeline=PIPELINE, flags=LLVM_CPU))
    for mean, scale in ((0, 20), (20, 1), (20, 20)):
        x = (normal * scale + mean).to(torch_dtype)
        expected = module(x).float().numpy()
        (result,) = program(x.float().numpy().astype(numpy_dtype))
        error = np.abs(result.astype(np.float32) - expected).max() / np.abs(expected).max()
        assert error <= TOLERANCES[dtype], (mean, scale)

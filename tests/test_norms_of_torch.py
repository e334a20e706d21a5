# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Norms and statistics of torch in half precision, at means and scales that break sums in half precision."""

import ml_dtypes
import numpy as np
import pytest

import prepass

from .conftest import LLVM_CPU

pytestmark = pytest.mark.slow

PIPELINE = "builtin.module(prepass-promote-accumulators,prepass-simplify-casts,canonicalize,cse)"
# Relative to the largest result; bf16 has three bits less.
TOLERANCES = {"float16": 2e-3, "bfloat16": 1.6e-2}
SHAPES = {
    "layer_norm": (2, 64, 640),
    "rms_norm": (2, 64, 640),
    "group_norm_unet": (2, 320, 32, 32),
    "group_norm_vae": (1, 128, 64, 64),
    "mean": (64, 4096),
    "variance": (64, 640),
}


def norm(torch, name):
    """A norm as a module. torch exports no bf16 constants, so it is without weights."""

    class Function(torch.nn.Module):
        def forward(self, x):
            if name == "rms_norm":
                return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
            return x.mean(-1) if name == "mean" else x.var(-1)

    if name == "layer_norm":
        return torch.nn.LayerNorm(SHAPES[name][-1], elementwise_affine=False)
    if name.startswith("group_norm"):
        return torch.nn.GroupNorm(32, SHAPES[name][1], affine=False)
    return Function()


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", SHAPES)
def test_results_are_those_of_torch(name, dtype):
    torch = pytest.importorskip("torch")
    aot = pytest.importorskip("iree.turbine.aot")
    module = norm(torch, name)
    generator = torch.Generator().manual_seed(0)
    torch_dtype = getattr(torch, dtype)
    numpy_dtype = np.dtype(np.float16 if dtype == "float16" else ml_dtypes.bfloat16)
    normal = torch.randn(SHAPES[name], generator=generator)
    source = f"{aot.export(module.eval(), normal.to(torch_dtype)).mlir_module}\n"
    program = prepass.load(prepass.compile(source, pipeline=PIPELINE, flags=LLVM_CPU))
    for mean, scale in ((0, 20), (20, 1), (20, 20)):
        x = (normal * scale + mean).to(torch_dtype)
        expected = module(x).float().numpy()
        (result,) = program(x.float().numpy().astype(numpy_dtype))
        error = np.abs(result.astype(np.float32) - expected).max() / np.abs(expected).max()
        assert error <= TOLERANCES[dtype], (mean, scale)

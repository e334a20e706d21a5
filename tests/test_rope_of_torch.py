# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rotary embeddings written in torch, as models have them: dispatches on gfx942, results on llvm-cpu against torch."""

import numpy as np
import pytest

import prepass
from prepass.checking.numerics import compare

from .conftest import LLVM_CPU
from .dispatches import cost

pytestmark = pytest.mark.slow

PIPELINE = "builtin.module(prepass-canonicalize-rope,canonicalize,cse)"
HEADS, TOKENS, CHANNELS = 4, 32, 64
TOLERANCES = {"float32": 1e-5, "float16": 1e-2}


def rotate_half(torch, x, angles):
    cos, sin = (torch.cat([table, table], -1).to(x.dtype) for table in (angles.cos(), angles.sin()))
    low, high = x.chunk(2, -1)
    return x * cos + torch.cat([-high, low], -1) * sin


def some_channels(torch, x, angles):
    size = CHANNELS // 2
    return torch.cat([rotate_half(torch, x[..., :size], angles[..., : size // 2]), x[..., size:]], -1)


def stacked(torch, x, angles):
    cos, sin = (table.repeat_interleave(2, -1) for table in (angles.cos(), angles.sin()))
    low, high = x.reshape(*x.shape[:-1], -1, 2).unbind(-1)
    turned = torch.stack([-high, low], -1).flatten(3)
    return (x.float() * cos + turned.float() * sin).to(x.dtype)


def matrices(torch, x, angles):
    cos, sin = angles.cos(), angles.sin()
    matrix = torch.stack([cos, -sin, sin, cos], -1).unflatten(-1, (2, 2))
    pairs = x.float().reshape(*x.shape[:-1], -1, 1, 2)
    return (matrix[..., 0] * pairs[..., 0] + matrix[..., 1] * pairs[..., 1]).reshape(x.shape).to(x.dtype)


def complex_numbers(torch, x, angles):
    turns = torch.complex(angles.cos(), angles.sin())
    numbers = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(numbers * turns).flatten(3).to(x.dtype)


def strided(torch, x, angles):
    cos, sin = (table.repeat_interleave(2, -1).to(x.dtype) for table in (angles.cos(), angles.sin()))
    turned = torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(3)
    return x * cos + turned * sin


def some_neighbours(torch, x, angles):
    size = CHANNELS // 4
    return torch.cat([strided(torch, x[..., :size], angles[..., : size // 2]), x[..., size:]], -1)


FORMS = (rotate_half, some_channels, stacked, matrices, complex_numbers, strided, some_neighbours)


def export(form, dtype, projected):
    """A module over (1, heads, tokens, channels), or over what a projection gives, its inputs and its result."""
    torch = pytest.importorskip("torch")
    aot = pytest.importorskip("iree.turbine.aot")

    class Form(torch.nn.Module):
        def forward(self, x, angles):
            if projected:
                x = x.unflatten(-1, (HEADS, CHANNELS)).transpose(1, 2)
            return form(torch, x, angles)

    generator = torch.Generator().manual_seed(0)
    shape = (1, TOKENS, HEADS * CHANNELS) if projected else (1, HEADS, TOKENS, CHANNELS)
    inputs = (
        torch.randn(shape, generator=generator).to(getattr(torch, dtype)),
        torch.rand((TOKENS, CHANNELS // 2), generator=generator) * 6,
    )
    expected = Form()(*inputs).float().numpy()
    return f"{aot.export(Form().eval(), *inputs).mlir_module}\n", [tensor.numpy() for tensor in inputs], expected


@pytest.mark.parametrize("projected", [False, True], ids=["heads", "projection"])
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_a_form(form, dtype, projected):
    """One dispatch, and one for the tables."""
    source, inputs, expected = export(form, dtype, projected)
    rotated = []

    def note(remark, _):
        rotated.extend([remark] if remark.kind.value == "applied" and "rotation" in remark.message else [])

    for level in ("O0", "O3"):
        program = prepass.compile(
            source, pipeline=PIPELINE, flags=(*LLVM_CPU, f"--iree-opt-level={level}"), on_remark=note
        )
        found = [np.asarray(array).astype(np.float32) for array in prepass.run(program, *inputs)]
        assert compare(found, [expected]).within(TOLERANCES[dtype])
        assert cost(source, PIPELINE, level).dispatches <= 2
    assert len(rotated) == 2

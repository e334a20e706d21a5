# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-configure-contractions` gives contractions with several results full tiles; read from the assembly."""

import pytest

import prepass
from prepass.amdgpu.inputs import compile_to_assembly

from .conftest import GFX942

PIPELINE = "builtin.module(prepass-fuse-horizontal-contractions{form=results})"  # It brings the other along.
# IREE's tile for one result has 128 matrix instructions to 24 loads of 16 bytes a lane.
STOCK = 128 / 24


def module(results: int, element: str) -> str:
    """Products of one matrix with `results` others."""
    names = "abc"[:results]
    of, type_ = f"tensor<256x640x{element}>", "tensor<256x256xf32>"
    maps = ", ".join(f"affine_map<(m, n, k) -> {dims}>" for dims in ("(m, k)", "(n, k)", "(m, n)"))
    lines = [
        f"%{name}r = linalg.matmul indexing_maps = [{maps}] ins(%x, %{name} : {of}, {of}) outs(%f : {type_}) -> {type_}"
        for name in names
    ]
    arguments = ", ".join(f"%{name}: {of}" for name in ("x", *names))
    types = ", ".join([type_] * results)
    body = "\n".join(lines)
    return (
        f"func.func @main({arguments}) -> ({types}) {{\n  %z = arith.constant 0.0 : f32\n"
        f"  %e = tensor.empty() : {type_}\n  %f = linalg.fill ins(%z : f32) outs(%e : {type_}) -> {type_}\n"
        f"{body}\n  return {', '.join(f'%{name}r' for name in names)} : {types}\n}}\n"
    )


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("results", [2, 3])
def test_full_tiles(results, element):
    (kernel,) = compile_to_assembly(module(results, element), pipeline=PIPELINE, flags=GFX942)
    assert kernel.counts.mfmas / kernel.counts.accesses_of("load", width=16) >= STOCK
    assert kernel.spills == 0


def test_other_shapes_keep_the_default():
    reasons = set()
    text = module(2, "f16").replace("256x640", "250x640").replace("256x256", "250x250")
    prepass.compile(text, pipeline=PIPELINE, flags=GFX942, on_remark=lambda remark, _: reasons.add(remark.message))
    assert "no tile divides its loops; IREE's default is kept" in reasons

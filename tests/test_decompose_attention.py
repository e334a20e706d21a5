# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-decompose-attention`: layouts, masks and shared heads against numpy."""

import numpy as np
import pytest

import prepass
from prepass.checking.numerics import compare
from prepass.pipeline.base import RemarkKind

from .conftest import LLVM_CPU
from .graphs import softmax
from .test_configure_attention import attention_op

PIPELINE = "builtin.module(prepass-decompose-attention)"
BATCH, QUERIES, KEYS, CHANNELS = 2, 32, 64, 16
EXTENTS = {"b": BATCH, "h": 3, "m": QUERIES, "n": CHANNELS, "k1": CHANNELS, "k2": KEYS}


def attention(dims: dict[str, str], mask: str = "f32") -> str:
    """An attention op whose operands have the dims that are named for them."""
    loops = "b, h, m, n, k1, k2" if any("h" in names for names in dims.values()) else "b, m, n, k1, k2"
    names = [name for name in ("q", "k", "v", "scale", "mask", "init") if name in dims]
    types = {
        name: "f32"
        if name == "scale"
        else f"tensor<{'x'.join(map(str, shape(dims[name])))}x{mask if name == 'mask' else 'f32'}>"
        for name in names
    }
    maps = ", ".join(f"affine_map<({loops}) -> ({dims[name]})>" for name in names)
    arguments = ", ".join(f"%{name}: {types[name]}" for name in names if name not in ("scale", "init"))
    inputs = names[:-1]
    return f"""
func.func @main({arguments}) -> {types["init"]} {{
  %scale = arith.constant 0.3 : f32
  %init = tensor.empty() : {types["init"]}
  %out = iree_linalg_ext.attention <indexing_maps = [{maps}]>
      ins({", ".join(f"%{name}" for name in inputs)} : {", ".join(types[name] for name in inputs)})
      outs(%init : {types["init"]}) {{
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  }} -> {types["init"]}
  return %out : {types["init"]}
}}
"""


def shape(dims: str) -> tuple[int, ...]:
    """The extents of a comma-separated list of dims."""
    return tuple(EXTENTS[name] for name in dims.split(", "))


def letters(dims: str) -> str:
    """The dims as `numpy.einsum` takes them."""
    return dims.replace("k1", "c").replace("k2", "k").replace(", ", "")


def reference(dims: dict[str, str], q, k, v, mask=None) -> np.ndarray:
    scores_dims = letters(dims["init"]).replace("n", "") + "k"
    wide = [array.astype(np.float64) for array in (q, k, v)]
    scores = 0.3 * np.einsum(f"{letters(dims['q'])},{letters(dims['k'])}->{scores_dims}", *wide[:2])
    if mask is not None:
        where = tuple(slice(None) if dim in letters(dims["mask"]) else None for dim in scores_dims)
        scores = np.where(mask[where], scores, -np.inf) if mask.dtype == bool else scores + mask[where]
    weights = softmax(scores, scores.ndim - 1)
    return np.einsum(f"{scores_dims},{letters(dims['v'])}->{letters(dims['init'])}", weights, wide[2])


PLAIN = {"q": "b, m, k1", "k": "b, k2, k1", "v": "b, k2, n", "scale": "", "init": "b, m, n"}


@pytest.mark.parametrize(
    ("changes", "mask"),
    [
        ({}, ""),
        ({"k": "b, k1, k2"}, ""),
        ({"v": "b, n, k2"}, ""),
        ({"q": "m, b, k1", "k": "k2, b, k1", "init": "m, b, n"}, ""),
        ({"mask": "k2"}, "f32"),
        ({"mask": "m, k2"}, "f16"),
        ({"mask": "b, m, k2"}, "i1"),
        ({"q": "b, h, m, k1", "init": "b, h, m, n"}, ""),
        ({"q": "b, h, m, k1", "init": "b, h, m, n", "mask": "h, k2"}, "i1"),
        ({"q": "b, h, m, k1", "k": "b, h, k2, k1", "v": "b, h, k2, n", "init": "b, h, m, n"}, ""),
    ],
)
@pytest.mark.parametrize("level", ["O0", "O3"])
def test_results_stay_the_same(changes, mask, level):
    dims = {name: {**PLAIN, **changes}.get(name, "") for name in ("q", "k", "v", "scale", "mask", "init")}
    if not mask:
        del dims["mask"]
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(shape(dims[name])).astype(np.float32) for name in ("q", "k", "v")]
    if mask:
        bits = rng.random(shape(dims["mask"])) < 0.7
        inputs.append(bits if mask == "i1" else np.where(bits, 0.5, -1e4).astype({"f16": "f2", "f32": "f4"}[mask]))
    remarks = []
    program = prepass.compile(
        attention(dims, mask),
        pipeline=PIPELINE,
        flags=(*LLVM_CPU, f"--iree-opt-level={level}"),
        on_remark=lambda remark, location: remarks.append(remark.kind),
    )
    assert remarks == [RemarkKind.APPLIED]
    assert compare(prepass.run(program, *inputs), [reference(dims, *inputs)]).within(1e-5)


@pytest.mark.parametrize(
    ("queries", "keys", "element"), [(128, 77, "f32"), (1, 128, "f32"), (128, 128, "f16"), (1024, 1024, "f32")]
)
def test_what_one_kernel_does_better_is_left_alone(queries, keys, element):
    remarks = []
    prepass.compile(
        attention_op(20, queries, keys, 64, element),
        pipeline=PIPELINE,
        flags=LLVM_CPU,
        on_remark=lambda remark, location: remarks.append(remark.kind),
    )
    assert remarks == [RemarkKind.MISSED]

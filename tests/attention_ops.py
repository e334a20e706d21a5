# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention ops of any layout, mask and sharing of heads, and their numpy reference."""

from __future__ import annotations

import numpy as np

from .graphs import softmax

BATCH, QUERIES, KEYS, CHANNELS = 2, 32, 64, 16
EXTENTS = {"b": BATCH, "h": 3, "m": QUERIES, "n": CHANNELS, "k1": CHANNELS, "k2": KEYS}


def attention_module(dims: dict[str, str], mask: str = "") -> str:
    """A module with one attention op, whose operands have the dims named for them; `mask` is an element type."""
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


# The dims of batch, queries, keys and channels as torch lays them out.
PLAIN = {"q": "b, m, k1", "k": "b, k2, k1", "v": "b, k2, n", "scale": "", "init": "b, m, n"}


def inputs_of(dims: dict[str, str], mask: str = "") -> list[np.ndarray]:
    """Random Q, K, V and, where there is one, a mask that takes out about a third of the scores."""
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(shape(dims[name])).astype(np.float32) for name in ("q", "k", "v")]
    if mask:
        bits = rng.random(shape(dims["mask"])) < 0.7
        inputs.append(bits if mask == "i1" else np.where(bits, 0.5, -1e4).astype({"f16": "f2", "f32": "f4"}[mask]))
    return inputs

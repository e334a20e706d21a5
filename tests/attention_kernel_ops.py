# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention ops of any loops and layouts, for kernels, with inputs and their numpy reference."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

PLAIN = {"q": "b m d", "k": "b s d", "v": "b s n", "out": "b m n"}
TRANSPOSED = {**PLAIN, "v": "b n s"}
_LOOPS = "bchgmndes"


@dataclass(frozen=True)
class Attention:
    """One attention op.

    Attributes:
      sizes: The extent of each loop, in the op's order: any of b, c, h (batch), g (queries that share keys), m
        (queries), n (channels of V), d, e (channels of Q), s (keys).
      dims: The loops of q, k, v, out and perhaps mask.
      element: "f16" or "bf16".
      mask: The mask's element type.
      scale: None for one over the square root of the channels.
      dynamic: Loops whose extent the program does not know.
    """

    sizes: Mapping[str, int]
    dims: Mapping[str, str] = field(default_factory=lambda: PLAIN)
    element: str = "f16"
    mask: str = "f32"
    scale: float | None = None
    dynamic: str = ""
    body: str = "iree_linalg_ext.yield %score : f32"

    @property
    def factor(self) -> float:
        """The scale as a number."""
        return self.scale or 1 / math.sqrt(self.sizes["d"] * self.sizes.get("e", 1))

    @property
    def inputs(self) -> list[str]:
        """The operands that are arguments of the function."""
        return [name for name in ("q", "k", "v", "mask") if name in self.dims]

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an operand."""
        return tuple(self.sizes[loop] for loop in self.dims[name].split())

    def source(self) -> str:
        """The module."""
        loops = ", ".join(loop for loop in _LOOPS if loop in self.sizes)
        types = {name: self._type(name) for name in (*self.inputs, "out")}
        operands = {**{name: types[name] for name in ("q", "k", "v")}, "scale": "f32"}
        operands |= {"mask": types["mask"]} if "mask" in types else {}
        maps = ", ".join(
            f"affine_map<({loops}) -> ({', '.join(self.dims.get(name, '').split())})>" for name in (*operands, "out")
        )
        sizes = [f"%size_{loop}" for loop in self.dims["out"].split() if loop in self.dynamic]
        return f"""\
func.func @main({", ".join(f"%{name}: {types[name]}" for name in self.inputs)}) -> {types["out"]} {{
  %scale = arith.constant {self.factor:e} : f32
  {" ".join(self._size(loop) for loop in self.dynamic)}
  %empty = tensor.empty({", ".join(sizes)}) : {types["out"]}
  %out = iree_linalg_ext.attention <{{indexing_maps = [{maps}]}}>
      ins({", ".join(f"%{name}" for name in operands)} : {", ".join(operands.values())})
      outs(%empty : {types["out"]}) {{
    ^bb0(%score: f32):
      {self.body}
  }} -> {types["out"]}
  return %out : {types["out"]}
}}
"""

    def arrays(self, seed: int = 0) -> list[np.ndarray]:
        """Inputs: normal numbers, and a mask that takes out about a third of the scores."""
        random = np.random.default_rng(seed)
        kinds = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}
        arrays = []
        for name in self.inputs:
            values = random.standard_normal(self.shape(name))
            if name == "mask":
                values = np.where(random.random(values.shape) < 0.3, -1e4, values)
            kind = kinds[self.mask if name == "mask" else self.element]
            # The simulator takes bf16 as the f32 of the same value.
            rounded = values.astype(kind)
            arrays.append(rounded.astype(np.float32) if kind is ml_dtypes.bfloat16 else rounded)
        return arrays

    def reference(self, q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        """The result in float64."""
        dims = {name: loops.replace(" ", "") for name, loops in self.dims.items()}
        q, k, v = (array.astype(np.float64) for array in (q, k, v))
        rows = "".join(loop for loop in _LOOPS if loop in dims["out"] and loop != "n")
        scores = np.einsum(f"{dims['q']},{dims['k']}->{rows}s", q, k) * self.factor
        if mask is not None:
            where = tuple(slice(None) if loop in dims["mask"] else None for loop in f"{rows}s")
            order = sorted(range(mask.ndim), key=lambda at: f"{rows}s".index(dims["mask"][at]))
            scores = scores + mask.astype(np.float64).transpose(order)[where]
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return np.einsum(f"{rows}s,{dims['v']}->{dims['out']}", weights, v)

    def _type(self, name: str) -> str:
        sizes = ["?" if loop in self.dynamic else str(self.sizes[loop]) for loop in self.dims[name].split()]
        return f"tensor<{'x'.join([*sizes, self.mask if name == 'mask' else self.element])}>"

    def _size(self, loop: str) -> str:
        name = next(name for name in self.inputs if loop in self.dims[name].split())
        at = self.dims[name].split().index(loop)
        dim = f"tensor.dim %{name}, %at_{loop} : {self._type(name)}"
        return f"%at_{loop} = arith.constant {at} : index %size_{loop} = {dim}"

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decomposed attention in the forms that exporters give it, and its numpy reference."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

DTYPES = {"f32": np.dtype(np.float32), "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}


@dataclass(frozen=True)
class AttentionCase:
    """One decomposed attention: `linalg.batch_matmul`, scale, mask, `linalg.softmax`, `linalg.batch_matmul`.

    Attributes:
      batch: Batch dims of the softmax; the contractions see them collapsed to one.
      scale: A factor of the scores, or None.
      key_transposed: Whether K is (keys, channels) and transposed by a generic.
      mask: The dims that an additive mask varies along, among "b", "m" and "k", or "".
    """

    batch: tuple[int, ...] = (2,)
    queries: int = 8
    keys: int = 12
    channels: int = 16
    value_channels: int = 16
    element: str = "f32"
    scale: float | None = None
    key_transposed: bool = False
    mask: str = ""

    @property
    def merged(self) -> int:
        """All batch dims as one."""
        return int(np.prod(self.batch))

    def shapes(self) -> list[tuple[int, ...]]:
        """Of Q, K, V and the mask."""
        b, m, k, c = self.merged, self.queries, self.keys, self.channels
        key = (b, k, c) if self.key_transposed else (b, c, k)
        extents = {"b": b, "m": m, "k": k}
        mask = [tuple(extents[d] for d in self.mask)] if self.mask else []
        return [(b, m, c), key, (b, k, self.value_channels), *mask]

    def inputs(self, seed: int = 0) -> list[np.ndarray]:
        """Random arrays of the argument types; about a third of a mask is -10000."""
        rng = np.random.default_rng(seed)
        arrays = [rng.standard_normal(shape).astype(DTYPES[self.element]) for shape in self.shapes()]
        if self.mask:
            arrays[3] = np.where(rng.random(arrays[3].shape) < 0.3, -1e4, arrays[3]).astype(DTYPES[self.element])
        return arrays

    def reference(self, q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        """The result in float64."""
        q, k, v = (array.astype(np.float64) for array in (q, k, v))
        scores = q @ (k.transpose(0, 2, 1) if self.key_transposed else k)
        scores *= self.scale if self.scale is not None else 1.0
        if mask is not None:
            index = tuple(slice(None) if d in self.mask else None for d in "bmk")
            scores = scores + mask.astype(np.float64)[index]
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return weights / weights.sum(axis=-1, keepdims=True) @ v

    def module(self) -> str:
        """The module; its arguments are Q, K, V and the mask if there is one."""
        b, m, k, c, n = self.merged, self.queries, self.keys, self.channels, self.value_channels
        t = self.element

        def tensor(*shape: int) -> str:
            return f"tensor<{'x'.join(map(str, (*shape, t)))}>"

        arguments = [tensor(*shape) for shape in self.shapes()]
        names = ["%q", "%k", "%v", "%mask"]
        q, key, v = arguments[:3]
        kt, scores, out = tensor(b, c, k), tensor(b, m, k), tensor(b, m, n)
        split = tensor(*self.batch, m, k)
        rank = len(self.batch)
        groups = [list(range(rank)), [rank], [rank + 1]]
        lines = [f"%zero = arith.constant 0.0 : {t}"]
        kt_name = "%k"
        if self.key_transposed:
            lines += [
                f"%et = tensor.empty() : {kt}",
                "%kt = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, j, i)>, "
                'affine_map<(b, i, j) -> (b, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]} '
                f"ins(%k : {key}) outs(%et : {kt}) {{",
                f"^bb0(%a: {t}, %o: {t}):",
                f"linalg.yield %a : {t}",
                f"}} -> {kt}",
            ]
            kt_name = "%kt"
        lines += [
            f"%e0 = tensor.empty() : {scores}",
            f"%f0 = linalg.fill ins(%zero : {t}) outs(%e0 : {scores}) -> {scores}",
            f"%s0 = linalg.batch_matmul ins(%q, {kt_name} : {q}, {kt}) outs(%f0 : {scores}) -> {scores}",
            *self._elementwise(tensor, arguments),
        ]
        last = "%s1" if self.scale is not None or self.mask else "%s0"
        if rank > 1:
            lines.append(
                f"%x = tensor.expand_shape {last} {groups} output_shape {[*self.batch, m, k]} : {scores} into {split}"
            )
            last = "%x"
        lines += [
            f"%e1 = tensor.empty() : {split}",
            f"%p = linalg.softmax dimension({rank + 1}) ins({last} : {split}) outs(%e1 : {split}) -> {split}",
        ]
        weights = "%p"
        if rank > 1:
            lines.append(f"%c = tensor.collapse_shape %p {groups} : {split} into {scores}")
            weights = "%c"
        lines += [
            f"%e2 = tensor.empty() : {out}",
            f"%f2 = linalg.fill ins(%zero : {t}) outs(%e2 : {out}) -> {out}",
            f"%o = linalg.batch_matmul ins({weights}, %v : {scores}, {v}) outs(%f2 : {out}) -> {out}",
            f"return %o : {out}",
        ]
        signature = ", ".join(f"{name}: {type_}" for name, type_ in zip(names, arguments, strict=False))
        body = "\n  ".join(lines)
        return f"func.func @main({signature}) -> {out} {{\n  {body}\n}}\n"

    def _elementwise(self, tensor, arguments: list[str]) -> list[str]:
        """Scale and mask in one generic, from %s0 to %s1."""
        if self.scale is None and not self.mask:
            return []
        t = self.element
        scores = tensor(self.merged, self.queries, self.keys)
        maps = ["affine_map<(b, m, k) -> (b, m, k)>"] * 2
        inputs, types, block = ["%s0"], [scores], [f"%a: {t}"]
        body, value = [], "%a"
        if self.mask:
            maps.insert(1, f"affine_map<(b, m, k) -> ({', '.join(self.mask)})>")
            inputs.append("%mask")
            types.append(arguments[3])
            block.append(f"%x: {t}")
        if self.scale is not None:
            body += [f"%f = arith.constant {self.scale:e} : {t}", f"%g = arith.mulf {value}, %f : {t}"]
            value = "%g"
        if self.mask:
            body.append(f"%h = arith.addf {value}, %x : {t}")
            value = "%h"
        return [
            f"%es = tensor.empty() : {scores}",
            f"%s1 = linalg.generic {{indexing_maps = [{', '.join(maps)}], "
            'iterator_types = ["parallel", "parallel", "parallel"]} '
            f"ins({', '.join(inputs)} : {', '.join(types)}) outs(%es : {scores}) {{",
            f"^bb0({', '.join([*block, f'%u: {t}'])}):",
            *body,
            f"linalg.yield {value} : {t}",
            f"}} -> {scores}",
        ]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules with one linear layer and its bias."""

from __future__ import annotations

from prepass.ir.kernels import Example

_TEXT = """\
func.func @main(%x: {rows}, %w: {weights}, %b: {bias}) -> {result} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {sums}
  %fill = linalg.fill ins(%zero : f32) outs(%empty : {sums}) -> {sums}
  %sums = linalg.matmul indexing_maps = [
      affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %w : {rows}, {weights}) outs(%fill : {sums}) -> {sums}
  %into = tensor.empty() : {result}
  %r = linalg.generic {{indexing_maps = [
      affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}} ins(%sums, %b : {sums}, {bias}) outs(%into : {result}) {{
  ^bb0(%sum: f32, %bias: {element}, %o: {element}):
    %wide = arith.extf %bias : {element} to f32
    %biased = arith.addf %sum, %wide : f32
    %narrow = arith.truncf %biased : f32 to {element}
    linalg.yield %narrow : {element}
  }} -> {result}
  return %r : {result}
}}
"""


def linear_layer(rows: int, terms: int, columns: int, *, element: str = "f16") -> Example:
    """A linear layer with a bias."""
    source = _TEXT.format(
        element=element,
        rows=f"tensor<{rows}x{terms}x{element}>",
        weights=f"tensor<{columns}x{terms}x{element}>",
        bias=f"tensor<{columns}x{element}>",
        sums=f"tensor<{rows}x{columns}xf32>",
        result=f"tensor<{rows}x{columns}x{element}>",
    )
    return Example(f"{rows}x{terms} to {columns} {element}", source)

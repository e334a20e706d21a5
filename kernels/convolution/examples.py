# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules with one convolution, its padding, a bias and an activation."""

from __future__ import annotations

from prepass.ir.kernels import Example

_TEXT = """\
func.func @main(%x: {image}, %w: {filters}, %b: {bias}) -> {result} {{
  %zero = arith.constant 0.0 : f32
  %border = arith.constant 0.0 : {element}
  %padded = tensor.pad %x low[0, {pad}, {pad}, 0] high[0, {pad}, {pad}, 0] {{
  ^bb0(%n: index, %h: index, %w_: index, %c: index):
    tensor.yield %border : {element}
  }} : {image} to {padded}
  %empty = tensor.empty() : {sums}
  %fill = linalg.fill ins(%zero : f32) outs(%empty : {sums}) -> {sums}
  %sums = linalg.conv_2d_nhwc_fhwc {{strides = dense<{stride}> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}}
      ins(%padded, %w : {padded}, {filters}) outs(%fill : {sums}) -> {sums}
  %into = tensor.empty() : {result}
  %r = linalg.generic {{indexing_maps = [
      affine_map<(n, h, w, f) -> (n, h, w, f)>, affine_map<(n, h, w, f) -> (f)>,
      affine_map<(n, h, w, f) -> (n, h, w, f)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
      ins(%sums, %b : {sums}, {bias}) outs(%into : {result}) {{
  ^bb0(%sum: f32, %bias: {element}, %o: {element}):
    %wide = arith.extf %bias : {element} to f32
    %biased = arith.addf %sum, %wide : f32
    %active = arith.maximumf %biased, %zero : f32
    %narrow = arith.truncf %active : f32 to {element}
    linalg.yield %narrow : {element}
  }} -> {result}
  return %r : {result}
}}
"""


def example(
    batch: int,
    height: int,
    width: int,
    channels: int,
    filters: int,
    *,
    window: int = 3,
    stride: int = 1,
    element: str = "f16",
) -> Example:
    """A convolution that keeps the size of the image but for its stride."""
    pad = window // 2
    rows, columns = ((size + 2 * pad - window) // stride + 1 for size in (height, width))

    def tensor(*sizes: int, of: str = element) -> str:
        return f"tensor<{'x'.join(map(str, sizes))}x{of}>"

    source = _TEXT.format(
        element=element,
        pad=pad,
        stride=stride,
        image=tensor(batch, height, width, channels),
        filters=tensor(filters, window, window, channels),
        bias=tensor(filters),
        padded=tensor(batch, height + 2 * pad, width + 2 * pad, channels),
        sums=tensor(batch, rows, columns, filters, of="f32"),
        result=tensor(batch, rows, columns, filters),
    )
    name = f"{batch}x{height}x{width} C={channels} F={filters} {window}x{window} stride {stride} {element}"
    return Example(name, source)

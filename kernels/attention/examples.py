# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention ops as text, to show kernels on."""

from __future__ import annotations


def attention_source(
    heads: int,
    queries: int,
    keys: int,
    channels: int,
    element: str,
    *,
    value_transposed: bool = False,
    mask: str = "",
) -> str:
    """A module with one attention op: Q and K are (heads, rows, channels).

    V is (heads, keys, channels), or (heads, channels, keys) if it is `value_transposed`; a mask of the type `mask` is
    (queries, keys).
    """
    shapes = {
        "q": (f"{heads}x{queries}x{channels}x{element}", "b, m, k1"),
        "k": (f"{heads}x{keys}x{channels}x{element}", "b, k2, k1"),
        "v": (f"{heads}x{keys}x{channels}x{element}", "b, k2, n"),
    }
    if value_transposed:
        shapes["v"] = f"{heads}x{channels}x{keys}x{element}", "b, n, k2"
    types = {name: f"tensor<{shape}>" for name, (shape, _) in shapes.items()}
    types["scale"] = "f32"
    dims = [dims for _, dims in shapes.values()] + [""]
    if mask:
        types["mask"] = f"tensor<{queries}x{keys}x{mask}>"
        dims.append("m, k2")
    result = f"tensor<{heads}x{queries}x{channels}x{element}>"
    maps = ", ".join(f"affine_map<(b, m, n, k1, k2) -> ({names})>" for names in [*dims, "b, m, n"])
    arguments = ", ".join(f"%{name}: {type_}" for name, type_ in types.items() if name != "scale")
    return f"""\
func.func @main({arguments}) -> {result} {{
  %scale = arith.constant {channels**-0.5:.8f} : f32
  %empty = tensor.empty() : {result}
  %out = iree_linalg_ext.attention <{{indexing_maps = [{maps}]}}>
      ins({", ".join(f"%{name}" for name in types)} : {", ".join(types.values())}) outs(%empty : {result}) {{
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  }} -> {result}
  return %out : {result}
}}
"""

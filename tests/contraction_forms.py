# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The forms in which contractions and convolutions come, as modules that accumulate in the type of their operands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .graphs import DTYPES, tensor_type


@dataclass(frozen=True)
class Form:
    """One op on two tensors.

    Attributes:
      op: The linalg op with its attributes, or the indexing maps and iterator types of a generic.
      einsum: The same for numpy; None for convolutions.
      mfma: Whether gfx942 is to use matrix instructions for it.
    """

    name: str
    op: str
    lhs: tuple[int, ...]
    rhs: tuple[int, ...]
    out: tuple[int, ...]
    einsum: str | None = None
    mfma: bool = True

    def module(self, element: str) -> str:
        """The module."""
        lhs, rhs, out = (tensor_type(shape, element) for shape in (self.lhs, self.rhs, self.out))
        body = _BODY[element in ("i8",)].replace("T", element) if self.op.startswith("linalg.generic") else ""
        zero = "0" if element == "i8" else "0.0"
        return (
            f"func.func @main(%a: {lhs}, %b: {rhs}) -> {out} {{\n"
            f"  %zero = arith.constant {zero} : {element}\n"
            f"  %empty = tensor.empty() : {out}\n"
            f"  %fill = linalg.fill ins(%zero : {element}) outs(%empty : {out}) -> {out}\n"
            f"  %0 = {self.op} ins(%a, %b : {lhs}, {rhs}) outs(%fill : {out}) {body} -> {out}\n"
            f"  return %0 : {out}\n}}\n"
        )

    def inputs(self, element: str, scale: float = 1.0) -> list[np.ndarray]:
        """Arguments of `main`."""
        rng = np.random.default_rng(0)
        if element == "i8":
            return [rng.integers(-128, 128, shape, np.int8) for shape in (self.lhs, self.rhs)]
        return [rng.normal(0, scale, shape).astype(DTYPES[element]) for shape in (self.lhs, self.rhs)]


_BODY = {
    False: "{\n^bb0(%x: T, %y: T, %acc: T):\n  %p = arith.mulf %x, %y : T\n  %s = arith.addf %p, %acc : T\n"
    "  linalg.yield %s : T\n}",
    True: "{\n^bb0(%x: T, %y: T, %acc: T):\n  %p = arith.muli %x, %y : T\n  %s = arith.addi %p, %acc : T\n"
    "  linalg.yield %s : T\n}",
}
_STRIDES = "{dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}"


def _generic(loops: str, a: str, b: str, out: str) -> str:
    maps = ", ".join(f"affine_map<({', '.join(loops)}) -> ({', '.join(dims)})>" for dims in (a, b, out))
    kinds = ", ".join('"parallel"' if loop in out else '"reduction"' for loop in loops)
    return f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}"


def _mapped(op: str, loops: str, a: str, b: str, out: str) -> str:
    maps = ", ".join(f"affine_map<({', '.join(loops)}) -> ({', '.join(dims)})>" for dims in (a, b, out))
    return f"linalg.{op} indexing_maps = [{maps}]"


FORMS = (
    Form("matmul", "linalg.matmul", (256, 320), (320, 512), (256, 512), "mk,kn->mn"),
    Form(
        "matmul_transpose_b",
        _mapped("matmul", "mnk", "mk", "nk", "mn"),
        (256, 320),
        (512, 320),
        (256, 512),
        "mk,nk->mn",
    ),
    Form("matmul_m154", "linalg.matmul", (154, 640), (640, 512), (154, 512), "mk,kn->mn"),
    Form("batch_matmul", "linalg.batch_matmul", (4, 128, 320), (4, 320, 256), (4, 128, 256), "bmk,bkn->bmn"),
    Form(
        "qk",
        _mapped("batch_matmul", "bmnk", "bmk", "bnk", "bmn"),
        (10, 256, 64),
        (10, 256, 64),
        (10, 256, 256),
        "bmk,bnk->bmn",
    ),
    Form("pv", "linalg.batch_matmul", (10, 256, 256), (10, 256, 64), (10, 256, 64), "bmk,bkn->bmn"),
    Form("generic", _generic("bmnk", "bmk", "nk", "bmn"), (2, 128, 320), (512, 320), (2, 128, 512), "bmk,nk->bmn"),
    Form("matvec", "linalg.matvec", (512, 640), (640,), (512,), "mk,k->m", mfma=False),
    Form("batch_matvec", "linalg.batch_matvec", (4, 512, 640), (4, 640), (4, 512), "bmk,bk->bm", mfma=False),
    Form("conv_nchw", f"linalg.conv_2d_nchw_fchw {_STRIDES}", (2, 64, 34, 34), (128, 64, 3, 3), (2, 128, 32, 32)),
    Form("conv_nhwc", f"linalg.conv_2d_nhwc_hwcf {_STRIDES}", (2, 34, 34, 64), (3, 3, 64, 128), (2, 32, 32, 128)),
    Form("conv_fhwc", f"linalg.conv_2d_nhwc_fhwc {_STRIDES}", (2, 34, 34, 64), (128, 3, 3, 64), (2, 32, 32, 128)),
    Form("conv_1x1", f"linalg.conv_2d_nchw_fchw {_STRIDES}", (2, 64, 32, 32), (128, 64, 1, 1), (2, 128, 32, 32)),
    Form(
        "conv_grouped",
        f"linalg.conv_2d_ngchw_gfchw {_STRIDES}",
        (2, 4, 32, 34, 34),
        (4, 32, 32, 3, 3),
        (2, 4, 32, 32, 32),
    ),
    Form(
        "conv_depthwise",
        f"linalg.depthwise_conv_2d_nhwc_hwc {_STRIDES}",
        (2, 34, 34, 64),
        (3, 3, 64),
        (2, 32, 32, 64),
        mfma=False,
    ),
)

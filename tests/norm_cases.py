# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Norms and reductions as torch exports them, with references in float64.

The modules are in the torch dialect, so that what IREE's importer makes of each op is part of what is tested.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .graphs import DTYPES

CONSTANTS = """\
  %last = torch.constant.int -1
  %one = torch.constant.int 1
  %two = torch.constant.int 2
  %zero = torch.constant.int 0
  %groups = torch.constant.int 32
  %eps = torch.constant.float 1.000000e-05
  %false = torch.constant.bool false
  %true = torch.constant.bool true
  %none = torch.constant.none
  %dims = torch.prim.ListConstruct %last : (!torch.int) -> !torch.list<int>
  %empty = torch.prim.ListConstruct : () -> !torch.list<int>
  %twos = torch.prim.ListConstruct %two, %two : (!torch.int, !torch.int) -> !torch.list<int>
  %zeros = torch.prim.ListConstruct %zero, %zero : (!torch.int, !torch.int) -> !torch.list<int>
"""
_TYPES = {
    "int": "!torch.int",
    "float": "!torch.float",
    "bool": "!torch.bool",
    "none": "!torch.none",
    "list": "!torch.list<int>",
}


@dataclass(frozen=True)
class NormCase:
    """One torch op.

    Attributes:
      operands: What follows the tensors, as "%name:type".
      shapes: Of the input, then of weight and bias where there are any.
      before: Whether the weights stand before (0) or after so many of the operands.
    """

    name: str
    op: str
    operands: str
    shapes: tuple[tuple[int, ...], ...]
    out: tuple[int, ...]
    reference: Callable[..., np.ndarray]
    before: int = 0

    def __str__(self) -> str:
        return self.name

    def module(self, element: str) -> str:
        """The module, with the function `main`."""
        types = [_tensor(shape, element) for shape in self.shapes]
        arguments = ", ".join(f"%x{n}: {type_}" for n, type_ in enumerate(types))
        names, spelled = zip(*(part.split(":") for part in self.operands.split()), strict=True)
        scalars = [(name, _TYPES[type_]) for name, type_ in zip(names, spelled, strict=True)]
        weights = [(f"%x{n}", type_) for n, type_ in enumerate(types)][1:]
        listed = [("%x0", types[0]), *scalars[: self.before], *weights, *scalars[self.before :]]
        out = _tensor(self.out, element)
        return (
            f"func.func @main({arguments}) -> {out} {{\n{CONSTANTS}{self._normalized_shape()}"
            f"  %0 = torch.aten.{self.op} {', '.join(name for name, _ in listed)} : "
            f"{', '.join(type_ for _, type_ in listed)} -> {out}\n  return %0 : {out}\n}}\n"
        )

    def inputs(self, element: str, mean: float, std: float) -> list[np.ndarray]:
        """An input of that distribution, and weights near 1 and 0."""
        rng = np.random.default_rng(0)
        first, *weights = self.shapes
        arrays = [rng.normal(mean, std, first)]
        arrays += [rng.normal(1 - number, 0.1, shape) for number, shape in enumerate(weights)]
        return [array.astype(DTYPES[element]) for array in arrays]

    def expected(self, element: str, inputs: list[np.ndarray]) -> np.ndarray:
        """The result in float64, rounded once to the element type: what torch gives up to the last bit."""
        exact = self.reference(*(array.astype(np.float64) for array in inputs))
        with np.errstate(over="ignore"):
            return np.asarray(exact).astype(DTYPES[element]).astype(np.float64)

    def _normalized_shape(self) -> str:
        return (
            f"  %n = torch.constant.int {self.shapes[0][-1]}\n"
            "  %shape = torch.prim.ListConstruct %n : (!torch.int) -> !torch.list<int>\n"
        )


def _tensor(shape: tuple[int, ...], element: str) -> str:
    return f"!torch.vtensor<[{','.join(map(str, shape))}],{element}>"


def _layer_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * weight + bias


def _rms_norm(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x * x).mean(-1, keepdims=True)) * weight


def _group_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    groups = x.reshape(x.shape[0], 32, -1)
    centred = groups - groups.mean(-1, keepdims=True)
    normalized = (centred / np.sqrt(groups.var(-1, keepdims=True) + 1e-5)).reshape(x.shape)
    return normalized * weight[:, None, None] + bias[:, None, None]


def _softmax(x: np.ndarray) -> np.ndarray:
    exponentials = np.exp(x - x.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def _average_pool(x: np.ndarray) -> np.ndarray:
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).mean((3, 5))


def _group_norm_case(name: str, *shape: int) -> NormCase:
    return NormCase(
        name,
        "group_norm",
        "%groups:int %eps:float %false:bool",
        (shape, (shape[1],), (shape[1],)),
        shape,
        _group_norm,
        before=1,
    )


ROWS = (2, 64, 640)
NORM_CASES = (
    NormCase(
        "layer_norm",
        "layer_norm",
        "%shape:list %eps:float %false:bool",
        (ROWS, ROWS[2:], ROWS[2:]),
        ROWS,
        _layer_norm,
        before=1,
    ),
    NormCase("rms_norm", "rms_norm", "%shape:list %none:none", (ROWS, ROWS[2:]), ROWS, _rms_norm, before=1),
    _group_norm_case("group_norm_unet", 2, 320, 64, 64),
    _group_norm_case("group_norm_vae", 1, 512, 64, 64),
    _group_norm_case("group_norm_vae_256", 1, 128, 256, 256),
    NormCase("mean", "mean.dim", "%dims:list %false:bool %none:none", ((2, 64, 4096),), (2, 64), lambda x: x.mean(-1)),
    NormCase("mean_of_all", "mean", "%none:none", ((64, 4096),), (), lambda x: x.mean()),
    NormCase(
        "variance", "var.dim", "%dims:list %true:bool %false:bool", (ROWS,), ROWS[:2], lambda x: x.var(-1, ddof=1)
    ),
    NormCase("sum", "sum.dim_IntList", "%dims:list %false:bool %none:none", (ROWS,), ROWS[:2], lambda x: x.sum(-1)),
    NormCase(
        "norm",
        "linalg_vector_norm",
        "%two:int %dims:list %false:bool %none:none",
        (ROWS,),
        ROWS[:2],
        lambda x: np.sqrt((x * x).sum(-1)),
    ),
    NormCase("softmax", "softmax.int", "%last:int %none:none", ((2, 64, 4096),), (2, 64, 4096), _softmax),
    NormCase(
        "average_pool",
        "avg_pool2d",
        "%twos:list %empty:list %zeros:list %false:bool %true:bool %none:none",
        ((2, 32, 64, 64),),
        (2, 32, 32, 32),
        _average_pool,
    ),
)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lookups as torch exports them, and what becomes of them on gfx942."""

from dataclasses import dataclass

import numpy as np

ASSERTIONS = """\
    %less = arith.cmpi slt, %row, %rows : index
    cf.assert %less, "index must be smaller than dim size"
    %positive = arith.cmpi sge, %in, %zero : {ids}
    cf.assert %positive, "index must be larger or equal to 0"
"""
# What an index that counts from the end goes through.
FIX_UP = """\
    %negative = arith.cmpi slt, %in, %zero : {ids}
    %from_end = arith.addi %in, %row_count : {ids}
    %fixed = arith.select %negative, %from_end, %in : {ids}
"""


@dataclass(frozen=True)
class LookupCase:
    """`rows` of `columns` numbers, of which `count` are looked up.

    Attributes:
      dynamic: The count is dynamic.
      fix_up: Negative indices count from the end, after the assertions.
      tail: Ops after the lookup `%found`, whose result is `%result`.
    """

    rows: int = 77
    columns: int = 48
    count: int = 9
    element: str = "f32"
    ids: str = "i64"
    dynamic: bool = False
    asserted: bool = True
    fix_up: bool = False
    tail: str = ""

    def module(self) -> str:
        count = "?" if self.dynamic else self.count
        ids = f"tensor<{count}x{self.ids}>"
        table = f"tensor<{self.rows}x{self.columns}x{self.element}>"
        result = f"tensor<{count}x{self.columns}x{self.element}>"
        size = "(%count)" if self.dynamic else "()"
        return f"""\
func.func @main(%table: {table}, %ids: {ids}) -> {result} {{
  %c0 = arith.constant 0 : index
  %count = tensor.dim %ids, %c0 : {ids}
  %rows = arith.constant {self.rows} : index
  %row_count = arith.constant {self.rows} : {self.ids}
  %zero = arith.constant 0 : {self.ids}
  %init = tensor.empty{size} : {result}
  %found = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%ids : {ids}) outs(%init : {result}) {{
  ^bb0(%in: {self.ids}, %out: {self.element}):
    %row = arith.index_cast %in : {self.ids} to index
{ASSERTIONS.format(ids=self.ids) if self.asserted else ""}\
{FIX_UP.format(ids=self.ids) if self.fix_up else ""}\
    %read = arith.index_cast {"%fixed" if self.fix_up else "%in"} : {self.ids} to index
    %column = linalg.index 1 : index
    %number = tensor.extract %table[%read, %column] : {table}
    linalg.yield %number : {self.element}
  }} -> {result}
{self.tail}  return {"%result" if self.tail else "%found"} : {result}
}}
"""

    def inputs(self) -> tuple[np.ndarray, np.ndarray]:
        random = np.random.default_rng(0)
        table = random.standard_normal((self.rows, self.columns)).astype(
            {"f32": np.float32, "f16": np.float16}[self.element]
        )
        ids = np.r_[0, self.rows - 1, random.integers(0, self.rows, self.count - 2)]
        return table, ids.astype({"i64": np.int64, "i32": np.int32, "i8": np.int8}[self.ids])

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Building and erasing ops."""

from iree.compiler import ir

from prepass.ir.axes import Axis
from prepass.ir.emit import Extents, erase_dead_producers, zeros
from prepass.ir.match import walk_ops
from prepass.ir.parse import copy_module

PADDED = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<5xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<5xf32>) -> tensor<5xf32>
  %pad = tensor.pad %x low[0] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<4xf32> to tensor<5xf32>
  %copy = linalg.copy ins(%pad : tensor<5xf32>) outs(%fill : tensor<5xf32>) -> tensor<5xf32>
  return %x : tensor<4xf32>
}
"""


def test_what_only_regions_read_dies_with_them():
    module = copy_module(PADDED)
    (copy,) = walk_ops(module.operation, "linalg.copy")
    erase_dead_producers([copy.results[0]])
    assert [op.operation.name for op in module.body.operations[0].regions[0].blocks[0]] == ["func.return"]


def test_what_is_read_stays():
    module = copy_module(
        PADDED.replace("return %x : tensor<4xf32>", "return %pad : tensor<5xf32>").replace(
            "-> tensor<4xf32> {", "-> tensor<5xf32> {"
        )
    )
    (copy,) = walk_ops(module.operation, "linalg.copy")
    erase_dead_producers([copy.results[0]])
    names = [op.operation.name for op in module.body.operations[0].regions[0].blocks[0]]
    assert names == ["arith.constant", "tensor.pad", "func.return"]


def test_a_dim_of_size_0_is_not_dynamic():
    module = copy_module("module {\n}")
    for dialect in ("linalg", "tensor"):
        module.context.get_dialect_descriptor(dialect)
    with module.context, ir.Location.unknown(), ir.InsertionPoint(module.body):
        value = zeros(((Axis(0),), (Axis(3),)), ir.F32Type.get(), Extents([]))
    assert str(value.type) == "tensor<0x3xf32>"

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Telling IREE how a dispatch is launched whose body is final."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir
from iree.compiler.dialects import iree_codegen

from prepass.ir.kernels.builders import index
from prepass.ir.match import find_ops
from prepass.ir.targets import enclosing_variant
from prepass.ir.targets.attention_shape import load_dialects

_EXPORT = "hal.executable.export"
_SUBGROUP_SIZE = 64


def launch(function: ir.Operation, workgroups: Sequence[int], threads: int) -> None:
    """Run a function with so many workgroups, in x and y, of so many work items each, and lower it as it is."""
    load_dialects("iree_codegen")
    info = iree_codegen.TranslationInfoAttr.get(
        iree_codegen.NoPipelineAttr.get(), None, [threads, 1, 1], _SUBGROUP_SIZE, None
    )
    function.attributes["translation_info"] = info
    name = ir.StringAttr(function.attributes["sym_name"]).value
    for export in find_ops(enclosing_variant(function), lambda op: op.name == _EXPORT):
        if ir.StringAttr(export.attributes["sym_name"]).value == name:
            _set_count(export, [*workgroups, 1])


def _set_count(export: ir.Operation, workgroups: Sequence[int]) -> None:
    (block,) = (block for region in export.regions for block in region.blocks)
    *body, terminator = [op.operation for op in block.operations]
    with ir.InsertionPoint(terminator), export.location:
        counts = [index(count) for count in workgroups]
        ir.Operation.create(terminator.name, [], counts)
    terminator.erase()
    for op in reversed(body):
        op.erase()

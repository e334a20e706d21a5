# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much an attention does in an iteration, read from the program on its way through IREE."""

from __future__ import annotations

import math

from iree.compiler import ir
from iree.compiler.dialects import iree_gpu

from prepass.ir.attention.read import operand_maps
from prepass.ir.expressions import loop_positions
from prepass.ir.match import walk_ops

WAVE = 64

_ONLINE_ATTENTION = "iree_linalg_ext.online_attention"


def scores_per_iteration(module: ir.Operation) -> dict[str, float]:
    """How many scores of an attention a wave computes in an iteration, by dispatch, once IREE has configured it.

    A score counts once: where workgroups share the channels of the result, each computes all scores again.
    """
    scores: dict[str, float] = {}
    for op in walk_ops(module, _ONLINE_ATTENTION):
        name, waves = _function_of(op)
        config = iree_gpu.LoweringConfigAttr(op.attributes["lowering_config"]).attributes
        if "reduction" not in config:
            continue
        maps = operand_maps(op)
        query, key, value, *_, sums = map(loop_positions, maps)
        rows = _tile(config, "workgroup", {*query} & {*sums} - {*key})
        keys = _tile(config, "reduction", {*key} & {*value} - {*query})
        (channels,) = {*value} - {*key} - {*query}
        whole = ir.RankedTensorType(op.operands[2].type).shape[value.index(channels)]
        share = (_tile(config, "workgroup", {channels}) or whole) / whole
        scores[name] = rows * keys * share / waves
    return scores


def _tile(config: ir.DictAttr, level: str, loops: set[int]) -> int:
    sizes = [ir.IntegerAttr(size).value for size in ir.ArrayAttr(config[level])]
    return math.prod(sizes[loop] for loop in loops)


def _function_of(op: ir.Operation) -> tuple[str, int]:
    """The name of the function that an op is in, and the waves of its workgroups, 0 until it is configured."""
    function = op
    while function.name != "func.func":
        function = function.parent.operation
    name = ir.StringAttr(function.attributes["sym_name"]).value
    if "translation_info" not in function.attributes:
        return name, 0
    return name, math.prod(function.attributes["translation_info"].workgroup_size) // WAVE

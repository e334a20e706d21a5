# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Give reductions over the outermost dim that share a dispatch, as a mean and a variance, lowering configs.

A GroupNorm at batch 1 whose channels are last reduces positions, the outermost dim. For that IREE 3.13 takes a pipeline
in which only the last reduction of a dispatch is tiled: the others are unrolled over all positions, and compiling does
not come to an end. The configs are for the pipeline that it takes at batch 2, with positions spread over the lanes of a
workgroup. The pass runs on the executable sources, as a config is by loop and only there the loops are final;
`prepass-transpose-convolutions` brings it along.

Before:

    %sum = linalg.generic {iterator_types = ["parallel", "reduction", "reduction"]}
        ins(%x : tensor<4096x32x16xf16>) outs(%zeros : tensor<32xf32>) { ... }
    %mean = linalg.generic ... ins(%sum : tensor<32xf32>) ...
    %squares = linalg.generic {iterator_types = ["parallel", "reduction", "reduction"]}
        ins(%x, %mean : tensor<4096x32x16xf16>, tensor<32xf32>) outs(%zeros : tensor<32xf32>) { ... }

After:

    %sum = linalg.generic {..., lowering_config = #iree_gpu.lowering_config<{
            lane_basis = [[1, 32, 2], [0, 1, 2]], subgroup_basis = [[1, 16, 1], [0, 1, 2]], thread = [0, 1, 8], ...}>}
        ins(%x : tensor<4096x32x16xf16>) outs(%zeros : tensor<32xf32>) { ... }
    %mean = linalg.generic ... ins(%sum : tensor<32xf32>) ...
    %squares = linalg.generic {..., compilation_info = #iree_codegen.compilation_info<...>}
        ins(%x, %mean : tensor<4096x32x16xf16>, tensor<32xf32>) outs(%zeros : tensor<32xf32>) { ... }

A reduction that is the only one of its dispatch, or is not over the outermost dim, is not looked at: IREE's choice
compiles. So do dynamic sizes, of which nothing is unrolled.

Left alone when, each with a remark that says so:

- one of the reductions has a config already;
- no target is known for them, or the target is not gfx942;
- their sizes are dynamic;
- they are not over the same dims, or not one sum, maximum or minimum each, or contract two operands;
- the dispatch computes what is neither a reduction nor elementwise, or along other dims.

Source: the choice of the pipeline,
https://github.com/iree-org/iree/blob/main/compiler/src/iree/compiler/Codegen/LLVMGPU/KernelConfig.cpp
"""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.match import NoMatch, walk_ops
from prepass.ir.outer_reductions import match_outer_reductions
from prepass.ir.targets import Target, target_to_configure
from prepass.ir.targets.gfx942_reductions import (
    elementwise_config,
    last_reduction_config,
    reduction_config,
    reduction_tile,
)
from prepass.pipeline.base import Pass, PassContext

_Configs = list[tuple[ir.Operation, dict[str, ir.Attribute]]]


def _match_configs(function: ir.Operation, known: Target | None) -> tuple[Target, _Configs] | None:
    found = match_outer_reductions(function)
    if found is None:
        return None
    *_, target = (target_to_configure(op, known) for op in (*found.ops, *(op for op, _ in found.last)))
    if target.architecture != "gfx942":
        raise NoMatch(f"IREE's default for {target.name} is kept", found.ops[-1])
    tile = reduction_tile(found.loops)
    return target, [
        *((op, reduction_config(tile)) for op in found.ops[:-1]),
        (found.ops[-1], last_reduction_config(tile)),
        *((op, elementwise_config(tile.of(loops))) for op, loops in found.last),
    ]


@dataclass(frozen=True)
class ConfigureReductionsPass(Pass):
    """Attach lowering configs to reductions over the outermost dim that share a dispatch."""

    name = "prepass-configure-reductions"
    dependent_dialects = ("iree_codegen", "iree_gpu", "linalg")
    phase = "executable-sources"

    def run(self, op: ir.Operation, context: PassContext) -> None:
        for _, (target, configs) in context.matches(
            walk_ops(op, "func.func"), lambda function: _match_configs(function, context.target)
        ):
            for configured, attributes in configs:
                context.configured(configured, f"configured for {target.name}", attributes)

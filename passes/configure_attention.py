# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Give every attention op the lowering config that its target and its shape ask for.

A config names tiles by loop, and IREE still changes the loops of an op between
preprocessing and code generation: it folds unit dims, collapses neighbours and moves
reshapes through. A config that was attached before no longer fits then, and the result is
wrong without an error. So this pass runs on executables, once dispatches are formed, when
a program is compiled (`prepass-compile`, the plugin, `prepass.compile`), wherever it
stands in the pipeline. `prepass-raise-attention` brings it along.

Before:

    %o = iree_linalg_ext.attention {indexing_maps = [...]} ins(%q, %k, %v, %scale) outs(%empty)

After:

    // For llvm-cpu:
    %o = iree_linalg_ext.attention {indexing_maps = [...], compilation_info =
        #iree_codegen.compilation_info<lowering_config = #iree_cpu.lowering_config<distribution = [1, 32, 64, 0, 0],
            vector_common_parallel = [1, 8, 64, 0, 0], vector_reduction = [0, 0, 0, 0, 8]>, ...>}

For llvm-cpu the config never tiles the head dim, which IREE does above 128 and gets wrong.
For gfx942 it picks the MFMA, the waves and what goes through LDS by head dim and type; what a tuning table says of an
op comes first.

Left alone when, each with a remark that says so:

- the op has a config already;
- no target is known: the op is in no executable, and the module names none or several;
- the target has no configs, or its default is as good for the shape;
- a tuning table says that IREE's default is best;
- the target has no config for the shape, and compiles it, at length, without one;
- the loops are not those of attention.

An error when the target would compute the op wrongly, or crash, and no config helps; and when a tuning table cannot be
read, or is for another target or another version of IREE.

Source: https://iree.dev/reference/mlir-dialects/LinalgExt/#iree_linalg_extattention-linalgextattentionop
"""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir

from prepass.errors import PassFailure
from prepass.ir.attention.build import OP_NAME
from prepass.ir.attention.read import read_attention_shape
from prepass.ir.locations import describe_location
from prepass.ir.match import NoMatch, walk_ops
from prepass.ir.targets import Target, target_to_configure
from prepass.ir.targets.attention import attention_attributes
from prepass.ir.targets.attention_shape import AttentionShape, NoConfig
from prepass.ir.targets.gfx942 import tile_attributes
from prepass.ir.targets.tuning_table import ATTENTION, TuningTable
from prepass.pipeline.base import PassContext
from prepass.pipeline.tuned import TunedPass


def _match_config(
    op: ir.Operation, known: Target | None, table: TuningTable | None
) -> tuple[str, dict[str, ir.Attribute]]:
    target = target_to_configure(op, known)
    shape = read_attention_shape(op)
    tuned = table.find(target, ATTENTION, shape) if table else None
    if tuned is not None and tuned.config is not None:
        return f"configured for {target.name} as the tuning table says", tile_attributes(shape, tuned.config)
    if tuned is not None and not tuned.kernel:
        raise NoMatch("the tuning table says that IREE's default is best", op)
    # A kernel that is not in place by now is none that could be taken.
    return f"configured for {target.name}", _target_attributes(op, target, shape)


def _target_attributes(op: ir.Operation, target: Target, shape: AttentionShape) -> dict[str, ir.Attribute]:
    try:
        attributes = attention_attributes(target, shape)
    except NoConfig as miss:
        if not miss.breaks:
            raise NoMatch(miss.reason, op) from miss
        message = f"{target.name} cannot compute this attention: {miss.reason}"
        raise PassFailure(f"{describe_location(op.location)}: error: {message}") from miss
    if not attributes:
        raise NoMatch(f"IREE's default for {target.name} is kept", op)
    return attributes


@dataclass(frozen=True)
class ConfigureAttentionPass(TunedPass):
    """Attach a lowering config to every attention op."""

    name = "prepass-configure-attention"
    dependent_dialects = ("iree_codegen", "iree_cpu", "iree_gpu", "iree_linalg_ext")
    phase = "executable-sources"

    def run(self, op: ir.Operation, context: PassContext) -> None:
        table = self.tuning_table(context.target)
        for attention, (message, attributes) in context.matches(
            walk_ops(op, OP_NAME), lambda attention: _match_config(attention, context.target, table)
        ):
            context.configured(attention, message, attributes)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Give each contraction with several results a lowering config for its target.

IREE's own choice for a contraction with several results is a quarter of the tile that it takes for one, so that each
loop reads twice as much for a matrix instruction. The pass runs on the executable sources: a config is by loop, and
only there the loops are final.

Before:

    %qkv:3 = linalg.generic {iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
        ins(%x, %wq, %wk, %wv : ...) outs(%q, %k, %v : ...) { ... }

After:

    %qkv:3 = linalg.generic {..., compilation_info = #iree_codegen.compilation_info<
            lowering_config = #iree_gpu.lowering_config<{..., workgroup = [1, 1, 128, 64, 0]}>, ...>}
        ins(%x, %wq, %wk, %wv : ...) outs(%q, %k, %v : ...) { ... }

A contraction with one result is not looked at, as IREE's choice for it is good, unless a tuning table says otherwise.

Left alone when

- it has a config already;
- no target is known for it, or the target is not gfx942;
- its loops are not those of a contraction of one operand with several;
- no tile divides its loops, and IREE's own choice, which pads, is kept;
- a tuning table says that IREE's default is best.

An error when a tuning table cannot be read, or is for another target or another version of IREE.

Source: https://iree.dev/developers/general/developer-tips/#compilation-info
"""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.expressions import indexing_maps
from prepass.ir.match import NoMatch, find_ops
from prepass.ir.targets import Target, executable_target, target_to_configure
from prepass.ir.targets.gfx942_contractions import ContractionTile, results_attributes, results_tile
from prepass.ir.targets.linalg_shape import ContractionLoops, LinalgShape, contraction_loops, read_linalg_shape
from prepass.ir.targets.tuning_table import CONTRACTION, Choice, TuningTable
from prepass.ir.tuned_ops import tuned_kind
from prepass.pipeline.base import PassContext
from prepass.pipeline.tuned import TunedPass


def _match_config(
    op: ir.Operation, known: Target | None, table: TuningTable | None
) -> tuple[str, dict[str, ir.Attribute]] | None:
    several = _contracts_for_several(op)
    tuned = _tuned_choice(op, known, table)
    if not several and (tuned is None or tuned.kernel):
        return None
    target = target_to_configure(op, known)
    if target.architecture != "gfx942":
        raise NoMatch(f"IREE's default for {target.name} is kept", op)
    shape = read_linalg_shape(op)
    if tuned is not None and isinstance(tuned.config, ContractionTile):
        return f"configured for {target.name} as the tuning table says", _attributes(op, shape, tuned.config)
    if tuned is not None and not tuned.kernel:
        raise NoMatch("the tuning table says that IREE's default is best", op)
    return f"configured for {target.name}", _attributes(op, shape, _listed_tile(op, shape))


def _tuned_choice(op: ir.Operation, known: Target | None, table: TuningTable | None) -> Choice | None:
    target = executable_target(op) or known
    if table is None or target is None or tuned_kind(op) != CONTRACTION:
        return None
    return table.find(target, CONTRACTION, read_linalg_shape(op))


def _listed_tile(op: ir.Operation, shape: LinalgShape) -> ContractionTile:
    loops = _loops(op, shape)
    extents = [shape.sizes[loop] for loop in (loops.rows, loops.columns, loops.terms)]
    tile = None if None in extents else results_tile(shape.results, *extents, shape.element_types[0])
    if tile is None:
        raise NoMatch("no tile divides its loops; IREE's default is kept", op)
    return tile


def _loops(op: ir.Operation, shape: LinalgShape) -> ContractionLoops:
    loops = contraction_loops(shape)
    if loops is None or (loops.batch and shape.results > 1):
        raise NoMatch("its loops are not those of a contraction of one operand with several", op)
    return loops


def _attributes(op: ir.Operation, shape: LinalgShape, tile: ContractionTile) -> dict[str, ir.Attribute]:
    return results_attributes(tile, _loops(op, shape), len(shape.sizes), shape.results, shape.element_types[0])


def _contracts_for_several(op: ir.Operation) -> bool:
    maps = indexing_maps(op) or []
    return op.name == "linalg.generic" and len(op.results) > 1 and len(maps[-1].results) < maps[-1].n_dims


@dataclass(frozen=True)
class ConfigureContractionsPass(TunedPass):
    """Attach a lowering config to every contraction with several results."""

    name = "prepass-configure-contractions"
    dependent_dialects = ("iree_codegen", "iree_gpu", "linalg")
    phase = "executable-sources"

    def run(self, op: ir.Operation, context: PassContext) -> None:
        table = self.tuning_table(context.target)
        for contraction, (message, attributes) in context.matches(
            find_ops(op, _is_candidate), lambda contraction: _match_config(contraction, context.target, table)
        ):
            context.configured(contraction, message, attributes)


def _is_candidate(op: ir.Operation) -> bool:
    return _contracts_for_several(op) or tuned_kind(op) == CONTRACTION

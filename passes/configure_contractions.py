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

A contraction with one result is not looked at: IREE's choice for it is good.

Left alone when

- it has a config already;
- no target is known for it, or the target is not gfx942;
- its loops are not those of a contraction of one operand with several;
- no tile of the table divides its loops, and IREE's own choice, which pads, is kept.

Source: https://iree.dev/developers/general/developer-tips/#compilation-info
"""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.expressions import element_type, indexing_maps, loop_sizes
from prepass.ir.match import NoMatch, walk_ops
from prepass.ir.targets import Target, target_to_configure
from prepass.ir.targets.gfx942_contractions import results_attributes, results_tile
from prepass.pipeline.base import Pass, PassContext


def _match_loops(op: ir.Operation) -> tuple[int, int, int]:
    """The innermost loops over rows, columns and terms; raises NoMatch when they are not those of a contraction."""
    maps = [[ir.AffineDimExpr(expr).position for expr in map_.results] for map_ in indexing_maps(op) or []]
    count = len(op.results)
    shared, weights, results = set(maps[0]), maps[1:-count], maps[-count:]
    written = set(results[0])
    alike = len(weights) == count and all(set(map_) == set(weights[0]) for map_ in weights)
    if not alike or any(set(map_) != written for map_ in results):
        raise NoMatch("its loops are not those of a contraction of one operand with several", op)
    rows, columns, terms = shared & written, set(weights[0]) & written, shared & set(weights[0]) - written
    if rows & columns or not rows or not columns or not terms:
        raise NoMatch("its loops are not those of a contraction of one operand with several", op)
    return max(rows), max(columns), max(terms)


def _match_config(op: ir.Operation, known: Target | None) -> tuple[Target, dict[str, ir.Attribute]]:
    target = target_to_configure(op, known)
    if target.architecture != "gfx942":
        raise NoMatch(f"IREE's default for {target.name} is kept", op)
    loops = rows, columns, terms = _match_loops(op)
    sizes = loop_sizes(op)
    extents = [sizes[loop] for loop in loops]
    element = str(element_type(op.operands[0]))
    tile = None if None in extents else results_tile(len(op.results), *extents, element)
    if tile is None:
        raise NoMatch("no tile divides its loops; IREE's default is kept", op)
    return target, results_attributes(tile, len(sizes), rows, columns, terms, len(op.results), element)


def _contracts_for_several(op: ir.Operation) -> bool:
    maps = indexing_maps(op) or []
    return len(op.results) > 1 and len(maps[-1].results) < maps[-1].n_dims


@dataclass(frozen=True)
class ConfigureContractionsPass(Pass):
    """Attach a lowering config to every contraction with several results."""

    name = "prepass-configure-contractions"
    dependent_dialects = ("iree_codegen", "iree_gpu", "linalg")
    phase = "executable-sources"

    def run(self, op: ir.Operation, context: PassContext) -> None:
        contractions = filter(_contracts_for_several, walk_ops(op, "linalg.generic"))
        for contraction, (target, attributes) in context.matches(
            contractions, lambda contraction: _match_config(contraction, context.target)
        ):
            context.applied(contraction, f"configured for {target.name}")
            context.count("configured")
            for name, attribute in attributes.items():
                contraction.attributes[name] = attribute

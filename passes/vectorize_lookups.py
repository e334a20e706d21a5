# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Give lookups the form that the target loads whole rows for.

An embedding arrives as a generic that extracts one element of a table at a time. linalg vectorizes that as a gather of
elements, each with an address of its own, although a row is contiguous. What helps depends on the target and on the
dispatch the lookup ends in; docs/lookups.md has the measurements.

Before:

    %rows = linalg.generic {indexing_maps = [(i, j) -> (i), (i, j) -> (i, j)], ...} ins(%ids) outs(%init) {
    ^bb0(%id: i64, %out: f16):
      %row = arith.index_cast %id : i64 to index
      %column = linalg.index 1 : index
      %element = tensor.extract %table[%row, %column] : tensor<49408x768xf16>
      linalg.yield %element : f16
    } -> tensor<77x768xf16>

After:

    // On llvm-cpu, and on gfx9 when a reduction, a contraction or another tiled op reads the rows.
    %rows = iree_linalg_ext.gather dimension_map = [0] ins(%table, %ids) outs(%init) -> tensor<77x768xf16>

    // On gfx9 otherwise: the body stays scalar up to LLVM, which merges the loads.
      %known = util.assume.int %row<udiv = 1> : index
      %element = tensor.extract %table[%known, %column] : tensor<49408x768xf16>

Assumptions in the bodies of other generics are dropped where a scalar body is slow: on llvm-cpu, and on gfx9 when a
tiled op reads the rows. To use ranges before that, as to remove the fix-up of negative indices, run
`iree-util-optimize-int-arithmetic` between prepass-strip-assertions and this pass.

Left alone when

- there are assertions in the body: run prepass-strip-assertions first;
- the body does more than one lookup does;
- no whole rows are read: the last indices are not the last loops, or the row is another for each column;
- the result is written transposed or reduced;
- the target is unknown or has no known form;
- as a gather only: the row is computed in the body, only one row is read, the indices are broadcast or transposed, the
  rows may be longer than what is read of them, or an elementwise op computes the indices, with which the generic is
  fused, but a gather is not.

Source: https://iree.dev/reference/mlir-dialects/LinalgExt/#iree_linalg_extgather-linalgextgatherop
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from iree.compiler import ir

from prepass.ir.lookups import (
    Lookup,
    body_assumptions,
    build_gather,
    build_scalar_form,
    match_gather_indices,
    match_lookup,
    meets_tiled_op,
)
from prepass.ir.match import NoMatch, walk_ops
from prepass.ir.targets import Target
from prepass.ir.targets.lookups import LookupForm, lookup_form
from prepass.pipeline.base import Pass, PassContext
from prepass.pipeline.options import option


def _drop_assumptions(op: ir.Operation, context: PassContext) -> None:
    assumptions = body_assumptions(op)
    context.applied(op, "assumptions dropped: they keep the body from being vectorized")
    context.count("assumptions dropped", len(assumptions))
    for assumption in assumptions:
        for result, operand in zip(assumption.results, assumption.operands, strict=True):
            result.replace_all_uses_with(operand)
        assumption.erase()


@dataclass(frozen=True)
class VectorizeLookupsPass(Pass):
    """Give lookups the form that the target loads whole rows for."""

    name = "prepass-vectorize-lookups"
    dependent_dialects = ("iree_linalg_ext", "util")
    form: Literal["auto", "gather", "scalar"] = option(
        "auto", help="The form to give every lookup, in place of the one that is known for the target."
    )

    def run(self, op: ir.Operation, context: PassContext) -> None:
        for generic in walk_ops(op, "linalg.generic"):
            form = self._form(generic, context.target)
            try:
                lookup = match_lookup(generic)
                if lookup is not None:
                    self._rewrite(lookup, form, context)
                    continue
            except NoMatch as miss:
                context.missed_match(miss)
            if form == "gather" and body_assumptions(generic):
                _drop_assumptions(generic, context)

    def _form(self, op: ir.Operation, target: Target | None) -> LookupForm | None:
        if self.form != "auto":
            return self.form
        return None if target is None else lookup_form(target, meets_tiled_op=meets_tiled_op(op.results))

    def _rewrite(self, lookup: Lookup, form: LookupForm | None, context: PassContext) -> None:
        """Build the form; raises NoMatch when it cannot be."""
        op = lookup.op
        if form is None:
            raise NoMatch(f"no form is known for {context.target.name if context.target else 'an unknown target'}", op)
        if form == "gather":
            indices = match_gather_indices(lookup)
            context.applied(op, "raised to iree_linalg_ext.gather")
            context.count("gathers")
            with ir.InsertionPoint(op), op.location:
                op.result.replace_all_uses_with(build_gather(lookup, indices))
            op.erase()
        elif not body_assumptions(op):
            context.applied(op, "made a scalar body, whose loads are merged to whole rows")
            context.count("scalar bodies")
            build_scalar_form(lookup)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lookups: generics that read rows of a table, by an index that is itself read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import util

from prepass.ir.expressions import indexing_maps
from prepass.ir.match import NoMatch, defining_op
from prepass.ir.ranges import INDEX_WIDTH, cast_source, width_of

ASSUME = "util.assume.int"
_SHAPE_OPS = ("tensor.expand_shape", "tensor.collapse_shape", "tensor.cast", "tensor.extract_slice")


@dataclass(frozen=True)
class Lookup:
    """`result[i…, j…] = table[row, j…]`.

    Attributes:
      op: The linalg.generic.
      extract: The tensor.extract in its body.
      row: The index of the row, a value of the body.
    """

    op: ir.Operation
    extract: ir.Operation
    row: ir.Value

    @property
    def table(self) -> ir.Value:
        return self.extract.operands[0]


def match_lookup(op: ir.Operation) -> Lookup | None:
    """The lookup that a linalg.generic is; None when it reads no tensor by a computed index.

    Raises NoMatch when it does, but not row by row.
    """
    body = op.regions[0].blocks[0]
    nested = [child.operation for child in body.operations]
    extracts = [child for child in nested if child.name == "tensor.extract"]
    if not extracts or not any(_is_computed(index, body) for index in extracts[0].operands[1:]):
        return None
    if any(child.name == "cf.assert" for child in nested):
        raise NoMatch("there are assertions in the body", op)
    if len(nested[-1].operands) != 1 or defining_op(nested[-1].operands[0]) != extracts[0] or len(extracts) != 1:
        raise NoMatch("the body does more than one lookup does", op)
    row, *columns = extracts[0].operands[1:]
    _match_rows(op, row, columns)
    return Lookup(op, extracts[0], row)


def _match_rows(op: ir.Operation, row: ir.Value, columns: Sequence[ir.Value]) -> None:
    rank = ir.RankedTensorType(op.result.type).rank
    first_column = rank - len(columns)
    maps = indexing_maps(op) or []
    if maps[-1] != ir.AffineMap.get_identity(rank):
        raise NoMatch("the result is written transposed or reduced", op)
    if not columns or [_position(column) for column in columns] != list(range(first_column, rank)):
        raise NoMatch("no whole rows are read: the last indices are not the last loops", op)
    if _depends_on_loops(row, range(first_column, rank), op):
        raise NoMatch("no whole rows are read: the row is another for each column", op)


def match_gather_indices(lookup: Lookup) -> ir.Value:
    """The tensor of row indices, when the lookup is an `iree_linalg_ext.gather`. Raises NoMatch."""
    op = lookup.op
    value = lookup.row
    while True:
        producer = defining_op(value)
        source = cast_source(value) if producer is None or producer.name != ASSUME else producer.operands[0]
        if source is None:
            break
        value = source
    is_operand = defining_op(value) is None and value.owner == op.regions[0].blocks[0]
    if not is_operand or not _keeps_sign(lookup):
        raise NoMatch("the row is computed in the body", op)
    number = ir.BlockArgument(value).arg_number
    table, result = ir.RankedTensorType(lookup.table.type), ir.RankedTensorType(op.result.type)
    batch_rank = result.rank - table.rank + 1
    if batch_rank == 0:
        raise NoMatch("only one row is read", op)
    batch = [ir.AffineExpr.get_dim(d) for d in range(batch_rank)]
    if (indexing_maps(op) or [])[number] != ir.AffineMap.get(result.rank, 0, batch):
        raise NoMatch("the indices are broadcast or transposed", op)
    is_static = not any(table.is_dynamic_dim(d) for d in range(1, table.rank))
    if not is_static or table.shape[1:] != result.shape[batch_rank:]:
        raise NoMatch("the rows may be longer than what is read of them", op)
    if _is_computed_elementwise(op.operands[number]):
        raise NoMatch("an elementwise op computes the indices, with which a gather is not fused", op)
    return op.operands[number]


def body_assumptions(op: ir.Operation) -> list[ir.Operation]:
    """The assumptions in the body of a linalg op, in order."""
    body = op.regions[0].blocks[0]
    return [child.operation for child in body.operations if child.operation.name == ASSUME]


def build_gather(lookup: Lookup, indices: ir.Value) -> ir.Value:
    """The gather that does the lookup, at the current insertion point."""
    init = lookup.op.operands[len(lookup.op.operands) - 1]
    attributes = {"dimension_map": ir.DenseI64ArrayAttr.get([0])}
    operands = [lookup.table, indices, init]
    return ir.Operation.create("iree_linalg_ext.gather", [lookup.op.result.type], operands, attributes).result


def build_scalar_form(lookup: Lookup) -> None:
    """Put an assumption that claims nothing on the row: linalg does not vectorize a body that has one."""
    nothing = ir.Attribute.parse("[[#util.int.assumption<udiv = 1>]]")
    with ir.InsertionPoint(lookup.extract), lookup.extract.location:
        row = util.assume_int([lookup.row.type], [lookup.row], nothing)
    lookup.extract.operands[1] = row


def meets_tiled_op(results: Sequence[ir.Value]) -> bool:
    """Whether elementwise ops lead from the results of an op to one on tensors that is not elementwise."""
    pending: list[ir.Value] = list(results)
    seen: set[ir.Operation] = set()
    while pending:
        for use in pending.pop().uses:
            user = use.owner.operation
            if user in seen or user.name in ("func.return", "util.return"):
                continue
            seen.add(user)
            if user.name in _SHAPE_OPS or _is_elementwise(user):
                pending.extend(user.results)
            elif user.name.startswith(("linalg.", "iree_linalg_ext.", "tensor.")):
                return True
    return False


def _is_computed_elementwise(value: ir.Value) -> bool:
    """Whether an elementwise linalg op computes a tensor, reshapes apart."""
    op = defining_op(value)
    while op is not None and op.name in _SHAPE_OPS:
        op = defining_op(op.operands[0])
    return op is not None and op.name == "linalg.generic" and _is_elementwise(op)


def _is_elementwise(op: ir.Operation) -> bool:
    if op.name.startswith(("arith.", "math.")):
        return True
    if op.name != "linalg.generic":
        return False
    return all("parallel" in str(kind) for kind in ir.ArrayAttr(op.attributes["iterator_types"]))


def _is_computed(index: ir.Value, body: ir.Block) -> bool:
    """Whether an index is from a tensor, not from constants and the position in the loops."""
    op = defining_op(index)
    if op is None:
        return index.owner == body
    return op.name == "tensor.extract" or (op.block == body and any(_is_computed(v, body) for v in op.operands))


def _position(index: ir.Value) -> int | None:
    """The loop whose position `index` is."""
    op = defining_op(index)
    return ir.IntegerAttr(op.attributes["dim"]).value if op is not None and op.name == "linalg.index" else None


def _depends_on_loops(value: ir.Value, loops: range, generic: ir.Operation) -> bool:
    """Whether a value of the body of `generic` changes along some of `loops`."""
    body = generic.regions[0].blocks[0]
    op = defining_op(value)
    if op is None:
        if value.owner != body:
            return False
        operand_map = (indexing_maps(generic) or [])[ir.BlockArgument(value).arg_number]
        return any(_may_use(expr, loops) for expr in operand_map.results)
    if op.block != body:
        return False
    return _position(value) in loops or any(_depends_on_loops(operand, loops, generic) for operand in op.operands)


def _may_use(expr: ir.AffineExpr, loops: range) -> bool:
    if isinstance(expr, ir.AffineDimExpr):
        return expr.position in loops
    return not isinstance(expr, ir.AffineConstantExpr)


def _keeps_sign(lookup: Lookup) -> bool:
    """Whether a gather, which reads its indices as signed, reads the same rows.

    Unsigned indices are the same when they have the width of an index, or when
    all rows there are lie below the sign change.
    """
    table = ir.RankedTensorType(lookup.table.type)
    value = lookup.row
    while (op := defining_op(value)) is not None:
        value = op.operands[0]
        if op.name in ("arith.index_castui", "arith.extui"):
            width = width_of(value.type) or 0
            if width < INDEX_WIDTH and (table.is_dynamic_dim(0) or table.shape[0] > 1 << (width - 1)):
                return False
    return True

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conditions that kernels of every kind share. Each raises NoMatch when it does not hold."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir
from iree.compiler.dialects import linalg

from prepass.ir.exact import filled_number
from prepass.ir.expressions import element_type, indexing_maps, loop_positions, loop_sizes
from prepass.ir.match import NoMatch, defining_op, find_ops

# What gives a kernel a view of memory, not something that is computed for it.
_VIEWS = (
    "iree_tensor_ext.dispatch.tensor.load",
    "tensor.extract_slice",
    "tensor.collapse_shape",
    "tensor.expand_shape",
    "tensor.cast",
)


def check_element_types(op: ir.Operation, operands: Sequence[int], types: Sequence[str]) -> str:
    """The one element type, of those given, that all of these operands have."""
    found = {str(element_type(op.operands[number])) for number in operands}
    if len(found) != 1 or not found <= set(types):
        raise NoMatch(f"the operands are of type {' and '.join(sorted(found))}, not all {' or '.join(types)}", op)
    return found.pop()


def check_multiple(op: ir.Operation, name: str, size: int | None, multiple: int) -> int:
    """A size that is static and a multiple."""
    if size is None:
        raise NoMatch(f"{name} is dynamic", op)
    if size % multiple:
        raise NoMatch(f"{name} is {size}, not a multiple of {multiple}", op)
    return size


def _check_matmul_loops(op: ir.Operation) -> None:
    """The loops are M, N and K, in this order, and K is innermost in both operands."""
    dimensions = linalg.infer_contraction_dimensions(op)
    maps = indexing_maps(op)
    exact = dimensions is not None and maps is not None
    if not exact or [list(d) for d in (dimensions.batch, dimensions.m, dimensions.n, dimensions.k)] != [
        [],
        [0],
        [1],
        [2],
    ]:
        raise NoMatch("the loops are not M, N and K, in this order", op)
    layouts = [loop_positions(map_) for map_ in maps]
    if layouts != [[0, 2], [1, 2], [0, 1]]:
        raise NoMatch("K is not innermost in both operands", op)


def check_f32_sums(op: ir.Operation) -> None:
    """The result is f32."""
    if str(element_type(op.results[0])) != "f32":
        raise NoMatch("the sums are not f32", op)


def check_matmul(op: ir.Operation, types: Sequence[str], multiples: Sequence[int]) -> str:
    """A product of M×K by N×K on its own, from memory, with sums in f32 that start from zero.

    Args:
      types: Of the operands; the one that they have is returned.
      multiples: What M, N and K are to be multiples of.
    """
    _check_matmul_loops(op)
    element = check_element_types(op, (0, 1), types)
    check_f32_sums(op)
    for name, size, multiple in zip("MNK", loop_sizes(op), multiples, strict=True):
        check_multiple(op, name, size, multiple)
    check_zero_init(op)
    check_in_memory(op, (0, 1))
    check_alone(op)
    return element


def check_zero_init(op: ir.Operation) -> None:
    """The sums start from zero: a kernel that does not read its last argument needs it."""
    if filled_number(op.operands[-1]) != 0:
        raise NoMatch("the sums do not start from zero", op)


def check_in_memory(op: ir.Operation, operands: Sequence[int]) -> None:
    """The operands are read from memory as they are: what is computed in the dispatch has no place to be read from."""
    for number in operands:
        producer = defining_op(op.operands[number])
        while producer is not None and producer.name in _VIEWS[1:]:
            producer = defining_op(producer.operands[0])
        if producer is None or producer.name not in _VIEWS:
            what = producer.name if producer is not None else "a block argument"
            raise NoMatch(f"operand {number} is computed in the same dispatch, by {what}", op)


def check_alone(op: ir.Operation) -> None:
    """No other op of the dispatch needs a config of its own: it has one tile."""
    function = op
    while function.parent is not None and function.parent.operation.name != "builtin.module":
        function = function.parent.operation
    others = find_ops(
        function, lambda other: other != op and (_reduces(other) or other.name.startswith("iree_linalg_ext."))
    )
    others = [other for other in others if not other.name.endswith(".yield")]
    if others:
        raise NoMatch(f"{others[0].name} in the same dispatch reduces as well", op)


def _reduces(op: ir.Operation) -> bool:
    return "reduction" in str(op.attributes["iterator_types"]) if "iterator_types" in op.attributes else False

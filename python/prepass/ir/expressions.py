# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading tensor programs as scalar expressions over axes.

The element of a tensor at an `Index` is an expression. `expand` rewrites it in
terms of what the defining op reads, one op at a time, so a matcher sees the
arithmetic of a program and not how a frontend cut it into ops: generics with
one op or ten, named ops, casts, transposes, broadcasts and reshapes read alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import linalg

from prepass.ir.axes import Axis, Group, Index, index_leaves, leaves, resolve, split_group
from prepass.ir.match import defining_op, yielded


@dataclass(frozen=True)
class Constant:
    """A number known at compile time."""

    value: float | int
    type: ir.Type


@dataclass(frozen=True)
class Scalar:
    """An SSA value that is not a tensor."""

    value: ir.Value


@dataclass(frozen=True)
class Read:
    """The element of a tensor at an index."""

    value: ir.Value
    index: Index


@dataclass(frozen=True)
class Position:
    """Where in the iteration space an expression is evaluated: `linalg.index`."""

    group: Group


@dataclass(frozen=True)
class Apply:
    """A scalar op of the arith or math dialect."""

    name: str
    operands: tuple[Expr, ...]
    type: ir.Type
    attributes: tuple[tuple[str, ir.Attribute], ...] = ()


@dataclass(frozen=True)
class Accumulator:
    """The running value of a reduction, inside the reduction's body."""


@dataclass(frozen=True)
class Argument:
    """What a function is applied to, inside the function."""


Expr = Constant | Scalar | Read | Position | Apply | Accumulator | Argument

FLOAT_CASTS = ("arith.extf", "arith.truncf")
_COMPARISON_LIMIT = 1000


class _OpaqueError(Exception):
    """A body that cannot be read as a scalar expression."""


def type_of(expr: Expr) -> ir.Type:
    """The scalar type of an expression."""
    if isinstance(expr, Read):
        return element_type(expr.value)
    if isinstance(expr, Position):
        return ir.IndexType.get()
    if isinstance(expr, (Accumulator, Argument)):
        raise TypeError("a placeholder has no type of its own")
    return expr.value.type if isinstance(expr, Scalar) else expr.type


def element_type(value: ir.Value) -> ir.Type:
    """The element type of a tensor value."""
    return ir.RankedTensorType(value.type).element_type


def element_bytes(value: ir.Value) -> int:
    """The whole bytes of an element of a tensor of floats, integers or indices."""
    element = element_type(value)
    if isinstance(element, ir.IndexType):
        return 8
    width = ir.IntegerType(element).width if isinstance(element, ir.IntegerType) else ir.FloatType(element).width
    return width // 8


def tensor_sizes(value: ir.Value) -> list[int | None]:
    """The sizes of a tensor's dims, None where dynamic."""
    tensor = ir.RankedTensorType(value.type)
    return [None if tensor.is_dynamic_dim(d) else tensor.get_dim_size(d) for d in range(tensor.rank)]


def subexpressions(expr: Expr) -> Iterator[Expr]:
    """An expression and all it is made of, operands in order; what is used twice comes once."""
    pending, seen = [expr], set()
    while pending:
        expr = pending.pop()
        if id(expr) in seen:
            continue
        seen.add(id(expr))
        yield expr
        if isinstance(expr, Apply):
            pending.extend(reversed(expr.operands))


def axes_of(expr: Expr) -> set[Axis]:
    """The axes an expression varies along."""
    axes: set[Axis] = set()
    for part in subexpressions(expr):
        if isinstance(part, Read):
            axes.update(index_leaves(part.index))
        elif isinstance(part, Position):
            axes.update(leaves(part.group))
    return axes


def expand(read: Read) -> Expr | None:
    """The expression the op that defines `read.value` computes at `read.index`.

    None when the value is defined by a reduction, by an op that is not
    understood, or is a block argument.
    """
    op = defining_op(read.value)
    if op is None:
        return None
    if op.name == "tensor.expand_shape":
        groups = reassociation(op)
        return Read(op.operands[0], tuple(tuple(a for d in dims for a in read.index[d]) for dims in groups))
    if op.name == "tensor.collapse_shape":
        return _expand_collapse(op, read)
    if op.name in ("tensor.splat", "tensor.from_elements") and len(op.operands) == 1:
        return scalar_expr(op.operands[0])
    if op.name == "arith.constant":
        return _constant(op)
    loops = loop_groups(op, read)
    if loops is None or None in loops:
        return None
    return body_expr(op, _result_number(read.value), [group for group in loops if group is not None])


def descend(expr: Expr) -> Iterator[Expr]:
    """An expression and those below it, through casts and reads, down to an op, a number, or an unknown read."""
    while True:
        yield expr
        if isinstance(expr, Apply) and expr.name in FLOAT_CASTS:
            expr = expr.operands[0]
        elif isinstance(expr, Read) and (expanded := expand(expr)) is not None:
            expr = expanded
        else:
            return


def head(expr: Expr) -> Expr:
    """The expression below casts and reads: an op, a number, or a read that cannot be expanded."""
    *_, last = descend(expr)
    return last


def without_broadcasts(expr: Expr) -> Expr:
    """The nearest read that `expr` is a view of and that varies along the fewest axes, or the number it is."""
    best = expr
    while isinstance(expr, Read) and axes_of(best):
        expanded = expand(expr)
        if not isinstance(expanded, (Read, Constant, Scalar)):
            break
        expr = expanded
        if len(axes_of(expr)) < len(axes_of(best)):
            best = expr
    return best


def same(a: Expr, b: Expr) -> bool:
    """Whether two expressions are equal up to float casts, being read from the same values.

    False as well when they are so large that it would take long to know.
    """
    pending = [(a, b)]
    for _ in range(_COMPARISON_LIMIT):
        if not pending:
            return True
        a, b = pending.pop()
        if _identical(a, b):
            continue
        a, b = head(a), head(b)
        if isinstance(a, Apply) and isinstance(b, Apply):
            if a.name != b.name or len(a.operands) != len(b.operands) or _semantics(a) != _semantics(b):
                return False
            pending.extend(zip(a.operands, b.operands, strict=True))
        elif not _identical(a, b):
            return False
    return False


def _identical(a: Expr, b: Expr) -> bool:
    if isinstance(a, Read) and isinstance(b, Read):
        return a.value == b.value and resolve(a.index) == resolve(b.index)
    if isinstance(a, Position) and isinstance(b, Position):
        return leaves(a.group) == leaves(b.group)
    if isinstance(a, Constant) and isinstance(b, Constant):
        return a.value == b.value
    return isinstance(a, Scalar) and isinstance(b, Scalar) and a.value == b.value


def _semantics(expr: Apply) -> list[tuple[str, ir.Attribute]]:
    return [(name, attribute) for name, attribute in expr.attributes if name != "fastmath"]


def scalar_expr(value: ir.Value) -> Expr:
    """The expression of an SSA value that is not a tensor."""
    op = defining_op(value)
    if op is not None and op.name == "arith.constant":
        return _constant(op) or Scalar(value)
    if op is not None and op.name == "tensor.extract" and len(op.operands) == 1:
        return Read(op.operands[0], ())
    return Scalar(value)


def as_constant(expr: Expr, depth: int = 8) -> float | int | None:
    """The number an expression folds to, or None."""
    expr = head(expr)
    if isinstance(expr, Constant):
        return expr.value
    if not isinstance(expr, Apply) or expr.name not in _FOLDERS or depth == 0:
        return None
    operands = [as_constant(operand, depth - 1) for operand in expr.operands]
    try:
        return None if None in operands else _FOLDERS[expr.name](*operands)
    except (ArithmeticError, ValueError):
        return None


_FOLDERS: dict[str, Callable[..., float]] = {
    "arith.addf": lambda a, b: a + b,
    "arith.subf": lambda a, b: a - b,
    "arith.mulf": lambda a, b: a * b,
    "arith.divf": lambda a, b: a / b,
    "arith.negf": lambda a: -a,
    "arith.sitofp": float,
    "arith.select": lambda condition, a, b: a if condition else b,
    "math.sqrt": math.sqrt,
    "math.rsqrt": lambda a: 1 / math.sqrt(a),
}


def loop_groups(op: ir.Operation, read: Read) -> list[Group | None] | None:
    """For each loop of a linalg op, the axes that evaluate its result at `read.index`.

    Reduction loops are None. The answer is None when `op` is not a linalg op
    with maps, or writes its result in a way that is not one element a point.
    """
    if not op.name.startswith("linalg.") or len(op.regions) != 1:
        return None
    written = result_map(op, _result_number(read.value))
    if written is None:
        return None
    loops: list[Group | None] = [None] * written.n_dims
    for expr, group in zip(written.results, read.index, strict=True):
        if isinstance(expr, ir.AffineDimExpr):
            if loops[expr.position] is not None:
                return None
            loops[expr.position] = group
        elif not isinstance(expr, ir.AffineConstantExpr) or leaves(group):
            return None
    return loops


def indexing_maps(op: ir.Operation) -> list[ir.AffineMap] | None:
    """The indexing maps of a linalg op, one an operand, or None for ops without."""
    maps = linalg.get_indexing_maps(op)
    return None if maps is None else [ir.AffineMapAttr(attribute).value for attribute in maps]


def result_map(op: ir.Operation, number: int = 0) -> ir.AffineMap | None:
    """The indexing map of one result of a linalg op, or None for ops without maps."""
    maps = linalg.get_indexing_maps(op)
    return None if maps is None else ir.AffineMapAttr(maps[len(maps) - len(op.results) + number]).value


def loop_positions(affine_map: ir.AffineMap) -> list[int]:
    """The loops that a tensor's dims are indexed by, each by one alone."""
    return [ir.AffineDimExpr(expr).position for expr in affine_map.results]


def loop_sizes(op: ir.Operation) -> list[int | None]:
    """The trip counts of a linalg op's loops, None where no operand has them static."""
    maps = indexing_maps(op) or []
    sizes: list[int | None] = [None] * (maps[0].n_dims if maps else 0)
    for operand, operand_map in zip(op.operands, maps, strict=True):
        if not isinstance(operand.type, ir.RankedTensorType):
            continue
        for size, expr in zip(tensor_sizes(operand), operand_map.results, strict=True):
            if isinstance(expr, ir.AffineDimExpr) and size is not None:
                sizes[expr.position] = size
    return sizes


def body_expr(op: ir.Operation, result_number: int, loops: list[Group], *, reduction: bool = False) -> Expr | None:
    """What a linalg op yields for a result at one point of its loops, or None when that is not scalar arithmetic."""
    body = _Body(op, loops, reduction)
    try:
        return body.evaluate(yielded(op)[result_number])
    except _OpaqueError:
        return None


class _Body:
    """The body of a linalg op at one point of its loops; operands are read when what is yielded needs them."""

    def __init__(self, op: ir.Operation, loops: list[Group], reduction: bool) -> None:
        self._op = op
        self._block = op.regions[0].blocks[0]
        self._loops = loops
        self._maps = indexing_maps(op) or []
        self._accumulators = len(self._maps) - len(op.results) if reduction else len(self._maps)
        self._values: dict[ir.Value, Expr] = {}

    def evaluate(self, value: ir.Value) -> Expr:
        """The expression of a value of the body."""
        if value not in self._values:
            self._values[value] = self._make(value)
        return self._values[value]

    def _make(self, value: ir.Value) -> Expr:
        if isinstance(value, ir.BlockArgument):
            return self._operand(value.arg_number) if value.owner == self._block else scalar_expr(value)
        op = value.owner.operation
        if op.block != self._block:
            return scalar_expr(value)
        if op.name == "linalg.index":
            return Position(self._loops[ir.IntegerAttr(op.attributes["dim"]).value])
        if op.name == "arith.constant":
            return scalar_expr(value)
        if op.name.startswith(("arith.", "math.")) and len(op.results) == 1 and not len(op.regions):
            operands = tuple(self.evaluate(operand) for operand in op.operands)
            attributes = tuple((name, op.attributes[name]) for name in op.attributes)
            return Apply(op.name, operands, value.type, attributes)
        raise _OpaqueError

    def _operand(self, number: int) -> Expr:
        if number >= self._accumulators:
            return Accumulator()
        operand = self._op.operands[number]
        if not isinstance(operand.type, ir.RankedTensorType):
            return scalar_expr(operand)
        index: list[Group] = []
        for size, expr in zip(tensor_sizes(operand), self._maps[number].results, strict=True):
            if isinstance(expr, ir.AffineDimExpr):
                index.append(self._loops[expr.position])
            elif isinstance(expr, ir.AffineConstantExpr) and size == 1:
                index.append(())
            else:
                raise _OpaqueError
        return Read(operand, tuple(index))


def _expand_collapse(op: ir.Operation, read: Read) -> Read | None:
    sizes = tensor_sizes(op.operands[0])
    index: list[Group] = []
    for dims, group in zip(reassociation(op), read.index, strict=True):
        groups = split_group(group, [sizes[d] for d in dims])
        if groups is None:
            return None
        index.extend(groups)
    # A tensor whose dims are all 1 collapses to rank 0 with no groups at all.
    return Read(op.operands[0], tuple(index) if index else ((),) * len(sizes))


def reassociation(op: ir.Operation) -> list[list[int]]:
    """For each dim of the smaller shape of a reshape, the dims of the larger one that it consists of."""
    groups = ir.ArrayAttr(op.attributes["reassociation"])
    return [[ir.IntegerAttr(d).value for d in ir.ArrayAttr(group)] for group in groups]


def _constant(op: ir.Operation) -> Constant | None:
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        if not attribute.is_splat:
            return None
        attribute = attribute.get_splat_value()
    if isinstance(attribute, (ir.FloatAttr, ir.IntegerAttr, ir.BoolAttr)):
        return Constant(attribute.value, attribute.type)
    return None


def _result_number(value: ir.Value) -> int:
    return ir.OpResult(value).result_number

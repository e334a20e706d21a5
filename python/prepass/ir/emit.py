# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Building tensor ops from indices and expressions, at the current insertion point."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from iree.compiler import ir
from iree.compiler.dialects import arith

from prepass.ir.axes import Axis, Group, Index, index_leaves, leaves, resolve, static_extent
from prepass.ir.expressions import Apply, Constant, Expr, Position, Read, Scalar, element_type, subexpressions
from prepass.ir.match import defining_op, find_ops


class Extents:
    """SSA values of axis extents, found in the tensors that are read along them."""

    def __init__(self, reads: Sequence[Read]) -> None:
        self._reads = reads

    def known(self, axis: Axis) -> bool:
        """Whether the extent of `axis` can be computed."""
        return axis.extent is not None or self._find(axis) is not None

    def value(self, axis: Axis) -> ir.Value:
        """The extent of `axis` as an index value."""
        if axis.extent is not None:
            return index_constant(axis.extent)
        found = self._find(axis)
        if found is None:
            raise ValueError("the extent of the axis is in no tensor")
        value, dim, divisor = found
        size = dim_size(value, dim)
        return size if divisor == 1 else arith.divui(size, index_constant(divisor))

    def product(self, group: Group) -> ir.Value:
        """The product of the extents of a group."""
        dynamic = [self.value(axis) for axis in leaves(group) if axis.extent is None]
        static = math.prod(axis.extent for axis in leaves(group) if axis.extent is not None)
        product = dynamic[0] if dynamic else index_constant(static)
        for factor in dynamic[1:] + ([index_constant(static)] if dynamic and static != 1 else []):
            product = arith.muli(product, factor)
        return product

    def _find(self, axis: Axis) -> tuple[ir.Value, int, int] | None:
        for read in self._reads:
            for dim, group in enumerate(resolve(read.index)):
                others = [other.extent for other in group if other is not axis]
                if axis in group and None not in others:
                    return read.value, dim, math.prod(e for e in others if e is not None)
        return None


def index_constant(number: int) -> ir.Value:
    """An index constant."""
    return arith.constant(ir.IndexType.get(), number)


def loop_index(number: int) -> ir.Value:
    """Where a loop is, a `linalg.index`, in the body of a linalg op."""
    dim = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
    return ir.Operation.create("linalg.index", [ir.IndexType.get()], attributes={"dim": dim}).result


def empty(index: Index, element: ir.Type, extents: Extents) -> ir.Value:
    """A `tensor.empty` with one dim a group of the index."""
    type_ = _tensor_type(index, element)
    dynamic = [extents.product(group) for d, group in enumerate(index) if type_.is_dynamic_dim(d)]
    return ir.Operation.create("tensor.empty", [type_], dynamic).result


def zeros(index: Index, element: ir.Type, extents: Extents) -> ir.Value:
    """A tensor of zeros with one dim a group of the index."""
    into = empty(index, element, extents)
    segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1])}
    fill = ir.Operation.create("linalg.fill", [into.type], [constant(0, element), into], segments, regions=1)
    block = fill.regions[0].blocks.append(element, element, arg_locs=[fill.location] * 2)
    with ir.InsertionPoint(block):
        ir.Operation.create("linalg.yield", [], [block.arguments[0]])
    return fill.result


def relayout(value: ir.Value, source: Index, target: Index, extents: Extents) -> ir.Value:
    """`value`, whose dims are `source`, with dims `target`, over the same axes.

    Expands, transposes if the order of axes differs, and collapses; does nothing
    where the layouts agree.
    """
    source, target = resolve(source), resolve(target)
    if source == target:
        return value
    runs = _runs(source, target)
    split = tuple(run for dim in runs for run in (dim or [()]))
    value = _expand(value, [max(len(dim), 1) for dim in runs], split, extents)
    used = tuple(run for run in split if run)
    value = _collapse(value, _attach_units([bool(run) for run in split]), used)
    order = sorted(range(len(used)), key=lambda n: index_leaves(target).index(used[n][0]))
    if order != list(range(len(used))):
        value = _transpose(value, order, tuple(used[n] for n in order), extents)
    ordered = [used[n] for n in order]
    counts = [sum(1 for run in ordered if run[0] in group) for group in target]
    merged = tuple(group for group in target if group)
    value = _collapse(value, _consecutive([count for count in counts if count]), merged)
    return _expand_units(value, target, extents)


def emit_tensor(expr: Expr, index: Index, element: ir.Type, extents: Extents) -> ir.Value:
    """A tensor with dims `index` that holds `expr` as elements of type `element`."""
    loops = tuple((axis,) for axis in index_leaves(index))
    reads: dict[tuple[ir.Value, Index], ir.Value] = {}
    maps: list[ir.AffineMap] = []
    for read in (part for part in subexpressions(expr) if isinstance(part, Read)):
        key = (read.value, resolve(read.index))
        if key not in reads:
            present = tuple(loop for loop in loops if loop[0] in index_leaves(read.index))
            reads[key] = relayout(read.value, read.index, present, extents)
            dims = [ir.AffineExpr.get_dim(loops.index(loop)) for loop in present]
            maps.append(ir.AffineMap.get(len(loops), 0, dims))
    maps.append(ir.AffineMap.get_identity(len(loops)))

    def body(arguments: Sequence[ir.Value]) -> ir.Value:
        elements = dict(zip(reads, arguments, strict=False))
        return emit_scalar(expr, elements, lambda group: _emit_position(group, loops, extents))

    result = generic(list(reads.values()), empty(loops, element, extents), maps, body)
    return relayout(result, loops, index, extents)


def generic(
    inputs: Sequence[ir.Value],
    init: ir.Value,
    maps: Sequence[ir.AffineMap],
    body: Callable[[Sequence[ir.Value]], ir.Value],
) -> ir.Value:
    """A `linalg.generic` that yields what `body` makes of its block arguments; loops not in the result are reduced."""
    return generics(inputs, [init], maps, lambda arguments: [body(arguments)])[0]


def generics(
    inputs: Sequence[ir.Value],
    inits: Sequence[ir.Value],
    maps: Sequence[ir.AffineMap],
    body: Callable[[Sequence[ir.Value]], Sequence[ir.Value]],
) -> list[ir.Value]:
    """A `linalg.generic` with several results; see `generic`."""
    kept = {expr.position for expr in map(ir.AffineDimExpr, maps[-1].results)}
    kinds = ["parallel" if dim in kept else "reduction" for dim in range(maps[-1].n_dims)]
    op = ir.Operation.create(
        "linalg.generic",
        [init.type for init in inits],
        [*inputs, *inits],
        {
            "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps]),
            "iterator_types": ir.ArrayAttr.get(
                [ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds]
            ),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inputs), len(inits)]),
        },
        regions=1,
    )
    types = [element_type(value) for value in (*inputs, *inits)]
    block = op.regions[0].blocks.append(*types, arg_locs=[op.location] * len(types))
    with ir.InsertionPoint(block):
        ir.Operation.create("linalg.yield", [], body(block.arguments))
    return list(op.results)


def emit_scalar(
    expr: Expr,
    reads: dict[tuple[ir.Value, Index], ir.Value] | None = None,
    position: Callable[[Group], ir.Value] | None = None,
) -> ir.Value:
    """The value of an expression.

    `reads` gives the tensor elements; those it does not have are extracted and
    must be uniform. `position` gives where in the iteration space this is.
    """
    values: dict[Expr | int, ir.Value] = {}

    def emit(expr: Expr) -> ir.Value:
        # The hash of an op is that of its operands, at every level again; identity is enough.
        key = id(expr) if isinstance(expr, Apply) else expr
        if key not in values:
            values[key] = make(expr)
        return values[key]

    def make(expr: Expr) -> ir.Value:
        match expr:
            case Constant(value, type_):
                return constant(value, type_)
            case Scalar(value):
                return value
            case Read(value, index):
                return (reads or {}).get((value, resolve(index))) or _extract(value)
            case Position(group) if position is not None:
                return position(group)
            case Apply(name, operands, type_, attributes):
                operand_values = [emit(operand) for operand in operands]
                return ir.Operation.create(name, [type_], operand_values, dict(attributes)).result
        raise TypeError(f"not an expression of values: {expr}")

    return emit(expr)


def constant(value: float | int, type_: ir.Type) -> ir.Value:
    """An `arith.constant`."""
    attribute = ir.IntegerAttr.get if isinstance(type_, (ir.IntegerType, ir.IndexType)) else ir.FloatAttr.get
    return ir.Operation.create("arith.constant", [type_], attributes={"value": attribute(type_, value)}).result


def dim_size(value: ir.Value, dim: int) -> ir.Value:
    """The size of a dim of a tensor, a `tensor.dim`."""
    return ir.Operation.create("tensor.dim", [ir.IndexType.get()], [value, index_constant(dim)]).result


def pad_high(value: ir.Value, dim: int, amount: int, fill: ir.Value) -> ir.Value:
    """`value` with `amount` more elements at the end of a dim, a `tensor.pad`."""
    rank = ir.RankedTensorType(value.type).rank
    return pad(value, [0] * rank, [amount if d == dim else 0 for d in range(rank)], fill)


def pad(
    value: ir.Value, low: Sequence[int], high: Sequence[int], fill: ir.Value, type_: ir.Type | None = None
) -> ir.Value:
    """`value` with more elements before and behind it in each dim, a `tensor.pad`, of type `type_` where that is given.

    A type says more than the amounts do where a padded dim is dynamic and its size is known.
    """
    source = ir.RankedTensorType(value.type)
    dynamic = ir.ShapedType.get_dynamic_size()
    shape = [dynamic if source.is_dynamic_dim(d) else size + low[d] + high[d] for d, size in enumerate(source.shape)]
    op = ir.Operation.create(
        "tensor.pad",
        [type_ or ir.RankedTensorType.get(shape, source.element_type)],
        [value],
        {
            "static_low": ir.DenseI64ArrayAttr.get(list(low)),
            "static_high": ir.DenseI64ArrayAttr.get(list(high)),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0]),
        },
        regions=1,
    )
    block = op.regions[0].blocks.append(*[ir.IndexType.get()] * source.rank, arg_locs=[op.location] * source.rank)
    with ir.InsertionPoint(block):
        ir.Operation.create("tensor.yield", [], [fill])
    return op.result


def extract_slice(value: ir.Value, offsets: Sequence[int | ir.Value], type_: ir.Type) -> ir.Value:
    """The part of `value` of type `type_` at an offset; a dim that is dynamic in `type_` is taken whole."""
    part = ir.RankedTensorType(type_)
    dynamic_offsets = [offset for offset in offsets if isinstance(offset, ir.Value)]
    dynamic_sizes = [dim_size(value, dim) for dim in range(part.rank) if part.is_dynamic_dim(dim)]
    static = [ir.ShapedType.get_dynamic_size() if isinstance(offset, ir.Value) else offset for offset in offsets]
    attributes = {
        "static_offsets": ir.DenseI64ArrayAttr.get(static),
        "static_sizes": ir.DenseI64ArrayAttr.get(list(part.shape)),
        "static_strides": ir.DenseI64ArrayAttr.get([1] * part.rank),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, len(dynamic_offsets), len(dynamic_sizes), 0]),
    }
    operands = [value, *dynamic_offsets, *dynamic_sizes]
    return ir.Operation.create("tensor.extract_slice", [part], operands, attributes).result


def slice_dim(value: ir.Value, dim: int, offset: int | ir.Value, size: int) -> ir.Value:
    """Elements `offset` to `offset + size` of a tensor along `dim`; the other dims are whole."""
    type_ = ir.RankedTensorType(value.type)
    shape = [size if each == dim else whole for each, whole in enumerate(type_.shape)]
    offsets = [offset if each == dim else 0 for each in range(type_.rank)]
    return extract_slice(value, offsets, ir.RankedTensorType.get(shape, type_.element_type))


def erase_dead_producers(values: Sequence[ir.Value]) -> None:
    """Erase the pure ops that define `values` and are not read, and what becomes dead with them."""
    pending = dict.fromkeys(op for value in values if (op := defining_op(value)) is not None)
    while pending:
        op, _ = pending.popitem()
        if not _is_pure(op) or any(next(iter(result.uses), None) is not None for result in op.results):
            continue
        pending.update(dict.fromkeys(_producers(op)))
        op.erase()


def _producers(op: ir.Operation) -> list[ir.Operation]:
    """The ops whose results `op` reads, its regions included, in the order it reads them."""
    inside = find_ops(op, lambda _: True) if len(op.regions) else [op]
    operands = [operand for nested in inside for operand in nested.operands]
    producers = dict.fromkeys(producer for operand in operands if (producer := defining_op(operand)) is not None)
    return [producer for producer in producers if producer not in inside]


def _is_pure(op: ir.Operation) -> bool:
    known = op.name.split(".")[0] in ("linalg", "tensor", "arith", "math", "complex", "affine")
    if not known and op.name != "iree_tensor_ext.bitcast":
        return False
    return all(_is_pure(nested.operation) for region in op.regions for block in region for nested in block)


def _extract(value: ir.Value) -> ir.Value:
    zero = [index_constant(0)] if ir.RankedTensorType(value.type).rank else []
    indices = zero * ir.RankedTensorType(value.type).rank
    return ir.Operation.create("tensor.extract", [element_type(value)], [value, *indices]).result


def _emit_position(group: Group, loops: Index, extents: Extents) -> ir.Value:
    position: ir.Value | None = None
    for axis in leaves(group):
        here = loop_index(loops.index((axis,)))
        position = here if position is None else arith.addi(arith.muli(position, extents.value(axis)), here)
    return index_constant(0) if position is None else position


def _tensor_type(index: Index, element: ir.Type) -> ir.RankedTensorType:
    dynamic = ir.ShapedType.get_dynamic_size()
    extents = (static_extent(group) for group in index)
    return ir.RankedTensorType.get([dynamic if extent is None else extent for extent in extents], element)


def _runs(source: Index, target: Index) -> list[list[Group]]:
    """The dims of `source` cut where `target` does not keep neighbours together."""
    following = {a: b for group in target for a, b in itertools.pairwise(group)}
    dims: list[list[Group]] = []
    for group in source:
        runs: list[Group] = []
        for axis in group:
            if runs and following.get(runs[-1][-1]) is axis:
                runs[-1] = (*runs[-1], axis)
            else:
                runs.append((axis,))
        dims.append(runs)
    return dims


def _attach_units(used: Sequence[bool]) -> list[list[int]]:
    """Group dims so that each group has one used dim, unit dims going with a neighbour."""
    groups: list[list[int]] = []
    waiting: list[int] = []
    for dim, is_used in enumerate(used):
        waiting.append(dim)
        if is_used:
            groups.append(waiting)
            waiting = []
    if groups:
        groups[-1].extend(waiting)
    return groups


def _consecutive(counts: Sequence[int]) -> list[list[int]]:
    starts = [sum(counts[:n]) for n in range(len(counts))]
    return [list(range(start, start + count)) for start, count in zip(starts, counts, strict=True)]


def _expand(value: ir.Value, counts: Sequence[int], index: Index, extents: Extents) -> ir.Value:
    if all(count == 1 for count in counts):
        return value
    return _expand_shape(value, _consecutive(counts), index, extents)


def _expand_units(value: ir.Value, target: Index, extents: Extents) -> ir.Value:
    if all(target):
        return value
    return _expand_shape(value, _attach_units([bool(group) for group in target]), target, extents)


def _expand_shape(value: ir.Value, groups: list[list[int]], index: Index, extents: Extents) -> ir.Value:
    type_ = _tensor_type(index, element_type(value))
    dynamic = [extents.product(group) for d, group in enumerate(index) if type_.is_dynamic_dim(d)]
    attributes = {
        "reassociation": _reassociation_attribute(groups),
        "static_output_shape": ir.DenseI64ArrayAttr.get(type_.shape),
    }
    return ir.Operation.create("tensor.expand_shape", [type_], [value, *dynamic], attributes).result


def _collapse(value: ir.Value, groups: list[list[int]], index: Index) -> ir.Value:
    if ir.RankedTensorType(value.type).rank == len(index):
        return value
    type_ = _tensor_type(index, element_type(value))
    attributes = {"reassociation": _reassociation_attribute(groups)}
    return ir.Operation.create("tensor.collapse_shape", [type_], [value], attributes).result


def _transpose(value: ir.Value, order: Sequence[int], index: Index, extents: Extents) -> ir.Value:
    init = empty(index, element_type(value), extents)
    inverse = [list(order).index(d) for d in range(len(order))]
    source = ir.AffineMap.get(len(order), 0, [ir.AffineExpr.get_dim(d) for d in inverse])
    return generic([value], init, [source, ir.AffineMap.get_identity(len(order))], lambda arguments: arguments[0])


def _reassociation_attribute(groups: list[list[int]]) -> ir.ArrayAttr:
    i64 = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get([ir.ArrayAttr.get([ir.IntegerAttr.get(i64, d) for d in group]) for group in groups])

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Building the MLIR of kernels: a function for each thing that a kernel does, over the dialects' own bindings.

Bodies of functions and loops are Python functions that get the block arguments and return what is yielded:

    def body(lhs, rhs, acc):
        def thread(id):
            row, column = delinearize(id, (8, 32))
            ...
            return [Insertion(tile, (row, column, 0), (1, 1, 4))]
        return threads(256, [tensor_empty((8, 32, 4), f32())], thread)

    tensor_ukernel("my_kernel", [tensor((64, None), f16()), ...], [tensor((64, 64), f32())], body)

Everything is made at the current insertion point with the current location. What has no function here is made with
the bindings, `iree.compiler.dialects.{arith,math,vector,rocdl,…}`, or with `ir.Operation.create`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import affine, amdgpu, arith, gpu, memref, scf, tensor, util, vector

Shape = Sequence[int | None]
Indices = Sequence[ir.Value | int]

_WORKGROUP = "#gpu.address_space<workgroup>"


def f16() -> ir.Type:
    """The type f16."""
    return ir.F16Type.get()


def bf16() -> ir.Type:
    """The type bf16."""
    return ir.BF16Type.get()


def f32() -> ir.Type:
    """The type f32."""
    return ir.F32Type.get()


def tensor_type(shape: Shape, element: ir.Type) -> ir.RankedTensorType:
    """A tensor type; None is a dynamic size."""
    dynamic = ir.ShapedType.get_dynamic_size()
    return ir.RankedTensorType.get([dynamic if size is None else size for size in shape], element)


def vector_type(shape: int | Sequence[int], element: ir.Type) -> ir.VectorType:
    """A vector type."""
    return ir.VectorType.get([shape] if isinstance(shape, int) else list(shape), element)


def constant(value: float | int, type_: ir.Type) -> ir.Value:
    """A constant; of a vector type, with all elements equal."""
    if isinstance(type_, ir.VectorType):
        scalar = _number(value, type_.element_type)
        return arith.constant(type_, ir.DenseElementsAttr.get_splat(type_, scalar))
    return arith.constant(type_, _number(value, type_))


def index(value: ir.Value | int) -> ir.Value:
    """An index constant; a value is returned as it is."""
    return constant(value, ir.IndexType.get()) if isinstance(value, int) else value


def i32(value: int) -> ir.Value:
    """A constant of type i32."""
    return constant(value, ir.IntegerType.get_signless(32))


def apply(formula: Callable[..., ir.AffineExpr], *values: ir.Value) -> ir.Value:
    """An index computed from others: `apply(lambda row, k: row * 8 + k, row, k)`."""
    dims = [ir.AffineExpr.get_dim(position) for position in range(len(values))]
    return affine.apply(ir.AffineMap.get(len(dims), 0, [formula(*dims)]), list(values))


def delinearize(value: ir.Value, basis: Sequence[int]) -> list[ir.Value]:
    """The digits of an index in a mixed basis, the outermost first."""
    op = affine.AffineDelinearizeIndexOp([ir.IndexType.get()] * len(basis), value, [], list(basis))
    return list(op.results)


def dim(value: ir.Value, position: int) -> ir.Value:
    """The size of a tensor's dim."""
    return tensor.DimOp(value, index(position)).result


def tensor_empty(shape: Sequence[int], element: ir.Type) -> ir.Value:
    """A tensor without contents."""
    return tensor.empty(list(shape), element)


def collapse(value: ir.Value, groups: Sequence[Sequence[int]]) -> ir.Value:
    """A tensor of static shape, each group of neighbouring dims made one."""
    type_ = ir.RankedTensorType(value.type)
    shape = [_product(type_.shape[position] for position in group) for group in groups]
    return tensor.CollapseShapeOp(tensor_type(shape, type_.element_type), value, _groups(groups)).result


def expand(value: ir.Value, shape: Sequence[int], groups: Sequence[Sequence[int]]) -> ir.Value:
    """A tensor of static shape, each dim made the dims of a group."""
    type_ = tensor_type(shape, ir.RankedTensorType(value.type).element_type)
    return tensor.ExpandShapeOp(type_, value, _groups(groups), [], list(shape)).result


def lds(shape: Sequence[int], element: ir.Type) -> ir.Value:
    """A buffer in the LDS of the workgroup. It is allocated outside of `threads`."""
    space = ir.Attribute.parse(_WORKGROUP)
    return memref.AllocOp(ir.MemRefType.get(list(shape), element, memory_space=space), [], []).result


def lds_barrier() -> None:
    """Wait for all threads of the workgroup, and for their accesses to LDS."""
    gpu.BarrierOp(address_spaces=ir.ArrayAttr.get([ir.Attribute.parse(_WORKGROUP)]))


def load(source: ir.Value, indices: Indices, shape: int | Sequence[int]) -> ir.Value:
    """A vector read from the innermost dims of a tensor or a buffer; it must be in bounds."""
    type_ = ir.ShapedType(source.type)
    result = vector_type(shape, type_.element_type)
    padding = constant(0, type_.element_type)
    map_ = ir.AffineMap.get_minor_identity(type_.rank, result.rank)
    return vector.transfer_read(result, source, [index(i) for i in indices], map_, padding, [True] * result.rank)


def store(value: ir.Value, into: ir.Value, indices: Indices) -> None:
    """Write a vector to the innermost dims of a buffer; it must be in bounds."""
    _write(value, into, indices, None)


def insert(value: ir.Value, into: ir.Value, indices: Indices, dims: Sequence[int] | None = None) -> ir.Value:
    """A tensor with a vector written to it in bounds: to its innermost dims, or to the dims given."""
    return _write(value, into, indices, dims).result


def reshape(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """A vector of another shape."""
    return vector.ShapeCastOp(vector_type(shape, ir.VectorType(value.type).element_type), value).result


def part(value: ir.Value, offset: int, size: int) -> ir.Value:
    """Some neighbouring elements of a vector of one dim."""
    type_ = vector_type(size, ir.VectorType(value.type).element_type)
    return vector.ExtractStridedSliceOp(type_, value, [offset], [size], [1]).result


def element(value: ir.Value, *position: int) -> ir.Value:
    """An element, or an inner vector, of a vector."""
    return vector.ExtractOp(value, [], list(position)).result


def join(first: ir.Value, second: ir.Value) -> ir.Value:
    """One vector of two, each of one dim."""
    count = ir.VectorType(first.type).shape[0] + ir.VectorType(second.type).shape[0]
    return vector.ShuffleOp(first, second, list(range(count))).result


def splat(value: ir.Value, shape: int | Sequence[int]) -> ir.Value:
    """A vector with all elements equal."""
    return vector.BroadcastOp(vector_type(shape, value.type), value).result


def reduce(kind: str, value: ir.Value, start: ir.Value | None = None) -> ir.Value:
    """The reduction of a vector of one dim: "add", "maxnumf", …"""
    attribute = ir.Attribute.parse(f"#vector.kind<{kind}>")
    return vector.ReductionOp(ir.VectorType(value.type).element_type, attribute, value, acc=start).result


def shuffle_xor(value: ir.Value, mask: int, width: int = 64) -> ir.Value:
    """The value of the lane whose number differs in the bits of `mask`."""
    return gpu.ShuffleOp(value, i32(mask), i32(width), ir.Attribute.parse("#gpu.shuffle_mode<xor>")).shuffleResult


def mfma(lhs: ir.Value, rhs: ir.Value, acc: ir.Value, shape: tuple[int, int, int] = (32, 32, 8)) -> ir.Value:
    """A matrix instruction of a wave, M×N×K. See the ISA reference for which lane holds which elements."""
    return amdgpu.MFMAOp(*shape, lhs, rhs, acc).destD


def loop(
    start: ir.Value | int,
    stop: ir.Value | int,
    step: int,
    carried: Sequence[ir.Value],
    body: Callable[..., Sequence[ir.Value]],
) -> list[ir.Value]:
    """An `scf.for`; `body(index, *carried)` returns what the next iteration carries."""
    op = scf.ForOp(index(start), index(stop), index(step), list(carried))
    with ir.InsertionPoint(op.body):
        scf.YieldOp(list(body(op.induction_variable, *op.inner_iter_args)))
    return list(op.results)


def call_bitcode(
    function: str,
    inputs: Sequence[ir.Value],
    outs: Sequence[ir.Value],
    others: Sequence[ir.Value] = (),
    strides: Sequence[Sequence[int]] | None = None,
) -> list[ir.Value]:
    """Call a function of an object that is linked in; returns the tensors of `outs` with what it writes to them.

    The function gets, for each tensor, inputs first, a pointer, an offset in elements and the strides of the dims
    listed in `strides`, all of them by default; then `others`. Indices are 64 bits wide.
    """
    attributes: dict[str, ir.Attribute] = {
        "u_kernel_fn_name": ir.StringAttr.get(function),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inputs), len(outs), len(others)]),
    }
    if strides is not None:
        attributes["strided_dims"] = _groups(strides)
    types = [out.type for out in outs]
    op = ir.Operation.create("iree_codegen.ukernel.generic", types, [*inputs, *outs, *others], attributes)
    return list(op.results)


@dataclass(frozen=True)
class Insertion:
    """What a thread contributes to one result of `threads`: a tensor, where it goes, and its sizes there."""

    source: ir.Value
    offsets: Indices
    sizes: Sequence[int]


def threads(count: int, outs: Sequence[ir.Value], body: Callable[[ir.Value], Sequence[Insertion]]) -> list[ir.Value]:
    """What the threads of a workgroup compute: `body(id)` returns an insertion for each of `outs`."""
    mapping = ir.ArrayAttr.get([ir.Attribute.parse("#gpu.thread<linear_dim_0>")])
    op = scf.ForallOp([0], [count], [1], list(outs), mapping=mapping)
    with ir.InsertionPoint(op.body):
        insertions = body(op.induction_variables[0])
        end = scf.InParallelOp()
    with ir.InsertionPoint(end.block):
        for insertion, out in zip(insertions, op.inner_iter_args, strict=True):
            _parallel_insert(insertion, out)
    return list(op.results)


def tensor_ukernel(
    name: str,
    arguments: Sequence[ir.Type],
    results: Sequence[ir.Type],
    body: Callable[..., Sequence[ir.Value]],
) -> ir.Operation:
    """The function of a kernel: `body(*arguments)` returns the results. It has one block, to be inlined."""
    type_ = ir.FunctionType.get(list(arguments), list(results))
    function = util.FuncOp(name, ir.TypeAttr.get(type_), sym_visibility="private")
    location = ir.Location.current
    block = function.operation.regions[0].blocks.append(*arguments, arg_locs=[location] * len(arguments))
    with ir.InsertionPoint(block):
        util.ReturnOp(list(body(*block.arguments)))
    return function.operation


def _number(value: float | int, type_: ir.Type) -> ir.Attribute:
    if isinstance(type_, ir.IntegerType | ir.IndexType):
        return ir.IntegerAttr.get(type_, int(value))
    return ir.FloatAttr.get(type_, float(value))


def _write(value: ir.Value, into: ir.Value, indices: Indices, dims: Sequence[int] | None) -> vector.TransferWriteOp:
    rank, vector_rank = len(indices), ir.VectorType(value.type).rank
    exprs = [ir.AffineExpr.get_dim(position) for position in dims or range(rank - vector_rank, rank)]
    result = into.type if isinstance(into.type, ir.RankedTensorType) else None
    map_ = ir.AffineMap.get(rank, 0, exprs)
    return vector.TransferWriteOp(result, value, into, [index(i) for i in indices], map_, [True] * vector_rank)


def _parallel_insert(insertion: Insertion, out: ir.Value) -> None:
    dynamic = ir.ShapedType.get_dynamic_size()
    values = [offset for offset in insertion.offsets if not isinstance(offset, int)]
    offsets = [offset if isinstance(offset, int) else dynamic for offset in insertion.offsets]
    strides = [1] * len(offsets)
    tensor.ParallelInsertSliceOp(insertion.source, out, values, [], [], offsets, list(insertion.sizes), strides)


def _groups(groups: Sequence[Sequence[int]]) -> ir.ArrayAttr:
    integer = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get([ir.ArrayAttr.get([ir.IntegerAttr.get(integer, d) for d in group]) for group in groups])


def _product(sizes: object) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compute convolutions whose patches do not overlap as contractions of the reshaped input.

Where the stride is the size of the kernel, as in the patch embeddings of vision transformers, each pixel belongs to one
patch, and a reshape shows which. IREE cuts patches of three channels out two bytes at a time on gfx942; of the reshaped
input it reads rows.

Before:

    %conv = linalg.conv_2d_nchw_fchw {strides = dense<16> : vector<2xi64>}
        ins(%x, %filter : tensor<2x3x224x224xf16>, tensor<768x3x16x16xf16>) outs(%init : tensor<2x768x14x14xf32>) ...

After: (for ROCm)

    %patches = tensor.expand_shape %x [[0], [1], [2, 3], [4, 5]] ... into tensor<2x3x14x16x14x16xf16>
    %contraction = linalg.generic {...}  // n, f, h, w, and sums over c, p, q
        ins(%patches, %filter : tensor<2x3x14x16x14x16xf16>, tensor<768x3x16x16xf16>)
        outs(%init : tensor<2x768x14x14xf32>) ...

For other targets the patches are copied together as well, into a matrix of 392x768: llvm-cpu computes the contraction
above element by element.

Left alone when

- the convolution has dilations, or is none of the plain named ones;
- rows or columns at the edge belong to no patch;
- a size other than that of the batch is dynamic.

Source: the "linear projection of flattened patches" of https://arxiv.org/abs/2010.11929
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.axes import Axis, Group, Index
from prepass.ir.elementwise import clone_body
from prepass.ir.emit import Extents, emit_tensor, erase_dead_producers, generic, relayout, zeros
from prepass.ir.exact import filled_number
from prepass.ir.expressions import Apply, Read, element_type, tensor_sizes
from prepass.ir.match import NoMatch, find_ops
from prepass.ir.named_convolutions import LAYOUTS, SPACE, rates
from prepass.pipeline.base import Pass, PassContext


@dataclass(frozen=True)
class _Patches:
    """A convolution of patches, by axes.

    Attributes:
      source, filter, result: Where each operand is read or written; a spatial dim of the input is a patch and a place
        in it.
      inside: What is summed over, in the order of the filter.
    """

    op: ir.Operation
    source: Index
    filter: Index
    result: Index
    inside: tuple[Axis, ...]


def _match_patches(op: ir.Operation) -> _Patches | None:
    """Read a named convolution; None when its patches overlap or are single pixels."""
    layout, filter_layout, output = LAYOUTS[op.name]
    x, w, y = (
        dict(zip(letters, tensor_sizes(value), strict=True))
        for letters, value in zip((layout, filter_layout, output), (*list(op.operands)[:2], op.results[0]), strict=True)
    )
    space = [letter for letter in layout if letter in SPACE]
    if [w[letter] for letter in space] != rates(op, "strides") or all(w[letter] == 1 for letter in space):
        return None
    if any(rate != 1 for rate in rates(op, "dilations")):
        raise NoMatch("the filter is dilated", op)
    if None in [*(size for letter, size in x.items() if letter != "n"), *w.values()]:
        raise NoMatch("a size other than that of the batch is dynamic", op)
    if any(x[letter] != (y[letter] or 0) * (w[letter] or 0) for letter in space):
        raise NoMatch("rows or columns at the edge belong to no patch", op)
    axes = {"n": Axis(x["n"]), "c": Axis(x["c"]), "f": Axis(w["f"])}
    patch = {letter: Axis(y[letter]) for letter in space}
    place = {letter: Axis(w[letter]) for letter in space}
    return _Patches(
        op,
        tuple((patch[letter], place[letter]) if letter in space else (axes[letter],) for letter in layout),
        tuple((place[letter],) if letter in space else (axes[letter],) for letter in filter_layout),
        tuple((patch[letter],) if letter in space else (axes[letter],) for letter in output),
        tuple(place.get(letter) or axes[letter] for letter in filter_layout if letter != "f"),
    )


def _build_by_rows(found: _Patches, extents: Extents) -> ir.Value:
    """A contraction that reads the patches where they are."""
    op = found.op
    split = tuple((axis,) for group in found.source for axis in group)
    source = relayout(op.operands[0], found.source, split, extents)
    loops = [*found.result, *((axis,) for axis in found.inside)]
    maps = _maps(loops, split, found.filter, found.result)
    return generic([source, op.operands[1]], op.operands[2], maps, lambda new: _product(op, new))


def _maps(loops: Sequence[Group], *indices: Index) -> list[ir.AffineMap]:
    return [
        ir.AffineMap.get(len(loops), 0, [ir.AffineExpr.get_dim(loops.index(group)) for group in index])
        for index in indices
    ]


def _product(op: ir.Operation, arguments: Sequence[ir.Value]) -> ir.Value:
    (result,) = clone_body(op, dict(zip(op.regions[0].blocks[0].arguments, arguments, strict=True)))
    return result


def _build_matmul(op: ir.Operation, operands: Sequence[ir.Value], maps: Sequence[ir.AffineMap]) -> ir.Value:
    """A named product of matrices; IREE would fold the transpose behind it into a generic one, which is slow."""
    attributes = {
        "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(map_) for map_ in maps]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([2, 1]),
    }
    made = ir.Operation.create("linalg.matmul", [operands[-1].type], operands, attributes, regions=1)
    types = [element_type(value) for value in operands]
    block = made.regions[0].blocks.append(*types, arg_locs=[made.location] * len(types))
    with ir.InsertionPoint(block):
        ir.Operation.create("linalg.yield", [], [_product(op, block.arguments)])
    return made.result


def _build_as_matrix(found: _Patches, extents: Extents) -> ir.Value:
    """A product of two matrices: the patches copied together, and the filter."""
    op = found.op
    (channel,) = (group for group in found.filter if group[0] not in found.inside)
    rows = tuple(axis for group in found.source for axis in group if axis not in found.inside)
    matrix = (channel, found.inside) if found.filter[0] == channel else (found.inside, channel)
    accumulator = element_type(op.results[0])
    operands = [
        relayout(op.operands[0], found.source, (rows, found.inside), extents),
        relayout(op.operands[1], found.filter, matrix, extents),
        zeros((rows, channel), accumulator, extents),
    ]
    maps = _maps((rows, channel, found.inside), (rows, found.inside), matrix, (rows, channel))
    product = _build_matmul(op, operands, maps)
    if filled_number(op.operands[2]) == 0:
        return relayout(product, (rows, channel), found.result, extents)
    add = "arith.addi" if isinstance(accumulator, ir.IntegerType) else "arith.addf"
    reads = Read(product, (rows, channel)), Read(op.operands[2], found.result)
    return emit_tensor(Apply(add, reads, accumulator), found.result, accumulator, extents)


@dataclass(frozen=True)
class UnfoldPatchesPass(Pass):
    """Compute convolutions whose patches do not overlap as contractions of the reshaped input."""

    name = "prepass-unfold-patches"
    dependent_dialects = ("arith", "linalg", "tensor")

    def run(self, op: ir.Operation, context: PassContext) -> None:
        by_rows = context.target is not None and context.target.backend == "rocm"
        build = _build_by_rows if by_rows else _build_as_matrix
        for convolution, found in context.matches(find_ops(op, lambda found: found.name in LAYOUTS), _match_patches):
            context.applied(convolution, "its patches are rows of a contraction")
            context.count("unfolded")
            with ir.InsertionPoint(convolution), convolution.location:
                extents = Extents([Read(convolution.operands[0], found.source)])
                convolution.results[0].replace_all_uses_with(build(found, extents))
            erase_dead_producers([convolution.results[0]])

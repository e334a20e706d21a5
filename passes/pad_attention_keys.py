# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pad the keys of attention to a length for which the target has matrix instructions.

For gfx942 IREE uses no MFMA at all for an attention whose keys are not a multiple of 16:
the 77 text tokens of SDXL, the 1500 frames of Whisper. With three more keys that a mask
takes out it does. The padded keys are masked with -inf and weigh exactly 0, so results do
not change.

Before:

    %o = iree_linalg_ext.attention {indexing_maps = [...]}
        ins(%q, %k, %v, %scale : tensor<20x4096x64xf16>, tensor<20x77x64xf16>, tensor<20x77x64xf16>, f32) ...

After:

    %k80 = tensor.pad %k low[0, 0, 0] high[0, 3, 0] {...} : tensor<20x77x64xf16> to tensor<20x80x64xf16>
    %v80 = tensor.pad %v low[0, 0, 0] high[0, 3, 0] {...} : tensor<20x77x64xf16> to tensor<20x80x64xf16>
    %mask = arith.constant dense<[0.0, ..., 0.0, 0xFF800000, 0xFF800000, 0xFF800000]> : tensor<80xf32>
    %o = iree_linalg_ext.attention {indexing_maps = [..., (b, m, n, k1, k2) -> (k2), ...]}
        ins(%q, %k80, %v80, %scale, %mask : ...) ...

A mask that is there already is padded with -inf, or with false. Where K and V are projections of a tensor, that is
padded before: the projections have 80 rows then, and all keys and values of a text share one copy of it, which cse
finds. So a UNet takes one more dispatch. Padding moves up through ops that stay finite on zeros and that nothing else
reads.

Run it after prepass-raise-attention and before prepass-fuse-horizontal-contractions, after which K and V are slices of
one result and are padded as such. It is not in prepass-default: whether the matrix instructions outweigh the mask
and the copies depends on the number of queries and was not measured on the hardware.

Left alone when, each with a remark that says so:

- no target is known, or the target does not ask for more keys: its keys are fine, dynamic,
  or padding would gain nothing for the type and the head dim;
- it has fewer queries than `min-queries`;
- the mask is not of floats and does not vary along the keys;
- the loops are not those of attention.

Source: https://iree.dev/reference/mlir-dialects/LinalgExt/#iree_linalg_extattention-linalgextattentionop
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from iree.compiler import ir
from iree.compiler.dialects import arith

from prepass.ir.attention.build import OP_NAME
from prepass.ir.attention.read import operand_maps, read_attention_shape
from prepass.ir.elementwise import dynamic_sizes
from prepass.ir.emit import constant, erase_dead_producers, generic, pad_high
from prepass.ir.expressions import element_type, loop_positions
from prepass.ir.match import NoMatch, walk_ops
from prepass.ir.padding.at_source import pad_at_source
from prepass.ir.targets import Target
from prepass.ir.targets.attention import padded_keys
from prepass.pipeline.base import Pass, PassContext
from prepass.pipeline.options import option

# The place of each operand; a mask, where there is one, is followed by the init alone.
_KEY, _VALUE, _MASK = 1, 2, 4


@dataclass(frozen=True)
class _Padding:
    """What to pad: `keys` becomes `padded` in the loop `loop`, along which `maps` place the operands."""

    keys: int
    padded: int
    loop: int
    maps: tuple[ir.AffineMap, ...]
    masked: bool

    def dim(self, operand: int) -> int | None:
        """The dim of an operand that the keys are in."""
        positions = loop_positions(self.maps[operand])
        return positions.index(self.loop) if self.loop in positions else None


def _match_padding(op: ir.Operation, target: Target | None, min_queries: int) -> _Padding:
    if target is None:
        raise NoMatch("no target is known", op)
    shape = read_attention_shape(op)
    padded = padded_keys(target, shape)
    if padded is None or shape.k2 is None:
        raise NoMatch(f"{target.name} does not ask for more keys", op)
    if shape.m is not None and shape.m < min_queries:
        raise NoMatch(f"{shape.m} queries are too few to pay for copies of K and V", op)
    maps = tuple(operand_maps(op))
    padding = _Padding(shape.k2, padded, maps[0].n_dims - 1, maps, shape.masked)
    is_float = not shape.masked or isinstance(element_type(op.operands[_MASK]), ir.FloatType)
    if shape.masked and not is_float and padding.dim(_MASK) is None:
        raise NoMatch("the mask is not of floats and does not vary along the keys", op)
    return padding


def _build_mask(op: ir.Operation, padding: _Padding) -> tuple[ir.Value, ir.AffineMap]:
    """The padded mask and its indexing map."""
    keys = ir.AffineMap.get(padding.maps[0].n_dims, 0, [ir.AffineExpr.get_dim(padding.loop)])
    if not padding.masked:
        return _key_mask(padding, ir.F32Type.get()), keys
    mask = op.operands[_MASK]
    element = element_type(mask)
    dim = padding.dim(_MASK)
    if dim is not None:
        fill = constant(-math.inf if isinstance(element, ir.FloatType) else 0, element)
        return pad_high(mask, dim, padding.padded - padding.keys, fill), padding.maps[_MASK]
    return _add_key_mask(mask, _key_mask(padding, element), padding)


def _key_mask(padding: _Padding, element: ir.Type) -> ir.Value:
    values = np.zeros(padding.padded, np.float32)
    values[padding.keys :] = -math.inf
    floats = ir.ArrayAttr.get([ir.FloatAttr.get(element, float(value)) for value in values])
    type_ = ir.RankedTensorType.get([padding.padded], element)
    return arith.constant(type_, ir.DenseElementsAttr.get(list(floats), type_))


def _add_key_mask(mask: ir.Value, key_mask: ir.Value, padding: _Padding) -> tuple[ir.Value, ir.AffineMap]:
    """A mask that does not vary along the keys, made to."""
    type_ = ir.RankedTensorType(mask.type)
    loops = [ir.AffineExpr.get_dim(dim) for dim in range(type_.rank + 1)]
    sizes = dynamic_sizes(mask)
    result = ir.RankedTensorType.get([*type_.shape, padding.padded], type_.element_type)
    init = ir.Operation.create("tensor.empty", [result], sizes).result
    maps = [ir.AffineMap.get(len(loops), 0, part) for part in (loops[:-1], loops[-1:], loops)]
    summed = generic([mask, key_mask], init, maps, lambda arguments: arith.addf(arguments[0], arguments[1]))
    exprs = [*padding.maps[_MASK].results, ir.AffineExpr.get_dim(padding.loop)]
    return summed, ir.AffineMap.get(padding.maps[0].n_dims, 0, exprs)


def _build_padded(op: ir.Operation, padding: _Padding) -> ir.Value:
    more = padding.padded - padding.keys
    operands, maps = list(op.operands), list(padding.maps)
    for place in (_KEY, _VALUE):
        dim = padding.dim(place)
        if dim is not None:
            operands[place] = pad_at_source(operands[place], dim, more)
    mask, mask_map = _build_mask(op, padding)
    inits = slice(_MASK + padding.masked, None)
    attributes = {name: op.attributes[name] for name in op.attributes}
    attributes["indexing_maps"] = ir.ArrayAttr.get(
        [ir.AffineMapAttr.get(m) for m in (*maps[:_MASK], mask_map, *maps[inits])]
    )
    types = [result.type for result in op.results]
    padded = ir.Operation.create(OP_NAME, types, [*operands[:_MASK], mask, *operands[inits]], attributes, regions=1)
    op.regions[0].blocks[0].append_to(padded.regions[0])
    return padded.result


@dataclass(frozen=True)
class PadAttentionKeysPass(Pass):
    """Pad the keys of attention to a length for which the target has matrix instructions."""

    name = "prepass-pad-attention-keys"
    followed_by = ("prepass-configure-attention",)
    dependent_dialects = ("arith", "iree_linalg_ext", "linalg", "tensor")
    min_queries: int = option(
        256, help="Attention with fewer queries is left alone, as the padded copies would cost more.", least=0
    )

    def run(self, op: ir.Operation, context: PassContext) -> None:
        for attention, padding in context.matches(
            walk_ops(op, OP_NAME), lambda attention: _match_padding(attention, context.target, self.min_queries)
        ):
            context.applied(attention, f"keys padded from {padding.keys} to {padding.padded}")
            context.count("padded")
            with ir.InsertionPoint(attention), attention.location:
                attention.result.replace_all_uses_with(_build_padded(attention, padding))
            sources = [attention.operands[place] for place in (_KEY, _VALUE)]
            attention.erase()
            erase_dead_producers(sources)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Write padding as tensor.pad, right before the convolution that reads it.

IREE fuses `tensor.pad` into the convolution or pooling behind it, with
`--iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops`. A tensor that is filled and inserted into, or
concatenated with zeros, becomes a copy of its own instead, and so does a pad that another op separates from its reader.

Before:

    %filled = linalg.fill ins(%zero : f16) outs(%empty : tensor<2x640x66x66xf16>) -> tensor<2x640x66x66xf16>
    %padded = tensor.insert_slice %x into %filled[0, 0, 1, 1] [2, 640, 64, 64] [1, 1, 1, 1]
        : tensor<2x640x64x64xf16> into tensor<2x640x66x66xf16>
    %silu = linalg.generic {...} ins(%padded : tensor<2x640x66x66xf16>) ... { x / (1 + exp(-x)) }
    %conv = linalg.conv_2d_nchw_fchw ins(%silu, %filter : tensor<2x640x66x66xf16>, ...) ...

After:

    %silu = linalg.generic {...} ins(%x : tensor<2x640x64x64xf16>) ... { x / (1 + exp(-x)) }
    %padded = tensor.pad %silu low[0, 0, 1, 1] high[0, 0, 1, 1] { tensor.yield %zero : f16 }
        : tensor<2x640x64x64xf16> to tensor<2x640x66x66xf16>
    %conv = linalg.conv_2d_nchw_fchw ins(%padded, %filter : tensor<2x640x66x66xf16>, ...) ...

Chains of insertions, of concatenations and of pads with one number become one pad. Behind an elementwise op stands the
number that the op makes of the padding: 0 behind a SiLU, 1 behind an exponential. It is used only where every step of
computing it is exact, so that no target can round it otherwise. Padding passes reshapes that leave the padded dims
whole, as those before grouped convolutions. It is moved only towards a convolution or a pooling.

Left alone when

- the number that surrounds the tensor is not constant, or is not one;
- the slice has strides, drops dims, or goes where it is not known at compile time to go;
- how much padding there is depends on more than one dynamic size;
- a second tensor is put into what is filled, or an insertion may cover a part of the first;
- a part of the surroundings is not initialized;
- the padded tensor is itself inserted into, or concatenated with, what is no padding;
- for moving: the op behind computes with positions, reads operands that are padded differently or one padded operand
  at one place only, makes no exactly known number of the padding, or splits or merges a padded dim.

Source: https://mlir.llvm.org/docs/Dialects/TensorOps/#tensorpad-tensorpadop
"""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.elementwise import VIEWS, is_elementwise
from prepass.ir.emit import constant, erase_dead_producers, pad
from prepass.ir.expressions import element_type
from prepass.ir.match import NoMatch, find_ops, is_dead
from prepass.ir.padding.read import Padded, read_padded
from prepass.ir.padding.sink import build_sunk, leads_to_window, match_sinking, reads_padding
from prepass.pipeline.base import Pass, PassContext

_PADDING_OPS = ("tensor.insert_slice", "tensor.concat", "tensor.pad")
_FILLING_OPS = ("linalg.fill", "tensor.empty")


def _match_padding(op: ir.Operation) -> Padded | None:
    """Read an op that pads in other words than one `tensor.pad`; None for any other."""
    reading = read_padded(op.results[0])
    if not isinstance(reading, Padded) or reading.source == op.results[0]:
        return None
    if op.name == "tensor.pad" and reading.source == op.operands[0]:
        return None
    if op.name != "tensor.pad" and any(use.owner.name in _PADDING_OPS for use in op.results[0].uses):
        # llvm-cpu of IREE 3.13 fails on some pads in the place of such an insertion.
        raise NoMatch("it is inserted into another tensor, which is no padding", op)
    if reading.number is None and not reading.is_plain:
        raise NoMatch("a part of what surrounds the tensor is not initialized", op)
    # A tensor that is inserted whole, but of a type that says less, is a cast, and no padding.
    return None if reading.is_plain and reading.source.type != op.results[0].type else reading


def _build_padding(op: ir.Operation, padding: Padded) -> ir.Value:
    if padding.is_plain or padding.number is None:
        return padding.source
    fill = constant(padding.number, element_type(padding.source))
    return pad(padding.source, padding.low, padding.high, fill, op.results[0].type)


@dataclass(frozen=True)
class FoldPaddingPass(Pass):
    """Write padding as tensor.pad, right before the convolution that reads it."""

    name = "prepass-fold-padding"
    dependent_dialects = ("arith", "linalg", "math", "tensor")

    def run(self, op: ir.Operation, context: PassContext) -> None:
        # The last of a chain first: it takes the others with it.
        reported: set[tuple[str, ir.Operation]] = set()
        for padding_op in reversed(find_ops(op, lambda found: found.name in _PADDING_OPS)):
            if is_dead(padding_op):
                continue
            try:
                padding = _match_padding(padding_op)
            except NoMatch as miss:
                # The others of a chain fail at the same op.
                if (miss.reason, miss.op) not in reported:
                    context.missed_match(miss)
                reported.add((miss.reason, miss.op))
                continue
            if padding is not None:
                self._fold(padding_op, padding, context)
        if context.counters["folded"]:
            left = find_ops(op, lambda found: found.name in (*_PADDING_OPS, *_FILLING_OPS) and is_dead(found))
            erase_dead_producers([dead.results[0] for dead in left])
        for candidate in find_ops(op, lambda found: found.name in VIEWS or is_elementwise(found)):
            self._sink(candidate, context)

    def _fold(self, op: ir.Operation, padding: Padded, context: PassContext) -> None:
        context.applied(op, "is padding, written as tensor.pad")
        context.count("folded")
        with ir.InsertionPoint(op), op.location:
            op.results[0].replace_all_uses_with(_build_padding(op, padding))
        # At once, so that the ops which it stands for are seen to be dead.
        op.erase()

    def _sink(self, op: ir.Operation, context: PassContext) -> None:
        if not reads_padding(op) or not leads_to_window(op.results[0]):
            return
        try:
            sinking = match_sinking(op)
        except NoMatch as miss:
            context.missed_match(miss)
            return
        if sinking is None:
            return
        context.applied(op, "padding moved behind it")
        context.count("moved")
        with ir.InsertionPoint(op), op.location:
            op.results[0].replace_all_uses_with(build_sunk(sinking))
        erase_dead_producers([op.results[0]])

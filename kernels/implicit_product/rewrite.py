# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The new body of a dispatch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import arith, gpu, hal

from prepass.ir.kernels.builders import apply, delinearize, index, lds, lds_barrier, loop
from prepass.ir.layout.bodies import body_ops
from prepass.kernels.implicit_product.epilogue import Memory, Place, run_steps
from prepass.kernels.implicit_product.launch import launch
from prepass.kernels.implicit_product.match import Dispatch, stays
from prepass.kernels.implicit_product.product import Lane, fragments, multiply, read_lane, zero_sums
from prepass.kernels.implicit_product.stage import (
    Source,
    filter_copies,
    pixel_copies,
    pixel_positions,
    read_tap,
)
from prepass.kernels.implicit_product.tile import Tile
from prepass.kernels.implicit_product.views import View


def rewrite(dispatch: Dispatch, tile: Tile) -> None:
    """Replace what a dispatch does by the kernel."""
    function = dispatch.function
    *ops, terminator = body_ops(function)
    with ir.InsertionPoint(terminator), dispatch.convolution.location:
        workgroup = _workgroup(dispatch, tile)
        lane = read_lane(workgroup.thread, tile)
        _store(workgroup, lane, _sum_up(workgroup, lane))
    for op in reversed(ops):
        if not stays(op):
            op.erase()
    launch(function, tile.workgroups(dispatch.problem), tile.threads)


@dataclass(frozen=True)
class _Workgroup:
    """What a workgroup works on.

    Attributes:
      memory: The bindings of the dispatch.
      thread: A work item's number.
      first_pixel, first_filter: Where its tile starts.
    """

    dispatch: Dispatch
    tile: Tile
    memory: Memory
    thread: ir.Value
    first_pixel: ir.Value
    first_filter: ir.Value

    def source(self, view: View) -> Source:
        """A tensor of the dispatch."""
        return Source(self.memory.buffers[view.binding], view.offset)


def _workgroup(dispatch: Dispatch, tile: Tile) -> _Workgroup:
    counts = tile.workgroups(dispatch.problem)
    x, y = (hal.InterfaceWorkgroupIDOp(dim, upper_bound=count).result for dim, count in enumerate(counts))
    first_pixel = apply(lambda x: x * tile.pixels.rows, x)
    first_filter = apply(lambda y: y * tile.filters.rows, y)
    if dispatch.problem.filters % tile.filters.rows:
        # The last tile ends with the last filter; what it shares with the one before is computed and stored twice.
        first_filter = arith.minui(first_filter, index(dispatch.problem.filters - tile.filters.rows))
    thread = gpu.ThreadIdOp(gpu.Dimension.x, upper_bound=tile.threads).result
    return _Workgroup(dispatch, tile, Memory(_buffers(dispatch)), thread, first_pixel, first_filter)


def _sum_up(work: _Workgroup, lane: Lane) -> list[ir.Value]:
    """The sums of a lane, as `product.multiply` orders them."""
    problem, tile = work.dispatch.problem, work.tile
    image, filters = work.dispatch.image, work.dispatch.filters
    pixel_lds = lds((tile.pixels.rows, tile.row_elements), image.element)
    filter_lds = lds((tile.filters.rows, tile.row_elements), image.element)
    pixels = pixel_copies(work.source(image), work.thread, work.first_pixel, problem, tile)
    copies = [(copy, pixel_lds) for copy in pixels]
    copies += [
        (copy, filter_lds)
        for copy in filter_copies(work.source(filters), work.thread, work.first_filter, problem, tile)
    ]
    zeros = zero_sums(tile)
    iterations = problem.taps * (problem.channels // tile.depth)

    def fetch(iteration: ir.Value) -> list[ir.Value]:
        tap = read_tap(iteration, problem, tile.depth)
        return [copy.fetch(tap) for copy, _ in copies]

    def iteration(number: ir.Value, *carried: ir.Value) -> list[ir.Value]:
        sums, fetched = carried[: len(zeros)], carried[len(zeros) :]
        lds_barrier()
        for value, (copy, into) in zip(fetched, copies, strict=True):
            copy.keep(value, into)
        lds_barrier()
        # The vectors of the next iteration are on their way while this one is computed; the last one reads its own
        # once more.
        fetched = fetch(arith.minui(apply(lambda n: n + 1, number), index(iterations - 1)))
        return [*multiply(pixel_lds, filter_lds, lane, tile, sums), *fetched]

    return loop(0, iterations, 1, [*zeros, *fetch(index(0))], iteration)[: len(zeros)]


def _store(work: _Workgroup, lane: Lane, sums: Sequence[ir.Value]) -> None:
    dispatch = work.dispatch
    for fragment in fragments(sums, lane, work.tile):
        pixel = apply(lambda first, pixel: first + pixel, work.first_pixel, fragment.pixel)
        channel = apply(lambda first, channel: first + channel, work.first_filter, fragment.channel)
        positions = pixel_positions(pixel, dispatch.problem) + delinearize(channel, dispatch.problem.filter_sizes)
        place = Place(positions, fragment.width)
        values: dict[ir.Value, ir.Value] = {}
        total = fragment.sums
        if dispatch.initial is not None:
            run_steps([dispatch.initial], values, place, work.memory)
            total = arith.addf(total, values[dispatch.initial.op.results[0]])
        values[dispatch.convolution.results[0]] = total
        run_steps(dispatch.steps, values, place, work.memory)
        for output in dispatch.outputs:
            work.memory.write(values[output.value], output.view, output.coordinates, place)


def _buffers(dispatch: Dispatch) -> dict[ir.Operation, ir.Value]:
    """Each binding, as a buffer of one dim."""
    buffers: dict[ir.Operation, ir.Value] = {}
    for view in dispatch.views:
        if view.binding not in buffers:
            buffers[view.binding] = _buffer(view)
    return buffers


def _buffer(view: View) -> ir.Value:
    layout = ir.StridedLayoutAttr.get(ir.ShapedType.get_dynamic_stride_or_offset(), [1])
    space = ir.Attribute.parse("#hal.descriptor_type<storage_buffer>")
    type_ = ir.MemRefType.get([view.elements], view.element, layout, space)
    binding = view.binding
    attributes = {name: binding.attributes[name] for name in binding.attributes}
    return ir.Operation.create(binding.name, [type_], list(binding.operands), attributes).result

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The function of a kernel.

A tile of K and V is in LDS while the next one is on its way to registers. The last tile comes after the loop, where
there is nothing more to load; only it may have fewer keys than it has room for, so no other is masked for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iree.compiler import ir
from iree.compiler.dialects import amdgpu, arith, math

from prepass.ir.kernels.builders import (
    Insertion,
    apply,
    constant,
    delinearize,
    f32,
    index,
    lds,
    lds_barrier,
    load,
    loop,
    splat,
    tensor_ukernel,
    threads,
    vector_type,
)
from prepass.kernels.attention.operands import Operands, argument_types, element_type, result_types
from prepass.kernels.attention.problem import AttentionProblem
from prepass.kernels.attention.results import empty_result, ones, result_of_thread
from prepass.kernels.attention.scores import (
    HELD,
    Keys,
    Lane,
    Mask,
    key_place,
    load_mask,
    load_query,
    products,
    without_missing,
)
from prepass.kernels.attention.softmax import HEAD_ROOM, LOG2_E, Exponent, grand_total, update
from prepass.kernels.attention.staging import Destination, Source, Staging, make_staging
from prepass.kernels.attention.tile import BLOCK, CHUNK, AttentionTile
from prepass.kernels.attention.values import add_values, channel_place


def build_attention(name: str, problem: AttentionProblem, tile: AttentionTile) -> ir.Operation:
    """Make the function of a kernel, (q, k, v, scale[, mask], acc, max, sum) to the last three, at the insertion point.

    It starts from nothing, whatever the initial values, and its result is divided by the sum already, so that the sum
    it gives is one.
    """

    def body(*arguments: ir.Value) -> list[ir.Value]:
        query, key, value, scale, *others = arguments
        mask = others[0] if problem.mask is not None else None
        operands = Operands(problem, query, key, value, scale, mask, others[-2])
        element = element_type(problem.query.element)
        buffers = lds(tile.key_shape, element), lds(tile.value_shape, element)
        out = empty_result(operands, tile)
        (result,) = threads(tile.threads, [out], lambda thread: [_Thread(operands, tile, buffers, thread).run()])
        return [result, operands.maximum, ones(operands, tile)]

    return tensor_ukernel(name, argument_types(problem, tile), result_types(problem, tile), body)


@dataclass(frozen=True)
class _State:
    """What goes from one tile to the next: the softmax, and the result so far, transposed, 32 channels a vector."""

    maximum: ir.Value
    total: ir.Value
    results: Sequence[ir.Value]

    @property
    def values(self) -> list[ir.Value]:
        return [self.maximum, self.total, *self.results]


class _Thread:
    """The program of a thread."""

    def __init__(
        self, operands: Operands, tile: AttentionTile, buffers: tuple[ir.Value, ir.Value], thread: ir.Value
    ) -> None:
        self.operands, self.tile, self.buffers, self.thread = operands, tile, buffers, thread
        self.problem = operands.problem
        wave, half, column = delinearize(thread, (tile.waves, 2, BLOCK))
        self.lane = Lane(half, column)
        self.row = apply(lambda wave, column: wave * BLOCK + column, wave, column)
        count = operands.row_count(tile)
        if not isinstance(count, int):
            # Lanes beyond the last query compute that one too, and write the same.
            self.row = arith.minui(self.row, apply(lambda count: count - 1, count))
        self.keys = operands.key_count()
        self.ragged = self.problem.keys is None or self.problem.keys % tile.keys != 0

    def run(self) -> Insertion:
        """All tiles; what the thread contributes to the result."""
        query, exponent, scale = self._query_and_scale()
        staged = self._staged_keys(), self._staged_values()
        _put(staged, _fetch(staged, index(0)))
        lds_barrier()
        start = _State(
            constant(exponent.lowest, f32()),
            constant(0, vector_type(2, f32())),
            [constant(0, vector_type(HELD, f32()))] * self.tile.value_blocks,
        )

        def step(first: ir.Value, *carried: ir.Value) -> list[ir.Value]:
            following = _fetch(staged, apply(lambda first: first + self.tile.keys, first))
            # Left to itself the scheduler moves the loads down to where they are waited for.
            _keep_order()
            keys = Keys(first, self.keys)
            state = self._tile(keys, _State(carried[0], carried[1], carried[2:]), query, exponent, scale)
            lds_barrier()
            _put(staged, following)
            lds_barrier()
            return state.values

        last = self._last_tile()
        carried = loop(0, last.first, self.tile.keys, start.values, step)
        state = self._tile(last, _State(carried[0], carried[1], carried[2:]), query, exponent, scale)
        return result_of_thread(self.operands, self.row, self.lane, state.results, grand_total(state.total))

    def _query_and_scale(self) -> tuple[list[ir.Value], Exponent, ir.Value]:
        """Q in registers, how scores become weights, and the scale of the scores in f32.

        Maxima are of scores before they are scaled, so the scale must not be negative; its sign goes to Q.
        """
        problem = self.problem
        scale = self.operands.scale
        if scale.type != f32():
            scale = arith.extf(f32(), scale)

        def channels(column: ir.Value, width: int) -> ir.Value:
            places = {"m": self.row, "k1": column}
            return load(self.operands.query, self.operands.indices(problem.query, places), width)

        query = load_query(channels, self.tile.key_channels, self.lane)
        if not problem.positive_scale:
            sign = math.copysign(constant(1, f32()), scale)
            factor = arith.truncf(element_type(problem.query.element), sign)
            query = [arith.mulf(part, splat(factor, part.type.shape)) for part in query]
            scale = math.absf(scale)
        log2_e = constant(LOG2_E, f32())
        wide = problem.mask is not None and problem.mask.element != "f16"
        factor = arith.mulf(scale, log2_e) if problem.mask is None else log2_e
        return query, Exponent(factor, wide, HEAD_ROOM[problem.value.element]), scale

    def _tile(
        self, keys: Keys, state: _State, query: Sequence[ir.Value], exponent: Exponent, scale: ir.Value
    ) -> _State:
        """Take in the keys of the tile that is in LDS."""
        blocks = range(self.tile.key_blocks if keys.left is None else -(-keys.left // BLOCK))
        mask = self._mask()
        # All at once, so that the products hide how long they take; one by one where each element is loaded by itself.
        ahead = mask is not None and not keys.scattered
        masks = [load_mask(mask, keys, block, self.lane) for block in blocks] if ahead else []
        scores = []
        for block in blocks:
            block_scores = products(self.buffers[0], query, block, self.tile.key_channels, self.lane)
            if mask is not None:
                block_mask = masks[block] if ahead else load_mask(mask, keys, block, self.lane)
                block_scores = math.fma(block_scores, splat(scale, HELD), block_mask)
            scores.append(without_missing(block_scores, keys, block, self.lane))
        type_ = element_type(self.problem.value.element)
        softmax = update(scores, state.maximum, state.total, exponent, type_)
        results = add_values(self.buffers[1], softmax.weights, softmax.shrink, state.results, self.tile, self.lane)
        return _State(softmax.maximum, softmax.total, results)

    def _mask(self) -> Mask | None:
        operands, layout = self.operands, self.problem.mask
        if operands.mask is None or layout is None:
            return None
        return Mask(operands.mask, lambda key: operands.indices(layout, {"m": self.row, "k2": key}))

    def _last_tile(self) -> Keys:
        size, total = self.tile.keys, self.problem.keys
        if total is not None:
            first = (total - 1) // size * size
            left = total - first
            return Keys(index(first), self.keys, left, left < size, multiple=CHUNK if total % CHUNK == 0 else 1)
        first = apply(lambda keys: ir.AffineExpr.get_floor_div(keys - 1, size) * size, self.keys)
        return Keys(first, self.keys, ragged=True)

    def _staged_keys(self) -> Staging:
        problem, operands = self.problem, self.operands
        source = Source(
            operands.key,
            lambda key, channel: operands.indices(problem.key, {"k2": key, "k1": channel}),
            problem.key_transposed,
            self.keys,
            self.ragged,
        )
        destination = Destination(self.buffers[0], rows_are_keys=True, place=key_place)
        return make_staging(source, destination, self.tile.keys, self.tile.key_channels, self.thread, self.tile.threads)

    def _staged_values(self) -> Staging:
        problem, operands = self.problem, self.operands
        source = Source(
            operands.value,
            lambda key, channel: operands.indices(problem.value, {"k2": key, "n": channel}),
            problem.value_transposed,
            self.keys,
            self.ragged,
        )
        destination = Destination(
            self.buffers[1], rows_are_keys=False, place=lambda channel: channel_place(channel, self.tile.value_channels)
        )
        return make_staging(
            source, destination, self.tile.keys, self.tile.value_channels, self.thread, self.tile.threads
        )


def _fetch(staged: Sequence[Staging], first: ir.Value) -> list[list[ir.Value]]:
    return [staging.fetch(first) for staging in staged]


def _put(staged: Sequence[Staging], fetched: Sequence[Sequence[ir.Value]]) -> None:
    for staging, values in zip(staged, fetched, strict=True):
        staging.put(values)


def _keep_order() -> None:
    """Let the scheduler move nothing over this place."""
    amdgpu.SchedBarrierOp(ir.Attribute.parse("#rocdl.sched_group_mask<none>"))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The numbers of a convolution op, whatever the order of its loops and the dims of its result."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from iree.compiler import ir

from prepass.ir.expressions import indexing_maps, loop_positions, loop_sizes
from prepass.ir.match import NoMatch
from prepass.kernels.implicit_product.problem import Axis, Problem
from prepass.kernels.implicit_product.steps import Coordinates
from prepass.kernels.implicit_product.tile import TOGETHER
from prepass.kernels.implicit_product.views import View


def read_problem(
    op: ir.Operation, image: View, low: Sequence[int], filters: View, element: str
) -> tuple[Problem, Coordinates]:
    """What an op computes, and the coordinate of each dim of its result. Raises NoMatch.

    Args:
      op: Sums products of image and filters.
      image: Without its padding.
      low: Zeros before the image along each dim.
      filters: In memory.
      element: The type of both.
    """
    image_map, filter_map, result_map = indexing_maps(op) or []
    result, in_filter = _loops(op, result_map), _loops(op, filter_map)
    if min(len(image_map.results), len(in_filter)) < 2:
        raise NoMatch("image or filters have no dim but the channels", op)
    *spatial, channel = [_terms(op, expr) for expr in image_map.results]
    if list(channel.values()) != [1] or list(channel) != in_filter[-1:] or in_filter[-1] in result:
        raise NoMatch("channels are not innermost in both operands", op)
    if image.pitches[-1] != 1 or filters.pitches[-1] != 1:
        raise NoMatch("channels are not neighbours in memory", op)
    places = [_place(op, terms, result, in_filter) for terms in spatial]
    rest = [loop for loop in result if loop not in [own for own, _ in places]]
    windows = [window for _, window in places if window is not None]
    if not rest or sorted(in_filter) != sorted([*rest, *windows, in_filter[-1]]):
        raise NoMatch("the filters have other dims than channels and a window", op)
    pitches = dict(zip(in_filter, filters.pitches, strict=True))
    sizes = loop_sizes(op)
    filter_loops = [loop for loop in in_filter if loop in rest]
    for outer, inner in itertools.pairwise(filter_loops):
        if pitches[outer] != sizes[inner] * pitches[inner]:
            raise NoMatch("the filters are not equally far apart in memory", op)
    if len(filter_loops) > 1 and sizes[filter_loops[-1]] % TOGETHER:
        raise NoMatch(f"the innermost channels are {sizes[filter_loops[-1]]}, not a multiple of {TOGETHER}", op)
    axes = tuple(
        Axis(
            size=image.sizes[dim],
            pitch=image.pitches[dim],
            result=1 if own is None else sizes[own],
            stride=1 if own is None else spatial[dim][own],
            window=1 if window is None else sizes[window],
            dilation=1 if window is None else spatial[dim][window],
            filter_pitch=0 if window is None else pitches[window],
            low=low[dim],
        )
        for dim, (own, window) in enumerate(places)
    )
    coordinate_of = {own: number for number, (own, _) in enumerate(places)}
    coordinate_of |= {loop: number - len(filter_loops) for number, loop in enumerate(filter_loops)}
    filter_sizes = tuple(sizes[loop] for loop in filter_loops)
    problem = Problem(axes, sizes[in_filter[-1]], filter_sizes, pitches[filter_loops[-1]], element)
    return problem, tuple(coordinate_of[loop] for loop in result)


def _place(
    op: ir.Operation, terms: dict[int, int], result: Sequence[int], in_filter: Sequence[int]
) -> tuple[int | None, int | None]:
    """The loop of the result and the one of the window that a dim of the image is read at; one is missing where it
    would run once.
    """
    own = [loop for loop in terms if loop in result]
    windows = [loop for loop in terms if loop not in result]
    if max(len(own), len(windows)) > 1 or set(own) & set(in_filter) or min(terms.values()) < 1:
        raise NoMatch("a dim of the image is not read at a pixel of the result and a tap of the filter", op)
    return (own or [None])[0], (windows or [None])[0]


def _loops(op: ir.Operation, map_: ir.AffineMap) -> list[int]:
    if not all(isinstance(expr, ir.AffineDimExpr) for expr in map_.results):
        raise NoMatch("an index of the filters or of the result is computed", op)
    return loop_positions(map_)


def _terms(op: ir.Operation, expr: ir.AffineExpr) -> dict[int, int]:
    """A sum of loops times numbers, by loop."""
    if isinstance(expr, ir.AffineAddExpr):
        left, right = _terms(op, ir.AffineAddExpr(expr).lhs), _terms(op, ir.AffineAddExpr(expr).rhs)
        if not left.keys() & right.keys():
            return left | right
    elif isinstance(expr, ir.AffineDimExpr):
        return {ir.AffineDimExpr(expr).position: 1}
    elif isinstance(expr, ir.AffineMulExpr):
        left, right = ir.AffineMulExpr(expr).lhs, ir.AffineMulExpr(expr).rhs
        if isinstance(left, ir.AffineDimExpr) and isinstance(right, ir.AffineConstantExpr):
            return {ir.AffineDimExpr(left).position: ir.AffineConstantExpr(right).value}
    raise NoMatch("an index of the image is no sum of loops", op)

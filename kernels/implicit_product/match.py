# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading a dispatch that is one convolution, its padding, and what is done with each element of the result."""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir

from prepass.ir.exact import filled_number
from prepass.ir.kernels.conditions import check_alone, check_element_types, check_f32_sums
from prepass.ir.layout.bodies import body_ops
from prepass.ir.match import NoMatch, defining_op
from prepass.ir.padding.read import pad_number
from prepass.kernels.implicit_product.problem import Problem
from prepass.kernels.implicit_product.read_problem import read_problem
from prepass.kernels.implicit_product.steps import Coordinates, Step, Stored, read_step
from prepass.kernels.implicit_product.views import View, is_memory_op, is_store, loaded_view, stored_view

_IMAGE, _FILTER = 0, 1
# What else a dispatch is made of: scalars, and tensors that go with what used them.
_SCALARS = ("hal.interface.constant.load", "util.assume.int", "func.return")
_TENSORS = ("tensor.empty", "tensor.pad", "linalg.fill")


@dataclass(frozen=True)
class Output:
    """A value that is stored: to which memory, and the coordinate of each of its dims."""

    value: ir.Value
    view: View
    coordinates: Coordinates


@dataclass(frozen=True)
class Dispatch:
    """All that a dispatch does.

    Attributes:
      function: Its body.
      convolution: The op.
      problem: What the op computes.
      image: Without its padding.
      filters: In memory.
      initial: What the sums start from, a bias for one; None where it is zero.
      steps: What is done with each element of the result.
      outputs: What is stored.
    """

    function: ir.Operation
    convolution: ir.Operation
    problem: Problem
    image: View
    filters: View
    initial: Step | None
    steps: tuple[Step, ...]
    outputs: tuple[Output, ...]

    @property
    def views(self) -> list[View]:
        """All tensors in memory."""
        steps = [*self.steps, *([self.initial] if self.initial else [])]
        operands = [operand.view for step in steps for operand in step.operands if isinstance(operand, Stored)]
        return [self.image, self.filters, *operands, *(output.view for output in self.outputs)]


def read_dispatch(convolution: ir.Operation) -> Dispatch:
    """The dispatch of a convolution. Raises NoMatch."""
    check_alone(convolution)
    element = check_element_types(convolution, (_IMAGE, _FILTER), ("f16", "bf16"))
    check_f32_sums(convolution)
    _check_product(convolution)
    image, low = _read_image(convolution)
    filters = loaded_view(convolution.operands[_FILTER])
    problem, coordinates = read_problem(convolution, image, low, filters, element)
    function = _function(convolution)
    initial = _read_initial(convolution, coordinates)
    steps: list[Step] = []
    outputs: list[Output] = []
    computed = {convolution.results[0]: coordinates}
    for op in body_ops(function):
        if op == convolution or (initial is not None and op == initial.op):
            continue
        if is_store(op):
            outputs.append(_read_output(op, computed))
        elif op.name == "linalg.generic":
            step, results = read_step(op, computed)
            computed.update(zip(op.results, results, strict=True))
            steps.append(step)
        else:
            _check_known(op)
    return Dispatch(function, convolution, problem, image, filters, initial, tuple(steps), tuple(outputs))


def _function(op: ir.Operation) -> ir.Operation:
    parent = op.parent.operation
    if parent.name != "func.func" or len(parent.regions[0].blocks) != 1:
        raise NoMatch("the op is not at the top of its dispatch", op)
    return parent


def stays(op: ir.Operation) -> bool:
    """Whether an op of a dispatch is a scalar that its new body may use."""
    return op.name in _SCALARS or op.name.startswith("arith.")


def _check_known(op: ir.Operation) -> None:
    if not stays(op) and not is_memory_op(op) and op.name not in _TENSORS:
        raise NoMatch(f"the dispatch does {op.name} as well", op)


def _check_product(op: ir.Operation) -> None:
    """The body adds up products of the two operands, in f32."""
    block = op.regions[0].blocks[0]
    names = [inner.name for inner in body_ops(op)]
    if sorted(names) != ["arith.addf", "arith.extf", "arith.extf", "arith.mulf", "linalg.yield"]:
        raise NoMatch("the body is not the sum of products of both operands, extended to f32", op)
    extended = {inner.results[0]: inner.operands[0] for inner in body_ops(op) if inner.name == "arith.extf"}
    product = next(inner for inner in body_ops(op) if inner.name == "arith.mulf")
    total = next(inner for inner in body_ops(op) if inner.name == "arith.addf")
    factors = {extended.get(value) for value in product.operands}
    right = factors == {block.arguments[0], block.arguments[1]}
    right &= set(total.operands) == {block.arguments[2], product.results[0]}
    if not right or block.operations[len(block.operations) - 1].operands[0] != total.results[0]:
        raise NoMatch("the body is not the sum of products of both operands, extended to f32", op)


def _read_image(op: ir.Operation) -> tuple[View, list[int]]:
    """The image in memory, and the zeros in front of it along each dim."""
    value = op.operands[_IMAGE]
    pad = defining_op(value)
    if pad is None or pad.name != "tensor.pad":
        view = loaded_view(value)
        return view, [0] * len(view.sizes)
    low, high = (list(ir.DenseI64ArrayAttr(pad.attributes[f"static_{name}"])) for name in ("low", "high"))
    dynamic = ir.ShapedType.get_dynamic_size()
    if dynamic in (*low, *high):
        raise NoMatch("the padding is dynamic", pad)
    if pad_number(pad) != 0:
        raise NoMatch("the padding is not zeros", pad)
    if low[-1] or high[-1] or min(*low, *high) < 0:
        raise NoMatch("the channels are padded", pad)
    return loaded_view(pad.operands[0]), low


def _read_initial(op: ir.Operation, coordinates: Coordinates) -> Step | None:
    """What the sums start from."""
    if filled_number(op.operands[-1]) == 0:
        return None
    initial = defining_op(op.operands[-1])
    if initial is None or initial.name != "linalg.generic" or len(initial.results) != 1:
        raise NoMatch("the sums start neither from zero nor from what an elementwise op computes", op)
    return read_step(initial, {}, {initial.results[0]: coordinates})[0]


def _read_output(store: ir.Operation, computed: dict[ir.Value, Coordinates]) -> Output:
    value = store.operands[0]
    if value not in computed:
        raise NoMatch("the dispatch stores what is not computed from the convolution", store)
    return Output(value, stored_view(store), computed[value])

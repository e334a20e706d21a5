# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The dispatches of a program at the flow phase: what each is, what it reads, writes and computes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from iree.compiler import ir

from prepass.analysis.costs import (
    ATTENTION,
    GATHER,
    Cost,
    captured_bytes,
    element_count,
    is_convolution,
    is_matrix_op,
    is_structured,
    op_flops,
    reduction_loops,
    tensor_bytes,
)
from prepass.ir.elementwise import moves_only
from prepass.ir.expressions import indexing_maps
from prepass.ir.locations import describe_source
from prepass.ir.match import find_ops, walk_ops

_LOAD, _STORE = "iree_tensor_ext.dispatch.tensor.load", "iree_tensor_ext.dispatch.tensor.store"
_NUMBER = re.compile(r"^.*?_dispatch_\d+_?")
_COPIES = ("tensor.empty", "tensor.pad", "tensor.insert_slice", "tensor.extract_slice", "linalg.fill")

# The kinds, by what a kernel does that takes the most; the first that fits.
KINDS = ("attention", "convolution", "contraction", "reduction", "lookup", "elementwise", "transpose", "copy", "other")


@dataclass(frozen=True)
class Dispatch:
    """A place in a program that runs a kernel.

    Attributes:
      name: Of the kernel, such as `main_dispatch_3_matmul_8192x640x640_f16`.
      kind: One of KINDS.
      element: The type of the factors of its products, or "" when it has none.
      cost: What it reads, writes and computes, each time it runs.
      initializer: Whether it runs once, when the program is loaded.
      location: The position in the source of one of the ops that it was made from.
    """

    name: str
    kind: str
    element: str
    cost: Cost
    initializer: bool
    location: str

    @property
    def signature(self) -> str:
        """The name without the function and the number, which the same kernel has in another program."""
        return _NUMBER.sub("", self.name) or self.kind


def read_dispatches(module: ir.Operation) -> list[Dispatch]:
    """Each call site of a kernel in a module at the flow phase, in order."""
    kernels = read_kernels(module)
    found: list[Dispatch] = []
    for function in module.regions[0].blocks[0].operations:
        initializer = function.operation.name == "util.initializer"
        if initializer or function.operation.name == "util.func":
            for site in walk_ops(function.operation, "flow.dispatch"):
                found.append(read_site(site, kernels, initializer))
    return found


@dataclass(frozen=True)
class Kernel:
    """What all dispatches of one kernel have in common; see Dispatch."""

    kind: str
    element: str
    cost: Cost


def read_site(site: ir.Operation, kernels: dict[str, Kernel], initializer: bool) -> Dispatch:
    """A `flow.dispatch`; `kernels` is what `read_kernels` returned."""
    symbol = ir.SymbolRefAttr(ir.ArrayAttr(site.attributes["entry_points"])[0]).value
    # A kernel from elsewhere has no body to read: what is handed to it counts in full.
    kernel = kernels.get(symbol[0]) or Kernel("other", "", _operand_cost(site))
    location = describe_source(site.location)
    return Dispatch(symbol[-1], kernel.kind, kernel.element, kernel.cost, initializer, location)


def read_kernels(module: ir.Operation) -> dict[str, Kernel]:
    """What is in each executable of one function, by the executable's name."""
    return {
        ir.StringAttr(executable.attributes["sym_name"]).value: _read_kernel(functions[0])
        for executable in walk_ops(module, "flow.executable")
        if len(functions := walk_ops(executable, "func.func")) == 1
    }


def _read_kernel(function: ir.Operation) -> Kernel:
    ops = find_ops(function, lambda op: op.name.startswith(("linalg.", "iree_linalg_ext.", "tensor.")))
    matrix, vector = (sum(flops) for flops in zip((0, 0), *map(op_flops, ops), strict=True))
    loads, stores = walk_ops(function, _LOAD), walk_ops(function, _STORE)
    tensors = [*(load.results[0].type for load in loads), *(store.operands[0].type for store in stores)]
    cost = Cost(
        read_bytes=sum(map(_read_bytes, loads)),
        written_bytes=sum(tensor_bytes(store.operands[0].type) for store in stores),
        matrix_flops=matrix,
        vector_flops=vector,
        exact=all(element_count(type_)[1] for type_ in tensors),
    )
    return Kernel(kind_of(ops), next(_factor_types(ops), ""), cost)


def _read_bytes(load: ir.Operation) -> int:
    """What is read of a tensor: all of it, or at most so many elements as lookups take from it."""
    whole = tensor_bytes(load.results[0].type)
    looked_up = 0
    for use in load.results[0].uses:
        user = use.owner.operation
        if user.name == GATHER and use.operand_number == 0:
            looked_up += tensor_bytes(user.results[0].type)
        elif user.name == "tensor.extract" and is_structured(user.parent.operation):
            looked_up += captured_bytes(user.parent.operation)
        else:
            return whole
    return min(whole, looked_up)


def _operand_cost(site: ir.Operation) -> Cost:
    operands, results = ([value.type for value in values] for values in (site.operands, site.results))
    exact = all(element_count(type_)[1] for type_ in (*operands, *results))
    return Cost(sum(map(tensor_bytes, operands)), sum(map(tensor_bytes, results)), exact=exact)


def _factor_types(ops: list[ir.Operation]) -> Iterator[str]:
    for op in ops:
        if op.name in ATTENTION or is_matrix_op(op):
            yield str(ir.RankedTensorType(op.operands[0].type).element_type)


def kind_of(ops: list[ir.Operation]) -> str:
    """The kind of a kernel of these ops on tensors."""
    if any(op.name in ATTENTION for op in ops):
        return "attention"
    if any(is_convolution(op) for op in ops):
        return "convolution"
    if any(is_matrix_op(op) for op in ops):
        return "contraction"
    structured = [op for op in ops if is_structured(op) and op.name != "linalg.fill"]
    if any(op.name == "linalg.softmax" for op in ops) or any(map(reduction_loops, structured)):
        return "reduction"
    if any(op.name in (GATHER, "tensor.extract") for op in ops):
        return "lookup"
    if any(not moves_only(op) for op in structured):
        return "elementwise"
    if any(map(_transposes, structured)):
        return "transpose"
    return "copy" if structured or all(op.name in _COPIES for op in ops) else "other"


def _transposes(op: ir.Operation) -> bool:
    source, *_, result = indexing_maps(op) or []
    return source.is_permutation and source != result

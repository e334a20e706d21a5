# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program of the ops around one op: what it reads from elsewhere are arguments, what others read are results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from iree.compiler import ir

from prepass.errors import PrepassError
from prepass.ir.match import defining_op, find_ops

# These are taken along where something reads them, and lead to no neighbours: everything reads constants.
_ALWAYS = ("arith.constant", "tensor.empty", "linalg.fill", "util.global.load", "flow.tensor.constant", "tensor.dim")
_NEVER = ("hal.", "func.", "util.return", "util.call", "flow.return")
# How many steps to a producer a step to a user counts as.
_FORWARD = 3
_FUNCTIONS = ("util.func", "func.func")


def slice_around(op: ir.Operation, radius: int) -> str | None:
    """A module of the ops within `radius` steps of `op`, mostly towards what it is computed from, as text.

    `op` is in a function of a module at a phase from `input` to `preprocessing`; an op in a region stands for the op
    of the function that it is in. The module's function is `main`; it has been through the phase `input`. None when
    there is nothing around `op` that computes tensors. Raises PrepassError when `op` is in no function.
    """
    root = _in_function(op)
    live = _live(root.block)
    wanted = _with_constants(_neighbours(root, radius) & {root, *live})
    ops = [found.operation for found in root.block.operations if found.operation in wanted]
    with op.context, ir.Location.unknown():
        # An op of a dialect that is not loaded is not verified.
        op.context.get_dialect_descriptor("util")
        return _build(ops, wanted, live, _globals(root))


def _in_function(op: ir.Operation) -> ir.Operation:
    while op.parent is not None:
        if op.parent.operation.name in _FUNCTIONS:
            return op
        op = op.parent.operation
    raise PrepassError("the op is in no function")


def _live(block: ir.Block) -> set[ir.Operation]:
    """The ops of a function that its results depend on, so that what passes leave behind is not taken for a result."""
    pending = [op.operation for op in block.operations if not len(op.operation.results)]
    found = set(pending)
    while pending:
        for value in _read(pending.pop()):
            producer = defining_op(value)
            if producer is not None and producer.block == block and producer not in found:
                found.add(producer)
                pending.append(producer)
    return found


def _neighbours(root: ir.Operation, radius: int) -> set[ir.Operation]:
    """The ops that are near. Passes look at what an op reads, so that a user is as far as several producers."""
    found: set[ir.Operation] = set()
    edge: list[list[ir.Operation]] = [[root]]
    for distance in range(radius + 1):
        if distance == len(edge):
            break
        for op in edge[distance]:
            if op in found:
                continue
            found.add(op)
            edge += [[] for _ in range(distance + _FORWARD + 1 - len(edge))]
            edge[distance + 1] += filter(_moves_on, _producers(op))
            edge[distance + _FORWARD] += filter(_moves_on, _users(op))
    return found


def _moves_on(op: ir.Operation) -> bool:
    return op.name not in _ALWAYS and not op.name.startswith(_NEVER)


def _producers(op: ir.Operation) -> Iterator[ir.Operation]:
    for value in _read(op):
        producer = defining_op(value)
        if producer is not None and producer.block == op.block:
            yield producer


def _users(op: ir.Operation) -> Iterator[ir.Operation]:
    for result in op.results:
        for use in result.uses:
            yield _ancestor_in(use.owner.operation, op.block)


def _ancestor_in(op: ir.Operation, block: ir.Block) -> ir.Operation:
    while op.block != block:
        op = op.parent.operation
    return op


def _read(op: ir.Operation) -> list[ir.Value]:
    """The operands of an op and of those in its regions."""
    return [value for inner in [op, *find_ops(op, lambda _: True)] for value in inner.operands]


def _with_constants(ops: set[ir.Operation]) -> set[ir.Operation]:
    """Those ops and, of what they read, what cannot be an argument or is a constant."""
    found = set(ops)
    pending = list(ops)
    block = next(iter(ops)).block
    while pending:
        for value in _read(pending.pop()):
            producer = defining_op(value)
            if producer is None or producer.block != block or producer in found:
                continue
            if producer.name in _ALWAYS or not isinstance(value.type, ir.RankedTensorType):
                found.add(producer)
                pending.append(producer)
    return found


def _globals(op: ir.Operation) -> dict[str, ir.Operation]:
    module = op
    while module.parent is not None:
        module = module.parent.operation
    return {
        ir.StringAttr(found.attributes["sym_name"]).value: found.operation
        for found in module.regions[0].blocks[0].operations
        if found.operation.name == "util.global"
    }


def _build(
    ops: list[ir.Operation], wanted: set[ir.Operation], live: set[ir.Operation], known: dict[str, ir.Operation]
) -> str | None:
    arguments = list(dict.fromkeys(value for op in ops for value in _read(op) if _is_argument(value, ops, wanted)))
    results = [result for op in ops for result in op.results if _is_result(result, wanted, live)]
    if not results:
        return None
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        for name in dict.fromkeys(_loaded(ops)):
            copy = known[name].clone()
            for attribute in [name for name in copy.attributes if str(name).startswith("stream.")]:
                del copy.attributes[attribute]
        types = ir.FunctionType.get([value.type for value in arguments], [value.type for value in results])
        attributes = {"sym_name": ir.StringAttr.get("main"), "function_type": ir.TypeAttr.get(types)}
        function = ir.Operation.create("util.func", attributes=attributes, regions=1)
    block = function.regions[0].blocks.append(*types.inputs)
    copies = dict(zip(arguments, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        for op in ops:
            copy = op.clone()
            for inner in [copy, *find_ops(copy, lambda _: True)]:
                for number, value in enumerate(inner.operands):
                    inner.operands[number] = copies.get(value, value)
            copies.update(zip(op.results, copy.results, strict=True))
        ir.Operation.create("util.return", operands=[copies[value] for value in results])
    module.operation.verify()
    return str(module)


def _is_argument(value: ir.Value, ops: list[ir.Operation], wanted: set[ir.Operation]) -> bool:
    op = defining_op(value)
    if op is None:
        return value.owner == ops[0].block
    return op.block == ops[0].block and op not in wanted


def _is_result(value: ir.Value, wanted: set[ir.Operation], live: set[ir.Operation]) -> bool:
    """Whether something that counts and is not in the slice reads a tensor."""
    op = value.owner.operation
    if not isinstance(value.type, ir.RankedTensorType) or op.name in _ALWAYS:
        return False
    users = {_ancestor_in(use.owner.operation, op.block) for use in value.uses}
    return any(user in live and user not in wanted for user in users)


def _loaded(ops: Iterable[ir.Operation]) -> Iterator[str]:
    for op in ops:
        if op.name == "util.global.load":
            yield ir.FlatSymbolRefAttr(op.attributes["global"]).value

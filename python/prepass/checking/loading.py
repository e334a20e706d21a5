# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What loading a program costs and what it keeps, read from its initializers at the stream phase."""

from __future__ import annotations

from collections.abc import Iterator

from iree.compiler import ir

from prepass.ir.match import defining_op, walk_ops

_READS = 1  # A bit of a dispatch's access to a resource; 2 is for writes.


def kept_bytes(module: ir.Operation) -> int | None:
    """Bytes of weights and constants that stay in memory once a program is loaded; None when a size is dynamic.

    What is stored in several globals is counted once, and what only initializers use not at all.
    """
    sizes: dict[ir.Value, int | None] = {}
    for initializer in _initializers(module):
        for store in walk_ops(initializer, "util.global.store"):
            value = store.operands[0]
            if str(value.type).startswith("!stream.resource"):
                source, size = _stored(value)
                sizes[source] = constant_size(size) if size is not None else None
    return _sum(list(sizes.values()))


def initializer_read_bytes(module: ir.Operation) -> int | None:
    """Bytes that the dispatches and copies of initializers read; None when a size is dynamic."""
    sizes: list[int | None] = []
    for initializer in _initializers(module):
        for dispatch in walk_ops(initializer, "stream.cmd.dispatch"):
            accesses = [ir.IntegerAttr(a).value for a in ir.ArrayAttr(dispatch.attributes["resource_accesses"])]
            lengths = list(dispatch.operands)[-len(accesses) :]
            sizes += [constant_size(n) for access, n in zip(accesses, lengths, strict=True) if access & _READS]
        for copy in walk_ops(initializer, "stream.cmd.copy"):
            sizes.append(constant_size(list(copy.operands)[-1]))
    return _sum(sizes)


def constant_size(value: ir.Value) -> int | None:
    """A size that is a constant, or None."""
    op = defining_op(value)
    return ir.IntegerAttr(op.attributes["value"]).value if op and op.name == "arith.constant" else None


def _initializers(module: ir.Operation) -> Iterator[ir.Operation]:
    for op in module.regions[0].blocks[0].operations:
        if op.operation.name == "util.initializer":
            yield op.operation


def _stored(value: ir.Value) -> tuple[ir.Value, ir.Value | None]:
    """A resource before it is waited for, and its size."""
    op = defining_op(value)
    if op is None or op.name != "stream.timepoint.await":
        return value, None
    place, count = ir.OpResult(value).result_number, len(op.results)
    return op.operands[place], op.operands[count + place]


def _sum(sizes: list[int | None]) -> int | None:
    return None if None in sizes else sum(size for size in sizes if size is not None)

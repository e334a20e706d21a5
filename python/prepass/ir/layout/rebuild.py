# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that follow are made anew in their layouts; at the borders stand reshapes or, where elements move, transposes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from iree.compiler import ir

from prepass.ir.barriers import keep_layout
from prepass.ir.emit import erase_dead_producers
from prepass.ir.layout.function import FunctionLayout
from prepass.ir.layout.layouts import Layout
from prepass.ir.layout.shapes import is_free
from prepass.ir.layout.values import free_value, program_size, to_layout, to_program
from prepass.ir.match import defining_op

# Called with a value that is transposed, and the op that reads it as the program has it, if that is why.
OnTranspose = Callable[[ir.Value, "ir.Operation | None"], None]


def rebuild(function: FunctionLayout, on_transpose: OnTranspose) -> None:
    """Make all ops anew that follow, let the others read them, and remove what they were."""
    borders = _Borders(function, on_transpose)
    for op in function.following:
        with ir.InsertionPoint(op), op.location:
            results = function.build(op, borders.kept_operand if function.reads_windows(op) else borders.operand)
        borders.made(op, results)
    following = set(function.following)
    for op in function.following:
        for result in op.results:
            borders.leave(result, following)
    read = {operand: None for op in function.following for operand in op.operands}
    for op in reversed(function.following):
        for result in op.results:
            read.pop(result, None)
        op.erase()
    erase_dead_producers(list(read))


class _Borders:
    """The values of a function in their layouts, as far as they have been made."""

    def __init__(self, function: FunctionLayout, on_transpose: OnTranspose) -> None:
        self._function = function
        self._on_transpose = on_transpose
        self._laid_out: dict[ir.Value, ir.Value] = {}
        self._transposed: set[ir.Value] = set()
        self._kept: dict[ir.Value, ir.Value] = {}

    def made(self, op: ir.Operation, results: list[ir.Value]) -> None:
        """Take note of the results of an op in their layouts."""
        self._laid_out.update(zip(op.results, results, strict=True))

    def operand(self, value: ir.Value, layout: Layout) -> ir.Value:
        """A value in a layout."""
        if is_free(value):
            return free_value(value, layout)
        if value not in self._laid_out:
            if layout.trivial:
                return value
            with _after(value):
                self._laid_out[value] = to_layout(value, layout)
            if layout.moves:
                self._transposed.add(value)
                self._on_transpose(value, None)
        return self._laid_out[value]

    def kept_operand(self, value: ir.Value, layout: Layout) -> ir.Value:
        """A value in a layout, kept: a transpose at the border does not fold into the reader.

        A convolution that reads windows through a transpose is no named one any more, and reads elements one by one.
        """
        laid_out = self.operand(value, layout)
        if value not in self._transposed:
            return laid_out
        if value not in self._kept:
            with _after(laid_out):
                self._kept[value] = keep_layout(laid_out)
        return self._kept[value]

    def leave(self, old: ir.Value, following: set[ir.Operation]) -> None:
        """Let ops that do not follow read a value that was made anew."""
        new, layout = self._laid_out[old], self._function.layout(old)
        program: ir.Value | None = None
        for use in [use for use in old.uses if not _is_within(use.owner.operation, following)]:
            user = use.owner.operation
            dim = _constant_index(user.operands[1]) if user.name == "tensor.dim" else None
            if dim is not None:
                with ir.InsertionPoint(user), user.location:
                    user.result.replace_all_uses_with(program_size(new, layout, dim))
                user.erase()
                continue
            if program is None:
                with _after(new):
                    program = new if layout.trivial else to_program(new, layout)
                if layout.moves:
                    self._on_transpose(old, user)
            user.operands[use.operand_number] = program


@contextmanager
def _after(value: ir.Value) -> Iterator[None]:
    """Insert after a value is made."""
    op = defining_op(value)
    point = ir.InsertionPoint.at_block_begin(value.owner) if op is None else ir.InsertionPoint.after(op)
    with point, ir.Location.unknown() if op is None else op.location:
        yield


def _is_within(op: ir.Operation, ops: set[ir.Operation]) -> bool:
    parent: ir.Operation | None = op
    while parent is not None:
        if parent in ops:
            return True
        parent = parent.parent.operation if parent.parent is not None else None
    return False


def _constant_index(value: ir.Value) -> int | None:
    op = defining_op(value)
    return ir.IntegerAttr(op.attributes["value"]).value if op is not None and op.name == "arith.constant" else None

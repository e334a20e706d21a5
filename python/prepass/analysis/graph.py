# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The dispatches of a program and what each reads, from the module at the flow phase."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from iree.compiler import ir

from prepass.analysis.costs import Cost, total
from prepass.analysis.dispatches import Dispatch, read_kernels, read_site
from prepass.analysis.provenance import numbers_of, work_in
from prepass.ir.match import find_ops, walk_ops

_PREFIX = "prepass.dispatch."
_FORMED = "flow.dispatch.workgroups"


@dataclass(frozen=True)
class Node(Dispatch):
    """A dispatch in its graph.

    Attributes:
      number: Its place in the program.
      function: The function it is in; None for what runs when the program is loaded.
      arguments: What it depends on of what a call brings: names of arguments, and of variables that calls change.
      producers: The numbers of the dispatches that it reads.
      ops: The numbers of the source ops in it; see `provenance`.
    """

    number: int
    function: str | None
    arguments: frozenset[str]
    producers: tuple[int, ...]
    ops: frozenset[int]


@dataclass(frozen=True)
class Signature:
    """What a function takes and gives.

    Attributes:
      arguments: The type of each tensor argument, by its name.
      results: The types of its tensor results.
      small: The arguments that are scalars or vectors.
    """

    arguments: Mapping[str, str]
    results: tuple[str, ...]
    small: frozenset[str]


@dataclass(frozen=True)
class DispatchGraph:
    """All dispatches of a program, in order."""

    dispatches: tuple[Node, ...]
    signatures: Mapping[str, Signature]

    @property
    def main(self) -> list[Node]:
        """The dispatches of functions, which run in each call."""
        return [dispatch for dispatch in self.dispatches if dispatch.function is not None]

    @property
    def initializers(self) -> list[Node]:
        """The dispatches that run once, when the program is loaded."""
        return [dispatch for dispatch in self.dispatches if dispatch.function is None]

    @functools.cached_property
    def readers(self) -> Mapping[int, tuple[int, ...]]:
        """For each dispatch, the numbers of those that read it."""
        readers: dict[int, list[int]] = {dispatch.number: [] for dispatch in self.dispatches}
        for dispatch in self.dispatches:
            for producer in dispatch.producers:
                readers[producer].append(dispatch.number)
        return {number: tuple(found) for number, found in readers.items()}

    @functools.cached_property
    def _by_op(self) -> Mapping[int, tuple[int, ...]]:
        found: dict[int, list[int]] = {}
        for dispatch in self.dispatches:
            for op in dispatch.ops:
                found.setdefault(op, []).append(dispatch.number)
        return {op: tuple(numbers) for op, numbers in found.items()}

    def holding(self, ops: Iterable[int]) -> list[Node]:
        """The dispatches that any of some source ops are in, in order."""
        numbers = {number for op in ops for number in self._by_op.get(op, ())}
        return [self.dispatches[number] for number in sorted(numbers)]


def cost_of(dispatches: Iterable[Node]) -> Cost:
    """The cost of dispatches together."""
    return total(dispatch.cost for dispatch in dispatches)


def count_kinds(dispatches: Iterable[Node]) -> Counter[str]:
    """How many dispatches there are of each kind."""
    return Counter(dispatch.kind for dispatch in dispatches)


def number_dispatches(module: ir.Operation) -> list[frozenset[int]]:
    """Number the dispatches of a module at the phase dispatch-creation; returns the source ops in each.

    Later, dispatches that are alike share one function, and what is in each is no longer to be seen.
    """
    contents: list[frozenset[int]] = []
    with module.context:
        for number, formed in enumerate(walk_ops(module, _FORMED)):
            contents.append(work_in(formed))
            formed.location = ir.Location.name(f"{_PREFIX}{number}", formed.location)
    return contents


def read_graph(module: ir.Operation, contents: list[frozenset[int]]) -> DispatchGraph:
    """The graph of a module at the flow phase; `contents` is what `number_dispatches` returned."""
    return _Reader(module, contents).read()


@dataclass(frozen=True)
class _Origin:
    """What a value is made from."""

    producers: frozenset[int] = frozenset()
    arguments: frozenset[str] = frozenset()

    def __or__(self, other: _Origin) -> _Origin:
        return _Origin(self.producers | other.producers, self.arguments | other.arguments)


class _Reader:
    def __init__(self, module: ir.Operation, contents: list[frozenset[int]]) -> None:
        self._module = module
        self._contents = contents
        self._kernels = read_kernels(module)
        self._mutable = {_symbol(op) for op in walk_ops(module, "util.global") if "is_mutable" in op.attributes}
        self._dispatches: list[Node] = []
        self._origins: dict[ir.Value, _Origin] = {}

    def read(self) -> DispatchGraph:
        signatures: dict[str, Signature] = {}
        for op in self._module.regions[0].blocks[0].operations:
            if op.operation.name in ("util.func", "util.initializer"):
                name = _symbol(op.operation) if op.operation.name == "util.func" else None
                for inner in find_ops(op.operation, lambda _: True, ir.WalkOrder.PRE_ORDER):
                    self._visit(inner, name)
                if name is not None:
                    signatures[name] = _signature(op.operation)
        return DispatchGraph(tuple(self._dispatches), signatures)

    def _visit(self, op: ir.Operation, function: str | None) -> None:
        origin = _Origin()
        for value in op.operands:
            origin |= self._origins.get(value, _Origin())
        if op.name == "hal.tensor.import":
            origin = _Origin(arguments=frozenset({_argument_name(op)}))
        elif op.name == "util.global.load" and _callee(op.attributes["global"]) in self._mutable:
            origin = _Origin(arguments=frozenset({f"@{_callee(op.attributes['global'])}"}))
        elif op.name == "flow.dispatch":
            origin = self._add(op, function, origin)
        for value in [*op.results, *(a for region in op.regions for block in region.blocks for a in block.arguments)]:
            self._origins[value] = origin

    def _add(self, op: ir.Operation, function: str | None, origin: _Origin) -> _Origin:
        number = len(self._dispatches)
        formed = _formed_number(op.location)
        ops = self._contents[formed] if formed is not None else numbers_of(op.location)
        site = read_site(op, self._kernels, function is None)
        producers = tuple(sorted(origin.producers))
        self._dispatches.append(
            Node(
                **vars(site), number=number, function=function, arguments=origin.arguments, producers=producers, ops=ops
            )
        )
        return _Origin(frozenset({number}), origin.arguments)


def _signature(function: ir.Operation) -> Signature:
    imports, exports = walk_ops(function, "hal.tensor.import"), walk_ops(function, "hal.tensor.export")
    types = {_argument_name(op): op.results[0].type for op in imports}
    return Signature(
        {name: str(type_) for name, type_ in types.items()},
        tuple(str(op.operands[0].type) for op in exports),
        frozenset(name for name, type_ in types.items() if ir.RankedTensorType(type_).rank <= 1),
    )


def _argument_name(op: ir.Operation) -> str:
    if "name" in op.attributes:
        return ir.StringAttr(op.attributes["name"]).value
    value = op.operands[0]
    return f"argument {ir.BlockArgument(value).arg_number}" if isinstance(value, ir.BlockArgument) else "an argument"


def _symbol(op: ir.Operation) -> str:
    return ir.StringAttr(op.attributes["sym_name"]).value


def _callee(symbol: ir.Attribute) -> str:
    """The last part of a symbol reference."""
    if isinstance(symbol, ir.FlatSymbolRefAttr):
        return ir.FlatSymbolRefAttr(symbol).value
    return ir.SymbolRefAttr(symbol).value[-1]


def _formed_number(location: ir.Location) -> int | None:
    if isinstance(location, ir.NameLoc) and location.name_str.startswith(_PREFIX):
        return int(location.name_str.removeprefix(_PREFIX))
    return None

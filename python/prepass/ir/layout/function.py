# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ops of a function, and which of them follow when convolutions go channels-last."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from iree.compiler import ir

from prepass.ir.layout import convolutions
from prepass.ir.layout.convolutions import Convolution, read_convolution
from prepass.ir.layout.costs import cost
from prepass.ir.layout.cut import SINK, SOURCE, Network
from prepass.ir.layout.factors import Factor, leaves
from prepass.ir.layout.layouts import Layout
from prepass.ir.layout.rules import Operand, Rules, find_rules
from prepass.ir.layout.shapes import Shapes, is_free
from prepass.ir.match import NoMatch, defining_op, find_ops
from prepass.ir.targets.convolutions import ConvolutionForm

_EDGES = ("hal", "util", "func", "flow")


class FunctionLayout:
    """What is known of a function.

    Attributes:
      candidates: All convolutions.
      convolutions: Those that can be channels-last.
      conflicts: Those that cannot while others are, as what is a channel to them is a pixel to others.
      following: The ops that are to be rebuilt, in order, once `decide` was called.
      misses: Why ops cannot follow, or convolutions stay what they are.
    """

    def __init__(self, function: ir.Operation) -> None:
        self.convolutions: dict[ir.Operation, Convolution] = {}
        self.conflicts: set[ir.Operation] = set()
        self.following: list[ir.Operation] = []
        self.misses: dict[ir.Operation, NoMatch] = {}
        self._shapes = Shapes()
        self._forms: dict[ir.Operation, ConvolutionForm] = {}
        self._rules: dict[ir.Operation, Rules] = {}
        self._layouts: dict[ir.Value, Layout] = {}
        self._ops = find_ops(function, lambda op: op != function, ir.WalkOrder.PRE_ORDER)
        self.candidates = [found for op in self._ops if (found := self._link(op)) is not None]

    def send_channels_last(self, form_of: Callable[[Convolution], ConvolutionForm]) -> None:
        """Mark the channels of all convolutions that have a form; `form_of` raises NoMatch for the others."""
        for found in self.candidates:
            if found.op in self.misses or found.is_channels_last:
                continue
            marked: list[Factor] = []
            try:
                form = form_of(found)
                convolutions.check(found, self._shapes)
                channels, _ = convolutions.channel_groups(found, self._shapes)
                marked = self._shapes.send_last(channels)
                self._check_conflicts(found, marked)
            except NoMatch as miss:
                for leaf in marked:
                    leaf.last = False
                self.misses[found.op] = NoMatch(miss.reason, found.op)
                continue
            self.convolutions[found.op] = found
            self._forms[found.op] = form

    def decide(self) -> None:
        """Find the ops that follow: as many as possible, at the fewest bytes transposed."""
        moving = [op for op in self._ops if any(self.layout(value).moves for value in self._tensors(op))]
        self._check(moving)
        network = Network()
        nodes = {op: network.node() for op in moving}
        for op, node in nodes.items():
            if op in self.convolutions:
                if self._forms[op].pays:
                    network.edge(SOURCE, node)
            elif op not in self._rules or op in self.misses:
                network.edge(node, SINK)
        values = {value: None for op in moving for value in self._tensors(op)}
        for value in values:
            if self.layout(value).moves:
                self._add_costs(value, network, nodes)
        side = network.source_side()
        self.following = [op for op in moving if nodes[op] in side]

    def build(self, op: ir.Operation, operand: Operand) -> list[ir.Value]:
        """An op that follows, in its new layout, at the current insertion point."""
        if op in self.convolutions:
            return convolutions.build(self.convolutions[op], self._shapes, operand, self._forms[op].filters)
        return self._rules[op].build(op, self._shapes, operand)

    def reads_windows(self, op: ir.Operation) -> bool:
        """Whether an op is a convolution, and not one of single pixels, which is a contraction."""
        return op in self.convolutions and not self.convolutions[op].pointwise

    def layout(self, value: ir.Value) -> Layout:
        """The layout of a value in ops that follow; not to be asked before all channels are marked."""
        if value not in self._layouts:
            self._layouts[value] = self._shapes.layout(value)
        return self._layouts[value]

    def why_not(self, op: ir.Operation | None) -> str:
        """Why an op does not follow, or the caller where there is none."""
        if op is None or op.name.split(".")[0] in _EDGES:
            return "it is the edge of the function"
        if op in self.misses:
            return self.misses[op].reason
        if op not in self._rules:
            return f"{op.name} keeps the layout that the program gives it"
        return "fewer bytes move here than elsewhere"

    def _link(self, op: ir.Operation) -> Convolution | None:
        found = read_convolution(op)
        rules = find_rules(op) if found is None else None
        try:
            if found is not None:
                convolutions.link(found, self._shapes)
            elif rules is not None:
                self._rules[op] = rules
                rules.link(op, self._shapes)
        except NoMatch as miss:
            self.misses[op] = miss
        return found

    def _check_conflicts(self, added: Convolution, marked: list[Factor]) -> None:
        # Where nothing was marked for it, nothing has changed for the others.
        for found in [*(self.convolutions.values() if marked else ()), added]:
            _, others = convolutions.channel_groups(found, self._shapes)
            if any(leaf.last for group in others for leaf in leaves(group)):
                self.conflicts.add(added.op)
                raise NoMatch("what is a channel to it is a pixel to another convolution", added.op)
            convolutions.check(found, self._shapes)

    def _check(self, ops: Iterable[ir.Operation]) -> None:
        for op in ops:
            if op in self._rules and op not in self.misses:
                try:
                    self._rules[op].check(op, self._shapes)
                except NoMatch as miss:
                    self.misses[op] = miss

    def _tensors(self, op: ir.Operation) -> list[ir.Value]:
        """The tensors that an op reads and makes, those that cost nothing left out."""
        values = [*op.operands, *op.results]
        if op in self._rules and len(op.regions):
            for inner in find_ops(op, lambda inner: inner.name == "tensor.extract"):
                values.append(inner.operands[0])
        if op in self.convolutions:
            del values[convolutions.FILTER]
        return [value for value in values if isinstance(value.type, ir.RankedTensorType) and not is_free(value)]

    def _add_costs(self, value: ir.Value, network: Network, nodes: dict[ir.Operation, int]) -> None:
        """What it costs when a value is made in one layout and read in another."""
        bits = cost(value)
        producer = defining_op(value)
        made = nodes.get(producer, SINK) if producer is not None else SINK
        laid_out, as_written = network.node(), network.node()
        network.edge(made, laid_out, bits)
        network.edge(as_written, made, bits)
        for user in {self._user(use) for use in value.uses}:
            if user is not None:
                node = nodes.get(user, SINK)
                network.edge(laid_out, node)
                network.edge(node, as_written)

    def _user(self, use: ir.OpOperand) -> ir.Operation | None:
        """The op whose layout decides about a use, or None where any layout will do."""
        op = use.owner.operation
        if op.name == "tensor.dim" or (op in self.convolutions and use.operand_number == convolutions.FILTER):
            return None
        parent = op.parent
        return parent.operation if parent is not None and parent.operation in self._rules else op

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ops of a program that can be tuned, each with the dispatch that it is in as a program of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from iree.compiler import ir
from iree.compiler.dialects import hal, util

from prepass.compiler.api import compile_to
from prepass.ir.match import NoMatch, find_ops, walk_ops
from prepass.ir.parse import ModuleSource
from prepass.ir.targets import find_target
from prepass.ir.targets.tuning_table import TARGETS, Shape
from prepass.ir.tuned_ops import read_tuned_shape, tuned_kind
from prepass.pipeline.base import RemarkHandler

PHASE = "flow"
FUNCTION = "main"
_EXECUTABLE, _ENTRY = "dispatch", "dispatch"


@dataclass(frozen=True)
class Dispatch:
    """A dispatch as a program of its own, in IREE's phase `flow`.

    Attributes:
      source: MLIR text; its function `main` takes and returns what the dispatch does.
      inputs: The type of each argument: "20x4096x64xf16".
      name: What the compiler called the dispatch.
    """

    source: str
    inputs: tuple[str, ...]
    name: str = field(compare=False)


@dataclass
class TunedOp:
    """Ops of a kind and a shape.

    Attributes:
      dispatches: The different dispatches that hold such an op, and how often each is in the program.
    """

    kind: str
    shape: Shape
    dispatches: dict[Dispatch, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What the compiler called the first of its dispatches."""
        return next(iter(self.dispatches)).name


@dataclass
class Extraction:
    """What a program has to tune.

    Attributes:
      skipped: Ops that cannot be tuned, each with the reason.
    """

    target: str = ""
    ops: list[TunedOp] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def add(self, kind: str, shape: Shape, dispatch: Dispatch, count: int) -> None:
        """Add a dispatch to the ops of its kind and shape."""
        found = next((op for op in self.ops if (op.kind, op.shape) == (kind, shape)), None)
        if found is None:
            found = TunedOp(kind, shape)
            self.ops.append(found)
        found.dispatches[dispatch] = found.dispatches.get(dispatch, 0) + count


def extract(
    source: ModuleSource,
    *,
    pipeline: str | None = None,
    preset: str | None = None,
    flags: Sequence[str] = (),
    on_remark: RemarkHandler | None = None,
) -> Extraction:
    """The ops of a program that can be tuned. Arguments and errors as for `prepass.compile`."""
    result = Extraction()
    hooks = {PHASE: lambda module: _extract(module, result)}
    compile_to(source, PHASE, pipeline=pipeline, preset=preset, flags=flags, hooks=hooks, on_remark=on_remark)
    return result


def _extract(module: ir.Operation, result: Extraction) -> None:
    with module.context, ir.Location.unknown():
        target = find_target(module)
        result.target = target.architecture if target else ""
        if result.target not in TARGETS:
            return
        calls = _calls_by_entry(module)
        for executable in walk_ops(module, "flow.executable"):
            for op in find_ops(executable, lambda op: tuned_kind(op) is not None):
                _add(module, executable, op, calls, result)


def _add(
    module: ir.Operation,
    executable: ir.Operation,
    op: ir.Operation,
    calls: dict[str, list[ir.Operation]],
    result: Extraction,
) -> None:
    kind = tuned_kind(op) or ""
    export = walk_ops(executable, "flow.executable.export")[0]
    name = ir.StringAttr(export.attributes["sym_name"]).value
    try:
        shape = read_tuned_shape(kind, op)
        found = calls.get(name, [])
        if not found:
            raise NoMatch("nothing dispatches it", op)
        dispatch = _standalone(module, executable, found[0], name)
    except NoMatch as miss:
        result.skipped.append(f"{name}: {miss.reason}")
        return
    result.add(kind, shape, dispatch, len(found))


def _calls_by_entry(module: ir.Operation) -> dict[str, list[ir.Operation]]:
    calls: dict[str, list[ir.Operation]] = {}
    for call in walk_ops(module, "flow.dispatch"):
        for entry in ir.ArrayAttr(call.attributes["entry_points"]):
            calls.setdefault(ir.SymbolRefAttr(entry).value[-1], []).append(call)
    return calls


def _standalone(module: ir.Operation, executable: ir.Operation, call: ir.Operation, name: str) -> Dispatch:
    """A program whose function is one call of a dispatch; equal dispatches give equal text."""
    types = [value.type for value in (*call.operands, *call.results)]
    if not all(isinstance(type_, ir.RankedTensorType) and type_.has_static_shape for type_ in types):
        raise NoMatch("its dispatch takes or returns something else than tensors of static shape", call)
    program = ir.Module.create()
    for attribute in module.attributes:
        program.operation.attributes[attribute] = module.attributes[attribute]
    with ir.InsertionPoint(program.body):
        for op in module.regions[0].blocks[0].operations:
            if op.operation.name == "util.global" and str(op.attributes["type"]) == "!hal.device":
                op.operation.clone()
        _rename(executable.clone())
        _build_function(call)
    inputs = tuple(_shape_text(value.type) for value in call.operands)
    return Dispatch(program.operation.get_asm(enable_debug_info=False), inputs, name)


def _rename(executable: ir.Operation) -> None:
    executable.attributes["sym_name"] = ir.StringAttr.get(_EXECUTABLE)
    export = walk_ops(executable, "flow.executable.export")[0]
    function = ir.FlatSymbolRefAttr(export.attributes["function_ref"]).value
    export.attributes["sym_name"] = ir.StringAttr.get(_ENTRY)
    export.attributes["function_ref"] = ir.FlatSymbolRefAttr.get(_ENTRY)
    for op in walk_ops(executable, "func.func"):
        if ir.StringAttr(op.attributes["sym_name"]).value == function:
            op.attributes["sym_name"] = ir.StringAttr.get(_ENTRY)


def _build_function(call: ir.Operation) -> None:
    view = ir.Type.parse("!hal.buffer_view")
    operands, results = [value.type for value in call.operands], [value.type for value in call.results]
    type_ = ir.FunctionType.get([view] * len(operands), [view] * len(results))
    function = util.FuncOp(FUNCTION, ir.TypeAttr.get(type_), sym_visibility="public")
    unknown = ir.Location.unknown()
    block = function.operation.regions[0].blocks.append(*type_.inputs, arg_locs=[unknown] * len(operands))
    with ir.InsertionPoint(block), unknown:
        tensors = [
            hal.TensorImportOp(type_, argument, type_, [], name=f"input{number}").result
            for number, (argument, type_) in enumerate(zip(block.arguments, operands, strict=True))
        ]
        attributes = {attribute: call.attributes[attribute] for attribute in call.attributes}
        entry = ir.SymbolRefAttr.get([_EXECUTABLE, _ENTRY])
        attributes["entry_points"] = ir.ArrayAttr.get([entry])
        dispatched = ir.Operation.create("flow.dispatch", results, tensors, attributes)
        views = [
            hal.TensorExportOp(view, value, value.type, [], name=f"output{number}").result
            for number, value in enumerate(dispatched.results)
        ]
        util.ReturnOp(views)


def _shape_text(type_: ir.RankedTensorType) -> str:
    return "x".join([*map(str, type_.shape), str(type_.element_type)])

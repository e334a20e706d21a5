# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From torch to a program, through iree-turbine.

import prepass
vmfb = prepass.turbine.compile(torch.export.export(module, inputs), preset="prepass-sdxl", flags=[...])

torch and iree-turbine are needed only when a function is called: `pip install 'prepass[torch]'`.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from iree.compiler import ir
from iree.compiler.api import Session

from prepass.compiler.api import compile as compile_module
from prepass.errors import PrepassError
from prepass.ir.constant_contents import is_resource, read_resources
from prepass.ir.match import walk_ops
from prepass.ir.parse import copy_module

if TYPE_CHECKING:
    import torch

# Operators that torch-mlir knows by name, but has no lowering for; torch spells them in others.
_NOT_LOWERED = ("aten.__and__.Tensor", "aten.__or__.Tensor")

# IREE copies constants of up to 256 bytes into kernels.
_COPIED_BYTES = 256


def compile(
    model: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    **options: Any,
) -> bytes:
    """Compile a torch program for IREE.

    Args:
      model: A `torch.export.ExportedProgram`, what `iree.turbine.aot.export` returns or takes, or a
        `torch.nn.Module`, which is exported with `args`, `kwargs` and `dynamic_shapes`. Parameters that
        `iree.turbine.aot.externalize_module_parameters` was called for are read from a file when the program runs;
        others become part of the program.
      args, kwargs, dynamic_shapes: As `torch.export.export` takes them; of a `torch.nn.Module` only.
      options: `pipeline`, `preset`, `flags`, `hooks` and all others as `prepass.compile` takes them.

    Returns:
      The contents of a .vmfb file. Its function is called `main`.

    Raises:
      PrepassError: torch or iree-turbine is not installed, or torch cannot export the model.
      PipelineError, CompileError: As `prepass.compile` does.
    """
    return compile_module(import_module(model, args, kwargs, dynamic_shapes=dynamic_shapes), **options)


def import_module(
    model: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, *, dynamic_shapes: Any = None
) -> ir.Module:
    """The module in the torch dialect that `compile` compiles, with the places in Python that its ops come from."""
    torch, aot = _packages()
    if isinstance(model, torch.nn.Module):
        model = export(model, args, kwargs, dynamic_shapes=dynamic_shapes)
    elif args or kwargs or dynamic_shapes is not None:
        raise PrepassError("the inputs of a program that is exported already cannot be given again")
    elif isinstance(model, torch.export.ExportedProgram):
        model = _decompose(model)
    if not isinstance(model, aot.ExportOutput):
        try:
            model = aot.export(model)
        except (TypeError, NotImplementedError) as error:
            raise PrepassError(f"iree-turbine cannot import {type(model).__name__}: {_first_line(error)}") from error
    bytecode = io.BytesIO()
    model.mlir_module.write_bytecode(bytecode)
    module = copy_module(bytecode.getvalue())
    _spell_out_constants(walk_ops(module.operation, "torch.vtensor.literal"))
    return module


def export(
    module: torch.nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
) -> torch.export.ExportedProgram:
    """Export a module without what stops torch-mlir: operators that it does not know, and updates in place.

    It is exported as `strict=False` does, as models of transformers that return all hidden states need it.
    Raises PrepassError when torch cannot export it.
    """
    torch, _ = _packages()
    try:
        with torch.no_grad():
            program = torch.export.export(
                module, tuple(args), dict(kwargs or {}), dynamic_shapes=dynamic_shapes, strict=False
            )
    except Exception as error:  # torch raises errors of many kinds, whatever in the model stopped it.
        message = f"torch cannot export {type(module).__name__}: {type(error).__name__}: {_first_line(error)}"
        raise PrepassError(message) from error
    return _decompose(program)


def _decompose(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Spell operators that torch-mlir does not know in others; updates in place become functional as well."""
    torch, _ = _packages()
    table = torch.export.default_decompositions()
    done: set[Any] = set()
    while True:
        unknown = {op for op in _unknown_operators(program) if op in table} - done
        if done and not unknown:
            return program
        program = program.run_decompositions({op: table[op] for op in unknown})
        # Without any, it has still made updates in place functional.
        done |= unknown or {None}


def _unknown_operators(program: torch.export.ExportedProgram) -> set[Any]:
    """The operators in a program that torch-mlir cannot lower."""
    torch, _ = _packages()
    context = Session().context
    _ = context.dialects["torch"]  # Loads the dialect, which registers its ops.
    graphs = [module.graph for module in program.graph_module.modules() if isinstance(module, torch.fx.GraphModule)]
    operators = {node.target for graph in graphs for node in graph.nodes if node.op == "call_function"}
    operators = {op for op in operators if isinstance(op, torch._ops.OpOverload)}
    names = {op: str(op).removesuffix(".default") for op in operators}
    return {
        op for op, name in names.items() if name in _NOT_LOWERED or not context.is_registered_operation(f"torch.{name}")
    }


def _spell_out_constants(literals: Iterable[ir.Operation]) -> None:
    """Make small bf16 resources plain `dense` constants: llvm-cpu does not compile a kernel with such a resource."""
    for literal in literals:
        value = literal.attributes["value"]
        if not is_resource(value) or not isinstance(ir.ShapedType(value.type).element_type, ir.BF16Type):
            continue
        for data in read_resources(value):
            if len(data) <= _COPIED_BYTES:
                dense = ir.DenseElementsAttr.get(data, type=ir.ShapedType(value.type), context=literal.context)
                literal.attributes["value"] = dense


def _packages() -> tuple[Any, Any]:
    """The modules torch and iree.turbine.aot. Raises PrepassError when they are not installed."""
    try:
        import torch
        from iree.turbine import aot
    except ImportError as error:
        message = f"prepass.turbine needs torch and iree-turbine: pip install 'prepass[torch]' ({error})"
        raise PrepassError(message) from None
    return torch, aot


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The MLIR of kernels as it stands in a program."""

from __future__ import annotations

from iree.compiler import ir
from iree.compiler.passmanager import PassManager

from prepass.compiler.compilation import Compilation
from prepass.compiler.library import new_session
from prepass.errors import PrepassError
from prepass.ir.kernels.config import UKERNEL
from prepass.ir.match import find_ops, walk_ops
from prepass.ir.parse import ModuleSource, read_module
from prepass.pipeline.base import RemarkHandler
from prepass.pipeline.kernels import resolve_with_kernels
from prepass.pipeline.registry import default_registry

_SELECTED = "executable-sources"


def kernel_functions(
    source: ModuleSource, kernel: str, pipeline: str = "", on_remark: RemarkHandler | None = None
) -> list[str]:
    """The functions that a kernel puts into a program's executables, each once, as MLIR.

    Args:
      source: As for `prepass.compile`.
      kernel: The kernel's name. The program is compiled for the first of its targets.
      pipeline: As for `prepass.compile`.
      on_remark: As for `prepass.compile`.

    Raises PrepassError when the kernel fits no op of the program.
    """
    contents, name = read_module(source)
    (architecture, *_) = default_registry().kernel(kernel).description.targets
    session = new_session()
    session.set_flags("--iree-hal-target-device=hip", f"--iree-rocm-target={architecture}")
    resolved = resolve_with_kernels(pipeline, kernel, session.context)
    with Compilation(session, contents, name) as compilation:
        hooks = compilation.pipeline_hooks(resolved, on_remark=on_remark) if resolved else {}
        compilation.advance_with_hooks(_SELECTED, hooks)
        functions = find_ops(compilation.module, lambda op: _is_kernel(op.operation))
        for function in functions:
            # Each use of a constant is one of its own as built.
            PassManager.parse(f"{function.name}(cse)", session.context).run(function)
        texts = list(dict.fromkeys(map(str, functions)))
    if not texts:
        raise PrepassError(f"kernel '{kernel}' fits no op of {name}")
    return texts


def kernel_dispatches(module: ir.Operation) -> list[str]:
    """The names of the dispatches that kernels compute, all or a part of, after the phase executable-sources."""
    functions = {
        ir.StringAttr(function.attributes["sym_name"]).value: None
        for function in walk_ops(module, "func.func")
        if _is_rewritten(function) or find_ops(function, lambda op: UKERNEL in op.attributes)
    }
    return list(functions)


def _is_rewritten(function: ir.Operation) -> bool:
    # IREE chooses a pipeline only later.
    return "translation_info" in function.attributes and "no_pipeline" in str(function.attributes["translation_info"])


def _is_kernel(op: ir.Operation) -> bool:
    """Whether an op is the function of a kernel, or a dispatch whose body a kernel is."""
    if op.name == "func.func":
        return _is_rewritten(op)
    return op.name == "util.func" and op.parent is not None and op.parent.operation.name == "hal.executable.variant"

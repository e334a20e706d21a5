# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass.run`: calling a compiled program with numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from iree import runtime

from prepass.errors import PrepassError


def load(
    program: bytes,
    *,
    function: str | None = None,
    device: str = "local-task",
    parameters: Mapping[str, str | Path] | None = None,
) -> Callable[..., tuple[np.ndarray, ...]]:
    """A function of a program as a Python callable that takes and returns numpy arrays.

    Args:
      program: The contents of a .vmfb file, as `prepass.compile` returns them.
      function: The exported function's name; may be left out when there is one.
      device: A device URI of the runtime: `local-task`, `local-sync`, `hip`, …
      parameters: The archives of external parameters, by scope; they are mapped, not read.

    Raises PrepassError when the device, the program or the function is not there;
    the callable raises it when a call fails.
    """
    try:
        context = runtime.SystemContext(config=runtime.Config(device))
        module = runtime.VmModule.copy_buffer(context.instance, program)
        if parameters:
            context.add_vm_module(_parameters_module(context.instance, parameters))
        context.add_vm_module(module)
    except (RuntimeError, ValueError) as error:
        raise PrepassError(f"cannot load the program on {device}: {_first_line(error)}") from error
    name = find_function(module.function_names, function)
    invoke = context.modules[module.name][name]

    def call(*inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        try:
            results = invoke(*inputs)
        except (RuntimeError, ValueError) as error:
            raise PrepassError(f"calling '{name}' on {device}: {_first_line(error)}") from error
        many = results if isinstance(results, (tuple, list)) else (results,)
        return tuple(np.array(result.to_host() if hasattr(result, "to_host") else result) for result in many)

    return call


def run(
    program: bytes, *inputs: np.ndarray, function: str | None = None, device: str = "local-task"
) -> tuple[np.ndarray, ...]:
    """Call a function of a program once; see `load`."""
    return load(program, function=function, device=device)(*inputs)


def _parameters_module(instance: runtime.VmInstance, parameters: Mapping[str, str | Path]) -> runtime.VmModule:
    providers = []
    for scope, path in parameters.items():
        index = runtime.ParameterIndex()
        index.load(str(path))
        providers.append(index.create_provider(scope=scope))
    return runtime.create_io_parameters_module(instance, *providers)


def find_function(exported: Sequence[str], wanted: str | None) -> str:
    """The function of a program that a user means, when the name may be left out. Raises PrepassError."""
    # Next to a function `f` stand the program's initializer and `f$async`, for callers with fences.
    callable_names = [name for name in exported if name != "__init" and not name.endswith("$async")]
    if wanted is None and len(callable_names) == 1:
        return callable_names[0]
    if wanted in callable_names:
        return wanted
    if not callable_names:
        raise PrepassError("the program exports no function")
    problem = f"no function '{wanted}'" if wanted else "several functions, and none is named"
    raise PrepassError(f"the program has {problem}; it exports {', '.join(callable_names)}")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calling a function in a process of its own, so that a crash in native code is an error, and its memory is freed.

    sizes = call_in_child(measure, "model.mlir", what="compiling model.mlir")

Run as a program it is the other end: `python -m prepass.checking.child REQUEST RESULT`.
"""

from __future__ import annotations

import importlib
import pickle
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from prepass.errors import PrepassError
from prepass.pipeline.registry import default_registry

Result = TypeVar("Result")

# What LLVM says before it ends a process, without its advice.
_SAID = re.compile(
    r"Assertion .* failed|LLVM ERROR: .*|Unknown command line argument '[^']*'|for the --\S+ option: .*|error: .*"
)


class ChildCrash(PrepassError):
    """The process of a call ended by a signal, or in another way than by an answer."""


def call_in_child(function: Callable[..., Result], *arguments: object, what: str | Callable[[], str]) -> Result:
    """The result of `function(*arguments)`, called in a new process that knows the same passes.

    The function is a module's; the arguments and the result can be pickled. What it
    prints to standard error is passed on once it has ended, unless it crashed.

    Args:
      what: What errors say the function does, such as "compiling model.mlir"; where that depends on how far it got,
        what is called to know.

    Raises ChildCrash, and PrepassError where the function does.
    """
    with tempfile.TemporaryDirectory(prefix="prepass-child-") as directory:
        request, answer, log = (Path(directory, name) for name in ("request", "answer", "log"))
        request.write_bytes(pickle.dumps((default_registry().files, _path_of(function), arguments)))
        command = [sys.executable, "-m", __spec__.name, str(request), str(answer)]
        with log.open("wb") as errors:
            code = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=errors, check=False).returncode
        said = log.read_text(errors="replace")
        if code:
            raise ChildCrash(describe_end(code, said, what if isinstance(what, str) else what()))
        sys.stderr.write(said)
        failed, result = pickle.loads(answer.read_bytes())
    if failed:
        raise PrepassError(result)
    return result


def _path_of(function: Callable[..., object]) -> tuple[str, str]:
    """The module and the name of a function, which pickle gets wrong for a module that runs as the program."""
    module = function.__module__
    specification = sys.modules[module].__spec__ if module == "__main__" else None
    return (specification.name if specification else module), function.__name__


def describe_end(code: int, said: str, what: str) -> str:
    """One line that says how a process ended."""
    found = _SAID.findall(said)
    lines = [line for line in said.splitlines() if line.strip()]
    last = found[0] if found else (lines[-1].strip() if code > 0 and lines else "")
    if code > 0:
        return f"{what} failed: {last or f'exit code {code}'}"
    number = -code
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    return f"{what} crashed with {name}" + (f": {last}" if last else "")


def _serve(request: str, answer: str) -> None:
    files, (module, name), arguments = pickle.loads(Path(request).read_bytes())
    function = getattr(importlib.import_module(module), name)
    for path in files:
        default_registry().add_file(path)
    try:
        found = (False, function(*arguments))
    except PrepassError as error:
        # Its text alone: errors of other kinds do not survive pickling.
        found = (True, str(error))
    Path(answer).write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    _serve(*sys.argv[1:])

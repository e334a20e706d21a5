# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler's C API beyond what `iree.compiler.api` wraps, and its version.

Source: compiler/bindings/c/iree/compiler/{embedding_api,mlir_interop}.h of IREE.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

from iree.compiler import version
from iree.compiler.api import Invocation, Session, ctypes_dl

SUPPORTED_VERSION = "3.13"

# The phases of IREE's pipeline, in order, as its C API and --compile-to name them.
PHASES = (
    "start",
    "input",
    "abi",
    "preprocessing",
    "global-optimization",
    "dispatch-creation",
    "flow",
    "stream",
    "executable-sources",
    "executable-configurations",
    "executable-targets",
    "hal",
    "vm",
    "end",
)


# In the order of iree_compiler_diagnostic_severity_t.
_SEVERITIES = ("note", "warning", "error", "remark")

_DiagnosticCallback = ctypes.CFUNCTYPE(
    None, ctypes.c_int, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t, ctypes.c_void_p
)


@functools.cache
def _library() -> Any:
    library = ctypes_dl._dylib
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "ireeCompilerInvocationSetCompileFromPhase": (None, [pointer, text]),
        "ireeCompilerInvocationSetCompileToPhase": (None, [pointer, text]),
        "ireeCompilerInvocationSetDumpCompilationPhasesTo": (None, [pointer, text]),
        "ireeCompilerInvocationSetVerifyIR": (None, [pointer, ctypes.c_bool]),
        "ireeCompilerInvocationSetupRemarks": (None, [pointer, text, text]),
        "ireeCompilerInvocationEnableCallbackDiagnostics": (
            None,
            [pointer, ctypes.c_int, _DiagnosticCallback, pointer],
        ),
        "ireeCompilerInvocationOutputVMCSource": (pointer, [pointer, pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


@functools.cache
def check_version() -> None:
    """Warn once, on standard error, when the installed compiler is not the one that prepass was tested with."""
    installed = version.VERSION
    if not installed.startswith(SUPPORTED_VERSION + "."):
        message = f"prepass: warning: IREE {SUPPORTED_VERSION}.x is supported, {installed} is installed"
        print(f"{message}; passes may fail to match or to verify", file=sys.stderr)


def set_process_flags(program: str, flags: Sequence[str]) -> None:
    """Give the compiler the flags of this process, process-global ones included.

    It can be done once, before the first Session. A flag that the compiler does
    not know ends the process with the compiler's own message, as in iree-compile.
    """
    ctypes_dl._initializeGlobalCL(program, *flags)


def set_phases(invocation: Invocation, start: str, stop: str) -> None:
    """Let the next `execute` run the phases after `start`, up to and with `stop`."""
    _library().ireeCompilerInvocationSetCompileFromPhase(invocation._inv_p, start.encode())
    _library().ireeCompilerInvocationSetCompileToPhase(invocation._inv_p, stop.encode())


def dump_phases_to(invocation: Invocation, directory: str) -> None:
    """Write the IR at the end of each phase to a directory."""
    _library().ireeCompilerInvocationSetDumpCompilationPhasesTo(invocation._inv_p, directory.encode())


def set_verify(invocation: Invocation, verify: bool) -> None:
    """Whether the compiler verifies the IR after each of its passes."""
    _library().ireeCompilerInvocationSetVerifyIR(invocation._inv_p, verify)


def setup_remarks(invocation: Invocation, pattern: str, path: str) -> None:
    """Let the compiler write the remarks whose category matches `pattern` to a YAML file."""
    _library().ireeCompilerInvocationSetupRemarks(invocation._inv_p, pattern.encode(), path.encode())


def output_c_source(invocation: Invocation, output: Any) -> None:
    """Write the program as C source."""
    ctypes_dl._handle_error(_library().ireeCompilerInvocationOutputVMCSource(invocation._inv_p, output._output_p))


def on_diagnostic(invocation: Invocation, handler: Callable[[str, str], None]) -> object:
    """Call `handler(severity, text)` for each diagnostic; returns what must live as long as the invocation.

    The bindings' own diagnostic handlers do not serve here: a diagnostic that
    arrives while a phase runs, without the interpreter lock, and whose notes are
    read, ends the process.
    """

    def receive(severity: int, message: Any, length: int, _: object) -> None:
        handler(_SEVERITIES[severity], ctypes.string_at(message, length).decode(errors="replace"))

    callback = _DiagnosticCallback(receive)
    _library().ireeCompilerInvocationEnableCallbackDiagnostics(invocation._inv_p, 0, callback, None)
    return callback


def new_session() -> Session:
    """A session, with a warning on standard error when its compiler is not a supported one."""
    check_version()
    return Session()

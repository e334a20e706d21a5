# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the compiler knows of its own passes: checking them before they are run."""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Mapping

from iree.compiler import ir
from iree.compiler.passmanager import PassManager
from iree.compiler.tools import binaries

from prepass.standard_error import captured_stderr

_UNREGISTERED = "does not refer to a registered pass or pass pipeline"
_NO_SUCH_OPTION = re.compile(r"no such option (\S+)")
_BAD_VALUE = re.compile(r"for the --(\S+) option: (.*)")
_WRONG_ANCHOR = re.compile(r"Can't add pass '\S+' (restricted to '\S+') on a PassManager intended to run on ('\S+')")
# Passes stand in the help at one depth, their options one deeper.
_HELP_PASS = re.compile(r"^ {6}--([a-z0-9-]+)(?:=\S+)?\s+-")
_HELP_OPTION = re.compile(r"^ {8}--([a-z0-9-]+)(?:=\S+)?\s+-")


class UnknownPass(Exception):
    """The compiler has no pass or pipeline of this name."""


class BadOptions(Exception):
    """The compiler has the pass but rejects its options or its anchor; the text says why.

    Attributes:
      option: The option at fault, or "" when it is none in particular.
      unknown: Whether the pass has no such option.
    """

    def __init__(self, message: str, option: str = "", unknown: bool = False) -> None:
        super().__init__(message)
        self.option = option
        self.unknown = unknown


def check_native(anchors: tuple[str, ...], element: str, context: ir.Context) -> None:
    """Check one native pass, nested on `anchors` from the outside in.

    Raises UnknownPass or BadOptions.
    """
    text = "".join(f"{anchor}(" for anchor in anchors) + element + ")" * len(anchors)
    with captured_stderr() as captured:
        try:
            PassManager.parse(text, context)
            return
        except ValueError as error:
            captured.seek(0)
            problem = f"{captured.read()}\n{error}"
    if _UNREGISTERED in problem:
        raise UnknownPass
    raise _bad_options(problem)


@functools.cache
def native_passes() -> Mapping[str, tuple[str, ...]]:
    """The options of every native pass and pipeline, as the help of iree-opt lists them.

    Starts a process; meant for suggestions in error messages.
    """
    command = [binaries.find_tool("iree-opt"), "--help"]
    passes: dict[str, list[str]] = {}
    options: list[str] = []
    for line in subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines():
        if match := _HELP_PASS.match(line):
            options = passes.setdefault(match[1], [])
        elif match := _HELP_OPTION.match(line):
            options.append(match[1])
    return {name: tuple(found) for name, found in passes.items()}


def _bad_options(problem: str) -> BadOptions:
    if match := _NO_SUCH_OPTION.search(problem):
        return BadOptions(f"no option '{match[1]}'", match[1], unknown=True)
    if match := _BAD_VALUE.search(problem):
        return BadOptions(f"option '{match[1]}': {match[2].rstrip('!')}", match[1])
    if match := _WRONG_ANCHOR.search(problem):
        return BadOptions(f"the pass is {match[1]} and cannot run on {match[2]}")
    lines = [line.strip() for line in problem.splitlines() if line.strip()]
    return BadOptions(lines[0] if lines else "the compiler rejects it")

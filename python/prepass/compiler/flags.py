# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Command lines in the style of LLVM's tools: one dash or two, `=` or a blank before the value."""

from __future__ import annotations

import functools
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from iree.compiler.tools import binaries

from prepass.errors import PrepassError

# `  --flag=<string>  - help` takes a value; `  --flag  - help` is a switch. Enumerations
# that print as `--flag=<value>` are among the former.
_HELP_LINE = re.compile(r"^ +-{1,2}([A-Za-z0-9_-]+)(=<\S+>| <\S+>)?\s", re.MULTILINE)
_SWITCHES = {"": True, "true": True, "1": True, "TRUE": True, "false": False, "0": False, "FALSE": False}


@dataclass
class CommandLine:
    """A command line, split.

    Attributes:
      values: What was given for each flag of the program's own, in order; a
        switch without a value gives "".
      positional: The arguments that are no flags.
      rest: The flags that are not the program's own, as given, for the compiler.
    """

    values: dict[str, list[str]] = field(default_factory=dict)
    positional: list[str] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)

    def last(self, flag: str, default: str = "") -> str:
        """The value given last for a flag."""
        return self.values.get(flag, [default])[-1]

    def switch(self, flag: str, default: bool = False) -> bool:
        """Whether a switch is on; raises PrepassError for a value that is neither true nor false."""
        if flag not in self.values:
            return default
        value = self.last(flag)
        if value not in _SWITCHES:
            raise PrepassError(f"--{flag} takes true or false, not '{value}'")
        return _SWITCHES[value]

    def integer(self, flag: str, default: int, least: int | None = None) -> int:
        """The value of a flag that takes a whole number, from `least` on where that is given."""
        value = self.last(flag, str(default))
        if not re.fullmatch(r"-?\d+", value) or (least is not None and flag in self.values and int(value) < least):
            numbers = "a whole number" if least is None else f"a whole number from {least}"
            raise PrepassError(f"--{flag} takes {numbers}, not '{value}'")
        return int(value)

    def choice(self, flag: str, choices: Sequence[str], default: str) -> str:
        """The value of a flag that takes one of a few."""
        value = self.last(flag, default)
        if value not in choices:
            raise PrepassError(f"--{flag} takes one of {', '.join(filter(None, choices))}, not '{value}'")
        return value


def split_command_line(arguments: Sequence[str], own: Mapping[str, bool], stock_tool: str | None = None) -> CommandLine:
    """Split a command line.

    `own` says for each flag of the program whether it takes a value. Any other
    flag that is followed by a bare word is looked up in the help of the stock
    tool, to know whether the word is its value; without a stock tool it is not.
    Raises PrepassError.
    """
    result = CommandLine()
    pending = _expand_response_files(arguments)
    while pending:
        argument = pending.pop(0)
        if argument == "--":
            result.positional += pending
            break
        if not argument.startswith("-") or argument == "-":
            result.positional.append(argument)
            continue
        name, equals, value = argument.lstrip("-").partition("=")
        if name in own:
            if own[name] and not equals:
                if not pending:
                    raise PrepassError(f"{argument} needs a value")
                value = pending.pop(0)
            result.values.setdefault(name, []).append(value)
            continue
        result.rest.append(argument)
        bare_word_follows = bool(pending) and not equals and not pending[0].startswith("-")
        if stock_tool and bare_word_follows and name in _flags_with_value(stock_tool):
            result.rest.append(pending.pop(0))
    return result


@functools.cache
def _flags_with_value(tool: str) -> frozenset[str]:
    command = [binaries.find_tool(tool), "--help-list-hidden"]
    text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return frozenset(match[1] for match in _HELP_LINE.finditer(text) if match[2])


def _expand_response_files(arguments: Sequence[str]) -> list[str]:
    expanded: list[str] = []
    for argument in arguments:
        if argument.startswith("@") and Path(argument[1:]).is_file():
            expanded += _expand_response_files(_split_response_file(Path(argument[1:])))
        else:
            expanded.append(argument)
    return expanded


def _split_response_file(path: Path) -> list[str]:
    try:
        return shlex.split(path.read_text())
    except (OSError, ValueError) as error:
        raise PrepassError(f"response file '{path}': {error}") from None

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What all programs share: errors as one line, whole output files, prepass's own flags."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NoReturn

from iree.compiler import ir
from iree.compiler import version as compiler_version
from iree.compiler.tools import binaries
from rich.console import Console

import prepass
from prepass.compiler.api import TABLE_FLAG
from prepass.compiler.flags import CommandLine, split_command_line
from prepass.compiler.library import SUPPORTED_VERSION, check_version
from prepass.errors import PrepassError
from prepass.pipeline.base import Remark, RemarkHandler, RemarkKind
from prepass.pipeline.registry import default_registry

# The flags of every program that runs passes, and whether each takes a value.
PREPASS_FLAGS = {"prepass-load": True, "prepass-remarks": True}
LOAD_HELP = """\
  --prepass-load=<file.py>       Add the passes and kernels that a Python file defines; may be given several times
"""
PREPASS_FLAGS_HELP = (
    LOAD_HELP
    + """\
  --prepass-remarks=<kind>       Print what passes did (applied), left alone and why (missed), or all
"""
)

# Those of programs that compile as well.
COMPILE_FLAGS = {**PREPASS_FLAGS, "prepass-preset": True, "prepass-kernels": True, TABLE_FLAG: True}
HOW_TO_COMPILE_HELP = """\
  --prepass-preset=<name>        Use a named pipeline with the flags that belong to it; a flag or a pipeline that is
                                 given on the command line wins. `prepass pipelines <name>` shows them
  --prepass-kernels=<names>      Let kernels of prepass compute the ops that they fit: none, default, all, or
                                 names, separated by commas; `prepass kernels` lists them
  --prepass-tuning-table=<file>  Compile ops as the table of prepass-tune says that is best
"""
COMPILE_FLAGS_HELP = PREPASS_FLAGS_HELP + HOW_TO_COMPILE_HELP

# Where programs that do more than compile take a pipeline; the others are the names of iree-compile and iree-opt.
PIPELINE_FLAGS = ("pipeline", "iree-preprocessing-pass-pipeline", "pass-pipeline")
PIPELINE_HELP = """\
  --pipeline=<text>              Run in the preprocessing phase: 'builtin.module(...)';
                                 --iree-preprocessing-pass-pipeline and --pass-pipeline are the same"""

_REMARK_KINDS = {
    "none": frozenset[RemarkKind](),
    "all": frozenset(RemarkKind),
    "applied": frozenset({RemarkKind.APPLIED}),
    "missed": frozenset({RemarkKind.MISSED}),
}


_INFORMATION_FLAGS = ("help", "h", "version")


class _InformationShownError(Exception):
    """A program was asked for its help or version, and has nothing more to do."""


def run_program(program: str, main: Callable[[list[str]], int], arguments: Sequence[str] | None) -> int:
    """Run a program's main; a user's mistake becomes one line and exit code 1."""
    _open_closed_streams()
    if not faulthandler.is_enabled():
        # A crash of the compiler says where prepass has called it.
        faulthandler.enable()
    try:
        code = main(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
        return code
    except _InformationShownError:
        return 0
    except PrepassError as error:
        print(f"{program}: error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of a pipe has left.
        _drop_output()
        return 1
    except OSError as error:
        # What could be known before has been checked; a disk can fill up all the same.
        where = f" '{error.filename}'" if error.filename else ""
        print(f"{program}: error: cannot read or write{where}: {error.strerror or error}", file=sys.stderr)
        _drop_output()
        return 1
    except KeyboardInterrupt:
        return 130


def _drop_output() -> None:
    """Leave what Python would still flush at its end nowhere to fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_closed_streams() -> None:
    """Open standard streams that are closed so that using one fails: the next file would take its number otherwise."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_WRONLY if name == "stdin" else os.O_RDONLY)
            os.dup2(opened, number)
            setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w", closefd=False))


def become_stock(tool: str, arguments: Sequence[str]) -> NoReturn:
    """Become a stock program: the same bytes, messages and exit code at no further cost.

    Flags of prepass's own are left out.
    """
    path = binaries.find_tool(tool)
    sys.stdout.flush()
    os.execv(path, [path, *_without_prepass_flags(arguments)])


def working(what: str) -> AbstractContextManager[object]:
    """A line that moves while something long goes on; on a terminal only, and gone at the end."""
    if not sys.stderr.isatty():
        return contextlib.nullcontext()
    return Console(stderr=True).status(what)


def read_command_line(
    arguments: Sequence[str], flags: Mapping[str, bool], help_text: str, stock: str | None = None
) -> CommandLine:
    """The command line of a program run by `run_program`, which ends here when its help or version is asked for.

    Args:
      flags: Its own, and whether each takes a value; `help` and `version` are added.
      stock: The stock program to which the other flags belong.
    """
    command_line = split_command_line(arguments, {**dict.fromkeys(_INFORMATION_FLAGS, False), **flags}, stock)
    if command_line.switch("help") or command_line.switch("h"):
        print(help_text, end="")
        raise _InformationShownError
    if command_line.switch("version"):
        print_version()
        raise _InformationShownError
    # Its mistakes come before work is spent, and where no pass runs.
    remark_printer(command_line)
    return command_line


def print_version() -> None:
    """Print the versions of prepass and IREE, with a warning where they do not go together."""
    print(f"prepass {prepass.__version__}")
    print(f"IREE compiler {compiler_version.VERSION} (supported: {SUPPORTED_VERSION}.x)")
    check_version()


def one_input(command_line: CommandLine, what: str = "input file") -> str:
    """The one input that a command line names. Raises PrepassError."""
    if len(command_line.positional) != 1:
        raise PrepassError(f"expected one {what}, got {len(command_line.positional)}; see --help")
    return command_line.positional[0]


def load_files(command_line: CommandLine) -> None:
    """Add the passes and kernels in the files of `--prepass-load` to the registry."""
    for path in command_line.values.get("prepass-load", []):
        default_registry().add_file(path)


def pipeline_text(command_line: CommandLine) -> str:
    """The pipeline that a command line gives under one of its names, or nothing. Raises PrepassError."""
    given = [flag for flag in PIPELINE_FLAGS if command_line.last(flag)]
    if len(given) > 1:
        raise PrepassError(f"{' and '.join(f'--{flag}' for flag in given)} are the same; give one")
    return command_line.last(given[0]) if given else ""


def with_preset(command_line: CommandLine, flags: Sequence[str]) -> tuple[str, list[str]]:
    """The pipeline to run, and the flags of the preset that go beside the `flags` of the user. Raises PrepassError."""
    pipeline = pipeline_text(command_line)
    if "prepass-preset" not in command_line.values:
        return pipeline, []
    preset = default_registry().pipeline(command_line.last("prepass-preset"))
    return pipeline or preset.as_text, preset.flags_beside(flags)


def remark_printer(command_line: CommandLine) -> RemarkHandler:
    """What prints warnings, and the remarks that `--prepass-remarks` asks for, to standard error."""
    wanted = _REMARK_KINDS[command_line.choice("prepass-remarks", tuple(_REMARK_KINDS), "none")]

    def print_remark(remark: Remark, _: ir.Location) -> None:
        if remark.kind in wanted or remark.kind is RemarkKind.WARNING:
            print(remark, file=sys.stderr)

    return print_remark


def check_input(path: str) -> None:
    """Raise PrepassError when a path cannot be read as a file; `-` is standard input."""
    if path == "-":
        return
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise PrepassError(f"cannot open input '{path}': {error.strerror}") from None


def read_input(path: str) -> bytes:
    """The contents of a file, or of standard input for `-`."""
    check_input(path)
    return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()


def input_source(path: str) -> bytes | Path:
    """The module that an input file holds, as the library takes it; standard input for `-`."""
    return read_input(path) if path == "-" else Path(path)


def check_output(path: str) -> None:
    """Raise PrepassError when a path cannot be written, before work is spent on it."""
    if path == "-":
        return
    parent = Path(path).absolute().parent
    if Path(path).is_dir():
        raise PrepassError(f"cannot open output '{path}': Is a directory")
    if not parent.is_dir():
        raise PrepassError(f"cannot open output '{path}': No such file or directory")
    if not os.access(path if Path(path).exists() else parent, os.W_OK):
        raise PrepassError(f"cannot open output '{path}': Permission denied")


def check_output_directory(path: str) -> None:
    """Raise PrepassError when a path is a file, where a directory is there or is to be made."""
    if Path(path).exists() and not Path(path).is_dir():
        raise PrepassError(f"cannot open output '{path}': Not a directory")


@contextlib.contextmanager
def whole_output(path: str) -> Iterator[str]:
    """Yield a path to write to; the file appears at `path` only when the block succeeds.

    Devices and pipes cannot be replaced and are written to directly.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        yield path
        return
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.absolute().parent)
    os.close(handle)
    try:
        yield temporary
        _take_mode(temporary, target)
        os.replace(temporary, target.resolve())
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_output(path: str, contents: bytes) -> None:
    """Write a file whole, or standard output for `-`."""
    if path == "-":
        sys.stdout.buffer.write(contents)
        sys.stdout.buffer.flush()
        return
    with whole_output(path) as temporary:
        Path(temporary).write_bytes(contents)


def _without_prepass_flags(arguments: Sequence[str]) -> list[str]:
    kept: list[str] = []
    pending = list(arguments)
    while pending:
        argument = pending.pop(0)
        name, equals, _ = argument.lstrip("-").partition("=")
        if argument.startswith("-") and name in COMPILE_FLAGS:
            if not equals and pending:
                pending.pop(0)
            continue
        kept.append(argument)
    return kept


def _take_mode(temporary: str, target: Path) -> None:
    """Give a temporary file the mode that writing to the target itself would have left."""
    if target.exists():
        mode = target.stat().st_mode & 0o777
    else:
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    os.chmod(temporary, mode)

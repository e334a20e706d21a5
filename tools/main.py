# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""prepass: what is installed, and where."""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import sys
from collections.abc import Iterator, Sequence

from prepass.errors import PrepassError, did_you_mean
from prepass.pipeline.named import NamedPipeline
from prepass.pipeline.options import options_of, print_value
from prepass.pipeline.registry import Registry, default_registry
from prepass.plugin import library_path
from prepass.tools.common import print_version, run_program
from prepass.tools.kernels import list_kernels, show_kernel
from prepass.tools.tables import print_table

PROGRAM = "prepass"

# Programs of their own that are commands as well: `prepass stats` is `prepass-stats`.
_PROGRAMS = {
    "compile": "compile as iree-compile does, with prepass passes",
    "opt": "run a pipeline on a file as iree-opt does, with prepass passes",
    "run": "compile and run a program, and compare its results",
    "analyze": "find the issues in a model's graph, and what passes do about them",
    "check": "prove that a pipeline keeps a model's results",
    "stats": "count a program's dispatches, memory and traffic",
    "isa": "read and price the code of kernels for AMD GPUs",
    "simulate": "execute a program's gfx942 code without a GPU",
    "tune": "search for the best way to compile each op, by the cost model",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program."""
    return run_program(PROGRAM, _main, arguments)


def _main(arguments: list[str]) -> int:
    if arguments and arguments[0] in _PROGRAMS:
        return importlib.import_module(f"prepass.tools.{arguments[0]}").main(arguments[1:])
    parsed = _parser().parse_args(arguments)
    for path in parsed.prepass_load:
        default_registry().add_file(path)
    parsed.command(parsed)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=PROGRAM, description="Passes, pipelines, kernels and the plugin of prepass.")
    parser.add_argument(
        "--prepass-load",
        metavar="FILE",
        action="append",
        default=[],
        help="add the passes and kernels of a Python file",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    passes = commands.add_parser("passes", help="list the passes, or show one with its options")
    passes.add_argument("words", nargs="*", metavar="[show] NAME", help="the pass to show")
    passes.add_argument("--json", action="store_true", help="as JSON")
    passes.set_defaults(command=_passes)
    pipelines = commands.add_parser("pipelines", help="list the named pipelines, or show one with its reasons")
    pipelines.add_argument("words", nargs="*", metavar="[show] NAME", help="the pipeline to show")
    pipelines.set_defaults(command=_pipelines)
    kernels = commands.add_parser("kernels", help="list the kernels, or show one with the MLIR that it emits")
    kernels.add_argument("words", nargs="*", metavar="[show] NAME", help="the kernel to show")
    kernels.add_argument("--example", metavar="SHAPE", help="the op that the MLIR is for, of those that it lists")
    kernels.set_defaults(command=_kernels)
    plugin = commands.add_parser("plugin", help="print the library for iree-compile --load and iree-opt --load")
    plugin.set_defaults(command=_plugin)
    for name, summary in _PROGRAMS.items():
        commands.add_parser(name, help=summary, add_help=False)
    version = commands.add_parser("version", help="print the versions of prepass and IREE")
    version.set_defaults(command=_version)
    return parser


def _passes(parsed: argparse.Namespace) -> None:
    registry = default_registry()
    shown = _shown(parsed.words, "pass")
    names = [shown] if shown else registry.pass_names()
    if parsed.json:
        print(json.dumps([_pass_record(registry, name) for name in names], indent=2))
    elif shown:
        _show_pass(registry, shown)
    else:
        print_table(("pass", "summary"), [(name, _summary(registry, name)) for name in names])


def _pass_record(registry: Registry, name: str) -> dict[str, object]:
    pass_class = registry.find_pass(name)
    if pass_class is None:
        near = did_you_mean(name, registry.pass_names()) or "; `prepass passes` lists them"
        raise PrepassError(f"unknown pass '{name}'{near}")
    return {
        "name": name,
        "summary": _summary(registry, name),
        "provider": registry.provider(name),
        "anchor": pass_class.anchor or "any op",
        "options": [
            {"name": o.spelling, "values": o.values, "default": print_value(o.default), "help": o.help}
            for o in options_of(pass_class)
        ],
    }


def _summary(registry: Registry, name: str) -> str:
    pass_class = registry.find_pass(name)
    return (inspect.getdoc(pass_class) or "").partition("\n")[0] if pass_class else ""


def _show_pass(registry: Registry, name: str) -> None:
    record = _pass_record(registry, name)
    pass_class = registry.find_pass(name)
    module = inspect.getmodule(pass_class)
    print(f"{name}, of {record['provider']}, on {record['anchor']}\n")
    print(inspect.getdoc(module) or inspect.getdoc(pass_class) or "")
    options = options_of(pass_class) if pass_class else ()
    if options:
        print("\nOptions:")
        rows = [(f"{o.spelling}={print_value(o.default)}", o.values, o.help) for o in options]
        print_table(("option and default", "takes", "help"), rows)


def _pipelines(parsed: argparse.Namespace) -> None:
    registry = default_registry()
    name = _shown(parsed.words, "pipeline")
    if name is None:
        rows = [(name, registry.pipeline(name).summary) for name in registry.pipeline_names()]
        print_table(("pipeline", "summary"), rows)
        return
    pipeline = registry.pipeline(name)
    print(f"{pipeline.name}: {pipeline.summary}\n{pipeline.text}\n")
    print_table(("step", "reason"), list(_steps(pipeline, registry)))
    if pipeline.flags:
        print(f"\nWith --prepass-preset={pipeline.name}, unless given otherwise:")
        rows = [(flag.text, ", ".join(flag.devices) or "all", flag.reason) for flag in pipeline.flags]
        print_table(("flag", "devices", "reason"), rows)


def _steps(pipeline: NamedPipeline, registry: Registry, depth: int = 0) -> Iterator[tuple[str, str]]:
    """The steps with their reasons; those of a named pipeline among them follow it, indented."""
    for step in pipeline.steps:
        yield "  " * depth + step.text, step.reason
        if nested := registry.find_pipeline(step.text):
            yield from _steps(nested, registry, depth + 1)


def _kernels(parsed: argparse.Namespace) -> None:
    name = _shown(parsed.words, "kernel")
    if name is None and parsed.example:
        raise PrepassError("--example is of a kernel: `prepass kernels show NAME --example SHAPE`")
    if name is None:
        list_kernels()
    else:
        show_kernel(name, parsed.example)


def _shown(words: Sequence[str], what: str) -> str | None:
    """The name in `[show] NAME`, None for an empty line. Raises PrepassError."""
    names = words[1:] if words[:1] == ["show"] else words
    if len(names) > 1 or (words and not names):
        raise PrepassError(f"expected the name of one {what}, got {len(names)}")
    return names[0] if names else None


def _plugin(_: argparse.Namespace) -> None:
    print(library_path())


def _version(_: argparse.Namespace) -> None:
    print_version()


if __name__ == "__main__":
    sys.exit(main())

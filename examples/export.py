# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From torch to a program for IREE, with the preset that is meant for the model.

    python examples/export.py --list
    python examples/export.py sdxl-unet --size test --check
    python examples/export.py sdxl-unet --size full --target gfx942 -o unet.vmfb

Nothing is downloaded: configs are in examples/models, weights are generated. They are not part of the program, which
reads them by the names that they have in published checkpoints: --parameters writes generated ones to a file.
At full size a model takes next to no memory, as its weights are never touched.

It needs `pip install 'prepass[models]'`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from iree.compiler import ir
from iree.turbine import aot
from models import MODELS, Instance, Model, Settings, find
from models.running import TOLERANCES, Bundle, run_in_torch
from models.weights import fill_archive, write_archive
from rich.console import Console

import prepass
from prepass.checking.statistics import ProgramStatistics
from prepass.compiler.library import set_process_flags
from prepass.errors import PrepassError
from prepass.ir.parse import read_module
from prepass.ir.targets.devices import compile_flags
from prepass.pipeline.named import NamedPipeline
from prepass.pipeline.registry import default_registry
from prepass.tools.common import check_output, check_output_directory, run_program, whole_output, working, write_output

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
CPU = "llvm-cpu"


def import_instance(instance: Instance) -> ir.Module:
    """A model in the torch dialect; its weights are external parameters of the scope `model`."""
    aot.externalize_module_parameters(instance.weights, external_scope="model", prefix=instance.prefix)
    return prepass.turbine.import_module(instance.module, instance.inputs)


def write_parameters(instance: Instance, path: Path, *, generate: bool) -> None:
    """Write an .irpa file: the weights that the instance has, or, for one that has none, generated ones."""
    with whole_output(str(path)) as temporary:
        archive = Path(temporary + ".irpa")
        try:
            write_archive(instance.weights, instance.prefix, archive)
            if generate:
                fill_archive(instance.weights, instance.prefix, archive)
            archive.replace(temporary)
        finally:
            archive.unlink(missing_ok=True)


def write_mlir(module: ir.Module, path: Path) -> None:
    """Write a module, as bytecode for .mlirbc and as text for any other suffix, with its locations."""
    contents = read_module(module)[0]
    if path.suffix != ".mlirbc":
        contents = module.operation.get_asm(enable_debug_info=True).encode()
    write_output(str(path), contents)


def target_flags(target: str, level: str) -> tuple[str, ...]:
    """The flags of iree-compile for this machine's CPU, or for a GPU by its architecture."""
    device = compile_flags("local-task") if target == CPU else (*compile_flags("hip"), f"--iree-rocm-target={target}")
    return (*device, f"--iree-opt-level={level}")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    return run_program("export.py", lambda given: _main(_parser().parse_args(given)), arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", help="one of --list")
    parser.add_argument("--list", action="store_true", help="the models that there are")
    parser.add_argument("--size", choices=("full", "test"), default="test", help="as published, or small (default)")
    parser.add_argument("--dtype", choices=DTYPES, help="default: f32 at test size, the usual one at full size")
    parser.add_argument("--attention", choices=("sdpa", "eager"), default="sdpa", help="torch's operator, or spelt out")
    parser.add_argument("--layers", type=int, help="at most so many layers where the model repeats one")
    parser.add_argument("--target", default=CPU, help=f"{CPU} (default), or a GPU such as gfx942")
    parser.add_argument("--preset", help="default: the one meant for the model; none is stock IREE")
    parser.add_argument("--opt-level", default="O3", choices=("O0", "O1", "O2", "O3"), help="of IREE (default: O3)")
    parser.add_argument("--flag", action="append", default=[], help="of iree-compile; may be given several times")
    parser.add_argument("-o", "--output", type=Path, help="where to write the program, a .vmfb")
    parser.add_argument("--mlir", type=Path, help="where to write what torch exports, as .mlir or .mlirbc")
    parser.add_argument("--parameters", type=Path, help="where to write generated weights, an .irpa")
    parser.add_argument(
        "--bundle", type=Path, help="a folder for all that a run needs, with scripts; see docs/mi300.md"
    )
    parser.add_argument("--check", action="store_true", help="run the program with iree-run-module, compare with torch")
    return parser


def _main(arguments: argparse.Namespace) -> int:
    if arguments.list:
        for model in MODELS.values():
            print(f"{model.name:12}{model.summary}; {model.preset}")
        return 0
    if not arguments.model:
        raise PrepassError("name a model; --list shows them")
    files = (arguments.output, arguments.mlir, arguments.parameters)
    for path in filter(None, files):
        check_output(str(path))
    if arguments.bundle:
        check_output_directory(str(arguments.bundle))
    if not any((*files, arguments.bundle, arguments.check)):
        raise PrepassError("nothing to do: give -o, --mlir, --parameters, --bundle or --check")
    model = find(arguments.model)
    settings, preset = _settings(model, arguments), _preset(model, arguments)
    flags = (*target_flags(arguments.target, arguments.opt_level), *arguments.flag)
    # Some are flags that the compiler keeps per process. It can be given them once, before it is used, and has to be
    # given all of them then: an optimization level that only a session is told afterwards would not count.
    set_process_flags("export.py", [*(preset.flags_beside(flags) if preset else []), *flags])
    return _export(model, settings, preset, arguments)


def _export(model: Model, settings: Settings, preset: NamedPipeline | None, arguments: argparse.Namespace) -> int:
    # What torch is to compute needs weights in memory.
    in_torch = arguments.check or bool(arguments.bundle and arguments.size == "test")
    with step(f"making {model.name}"):
        instance = (model.instantiate_with_weights if in_torch else model.instantiate)(settings)
    if arguments.parameters:
        with step(f"writing {arguments.parameters}"):
            write_parameters(instance, arguments.parameters, generate=not in_torch)
    if not any((arguments.output, arguments.mlir, arguments.bundle, arguments.check)):
        return 0
    with step("exporting with torch"):
        module = import_instance(instance)
    if arguments.mlir:
        write_mlir(module, arguments.mlir)
    if not any((arguments.output, arguments.bundle, arguments.check)):
        return 0
    program = _compile(module, preset, arguments)
    if arguments.output:
        write_output(str(arguments.output), program)
    expected: tuple[torch.Tensor, ...] = ()
    if in_torch:
        with step("running in torch"):
            expected = run_in_torch(instance)
    if arguments.bundle:
        with step(f"writing {arguments.bundle}"):
            _write_bundle(instance, program, expected, arguments)
    return _check(instance, program, expected, arguments) if arguments.check else 0


def _settings(model: Model, arguments: argparse.Namespace) -> Settings:
    default = model.dtype if arguments.size == "full" else torch.float32
    if arguments.layers is not None and arguments.layers < 1:
        raise PrepassError("--layers takes a number from 1")
    return Settings(
        size=arguments.size,
        dtype=DTYPES[arguments.dtype] if arguments.dtype else default,
        attention=arguments.attention,
        layers=arguments.layers,
    )


def _preset(model: Model, arguments: argparse.Namespace) -> NamedPipeline | None:
    if arguments.preset == "none":
        return None
    return default_registry().pipeline(arguments.preset or model.preset)


def _compile(module: ir.Module, preset: NamedPipeline | None, arguments: argparse.Namespace) -> bytes:
    """Compile with the flags of the process."""
    statistics = ProgramStatistics()
    with step(f"compiling for {arguments.target} with {preset.name if preset else 'stock IREE'}"):
        program = prepass.compile(module, pipeline=preset.as_text if preset else None, hooks=statistics.hooks)
    print(f"{statistics.dispatches} dispatches, {statistics.initializer_dispatches} more when it is loaded")
    return program


def _device(arguments: argparse.Namespace) -> str:
    return "local-task" if arguments.target == CPU else "hip"


def _write_bundle(
    instance: Instance, program: bytes, expected: Sequence[torch.Tensor], arguments: argparse.Namespace
) -> None:
    folder = arguments.bundle
    try:
        folder.mkdir(parents=True, exist_ok=True)
        bundle = Bundle.write(folder, program, instance, _device(arguments), generate_weights=not expected)
        bundle.write_scripts(expected)
    except OSError as error:
        raise PrepassError(f"cannot write '{error.filename or folder}': {error.strerror}") from None


def _check(instance: Instance, program: bytes, expected: Sequence[torch.Tensor], arguments: argparse.Namespace) -> int:
    device = _device(arguments)
    with tempfile.TemporaryDirectory(prefix="prepass-export-") as directory, step(f"running on {device}"):
        errors = Bundle.write(Path(directory), program, instance, device).errors(expected)
    tolerances = [TOLERANCES[tensor.dtype] for tensor in expected]
    print(f"relative errors: {', '.join(f'{error:.1e}' for error in errors)}; up to {max(tolerances):.0e} is right")
    return int(not all(error <= most for error, most in zip(errors, tolerances, strict=True)))


@contextmanager
def step(what: str) -> Iterator[None]:
    """Show what goes on while it does, and how long it took."""
    started = time.perf_counter()
    with working(what):
        yield
    if sys.stderr.isatty():
        Console(stderr=True).print(f"{what}: {time.perf_counter() - started:.1f} s", style="dim")


if __name__ == "__main__":
    # torch warns about its own use of itself.
    warnings.filterwarnings("ignore", category=FutureWarning, module="copyreg")
    sys.exit(main())

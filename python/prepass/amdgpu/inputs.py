# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels from whatever holds them: assembly, code objects, compiled programs, MLIR."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prepass.amdgpu.assembly import read_kernels
from prepass.amdgpu.code_object import ELF_MAGIC, find_code_objects, read_code_object
from prepass.amdgpu.figures import KernelFigures, kernel_figures
from prepass.compiler.api import compile
from prepass.compiler.compilation import Hook
from prepass.errors import PrepassError
from prepass.ir.parse import ModuleSource, is_vmfb, read_module
from prepass.ir.targets.devices import DEVICE_FLAGS, flag_name
from prepass.pipeline.base import RemarkHandler
from prepass.pipeline.builder import Pipeline

# Takes a directory.
DUMP_FLAG = "--iree-hal-dump-executable-intermediates-to="

# What clang makes of code objects for several GPUs.
_BUNDLE_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"

_TARGET = re.compile(r'^\s*\.amdgcn_target\s+"[^"]*?(gfx\w+)', re.MULTILINE)
_ASSEMBLY = re.compile(rb"^\s*\.amd(gcn_target|hsa_kernel)\b", re.MULTILINE)
_ASSEMBLY_SUFFIXES = (".rocmasm", ".s")
_MACHINE_CODE_SUFFIXES = (".hsaco", ".co")
_DEFAULT_FLAGS = ((DEVICE_FLAGS, "--iree-hal-target-device=hip"), (("iree-rocm-target",), "--iree-rocm-target=gfx942"))


@dataclass(frozen=True)
class CompileOptions:
    """How MLIR is compiled: as in `prepass.compile`; without a target, for gfx942."""

    pipeline: str | Pipeline | None = None
    preset: str | None = None
    kernels: str | None = None
    flags: Sequence[str] = ()
    tuning_table: str | None = None
    on_remark: RemarkHandler | None = field(default=None, compare=False)

    @property
    def given(self) -> bool:
        """Whether any option is set."""
        return bool(self.pipeline or self.preset or self.kernels or self.flags or self.tuning_table)


def read_program(source: Path | bytes, options: CompileOptions | None = None) -> list[KernelFigures]:
    """The kernels of a file: .mlir, .mlirbc, .vmfb, .hsaco or .rocmasm, told apart by what is in it.

    `source` is a path, or the contents. Raises PrepassError when it cannot be read, when it
    has no kernel for an AMD GPU, or when options of compilation are given for what is
    compiled already.
    """
    options = options or CompileOptions()
    contents, name = read_module(source)
    if not _is_compiled(contents, name):
        found = compile_to_assembly(
            source,
            pipeline=options.pipeline,
            preset=options.preset,
            kernels=options.kernels,
            flags=with_target(options.flags),
            on_remark=options.on_remark,
            tuning_table=options.tuning_table,
        )
    elif options.given:
        raise PrepassError(f"'{name}' is compiled already; a pipeline, a table or flags of the compiler need MLIR")
    else:
        found = _read_compiled(contents, name)
    if not found:
        raise PrepassError(f"'{name}' has no kernel for an AMD GPU")
    return found


def read_assembly(text: str) -> list[KernelFigures]:
    """The figures of each kernel in the text of a `.rocmasm` file. Raises PrepassError for other GPUs than gfx9."""
    target = _TARGET.search(text)
    architecture = target[1] if target else "gfx942"
    # Instructions of RDNA have the same names for other things.
    if not architecture.startswith("gfx9"):
        raise PrepassError(f"the code is for {architecture}; only that of gfx9 GPUs (CDNA) can be read")
    return [kernel_figures(kernel, architecture) for kernel in read_kernels(text)]


def compile_to_assembly(
    source: ModuleSource,
    *,
    pipeline: str | Pipeline | None = None,
    preset: str | None = None,
    kernels: str | Sequence[str] | None = None,
    flags: Sequence[str] = (),
    on_remark: RemarkHandler | None = None,
    tuning_table: str | Path | None = None,
    start: str = "start",
    hooks: Mapping[str, Hook] | None = None,
) -> list[KernelFigures]:
    """Compile a module for an AMD GPU and read its kernels. Arguments as for `prepass.compile`."""
    with tempfile.TemporaryDirectory(prefix="prepass-isa-") as directory:
        compile(
            source,
            pipeline=pipeline,
            preset=preset,
            kernels=kernels,
            flags=[*flags, DUMP_FLAG + directory],
            hooks=hooks,
            on_remark=on_remark,
            start=start,
            tuning_table=tuning_table,
        )
        return [figures for text in read_dump(directory) for figures in read_assembly(text)]


def read_dump(directory: str | Path) -> list[str]:
    """The assembly that a compilation with `DUMP_FLAG` has written, the second dispatch before the tenth."""
    files = sorted(Path(directory).glob("*.rocmasm"), key=lambda file: [int(n) for n in re.findall(r"\d+", file.name)])
    return [file.read_text() for file in files]


def _is_compiled(contents: bytes, name: str) -> bool:
    binary = contents.startswith((ELF_MAGIC, _BUNDLE_MAGIC)) or is_vmfb(contents)
    return binary or name.endswith(_ASSEMBLY_SUFFIXES + _MACHINE_CODE_SUFFIXES) or bool(_ASSEMBLY.search(contents))


def _read_compiled(contents: bytes, name: str) -> list[KernelFigures]:
    if contents.startswith(_BUNDLE_MAGIC) or is_vmfb(contents):
        code_objects = find_code_objects(contents)
    elif contents.startswith(ELF_MAGIC) or name.endswith(_MACHINE_CODE_SUFFIXES):
        code_objects = [contents]
    else:
        return read_assembly(contents.decode(errors="replace"))
    programs = [read_code_object(data, name) for data in code_objects]
    return [kernel_figures(kernel, architecture) for architecture, kernels in programs for kernel in kernels]


def with_target(flags: Sequence[str]) -> list[str]:
    """Flags of iree-compile, with those for gfx942 before them where they choose no device or architecture."""
    given = {flag_name(flag) for flag in flags}
    missing = [default for names, default in _DEFAULT_FLAGS if given.isdisjoint(names)]
    return [*missing, *flags]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`simulate`: compile a module for gfx942 and run it, kernels and host, on numpy arrays."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from iree.compiler import ir

from prepass.amdgpu.assembly import Kernel, read_kernels
from prepass.amdgpu.code_object import read_code_object
from prepass.amdgpu.data import read_data
from prepass.amdgpu.inputs import DUMP_FLAG, read_dump
from prepass.compiler.api import compile
from prepass.compiler.compilation import Hook
from prepass.compiler.runtime import find_function
from prepass.errors import PrepassError
from prepass.ir.parse import ModuleSource
from prepass.pipeline.base import RemarkHandler
from prepass.pipeline.builder import Pipeline
from prepass.simulator.errors import SimulationError
from prepass.simulator.host.interpret import Host
from prepass.simulator.host.read import Export, HostProgram, read_host
from prepass.simulator.launch import launch
from prepass.simulator.memory import Memory
from prepass.simulator.program import Program, compile_kernel
from prepass.simulator.waves import LANES

_TARGETS = "executable-targets"
FLAGS = ("--iree-hal-target-device=hip", "--iree-rocm-target=gfx942")


@dataclass(frozen=True)
class DeviceProgram:
    """A compiled program: the host's code, and the assembly of each file of kernels.

    `dataclasses.replace` puts other assembly in its place: written by hand, or wrong on purpose.
    """

    host: HostProgram
    assembly: tuple[str, ...]


def compile_program(
    source: ModuleSource,
    *,
    pipeline: str | Pipeline | None = None,
    preset: str | None = None,
    kernels: str | Sequence[str] | None = None,
    flags: Sequence[str] = (),
    start: str = "start",
    hooks: Mapping[str, Hook] | None = None,
    on_remark: RemarkHandler | None = None,
    tuning_table: str | Path | None = None,
) -> DeviceProgram:
    """Compile a module for gfx942, as far as the simulator needs it. Arguments and errors as for `prepass.compile`."""
    hosts: list[HostProgram] = []
    hooks = dict(hooks or {})
    edit = hooks.pop(_TARGETS, lambda _: None)

    def read(module: ir.Operation) -> None:
        edit(module)
        hosts.append(read_host(module))

    with tempfile.TemporaryDirectory(prefix="prepass-simulator-") as directory:
        compile(
            source,
            pipeline=pipeline,
            preset=preset,
            kernels=kernels,
            flags=[*FLAGS, *flags, DUMP_FLAG + directory],
            hooks={**hooks, _TARGETS: read},
            start=start,
            on_remark=on_remark,
            tuning_table=tuning_table,
        )
        return DeviceProgram(hosts[0], tuple(read_dump(directory)))


def run_program(
    program: DeviceProgram,
    inputs: Sequence[np.ndarray],
    *,
    function: str | None = None,
    parameters: Mapping[str, np.ndarray] | None = None,
) -> tuple[np.ndarray, ...]:
    """Run a compiled program; see `simulate`."""
    memory = Memory()
    kernels = _Kernels(program.assembly, memory)
    host = Host(program.host, memory, kernels.dispatch, parameters or {})
    return host.call(find_function(program.host.public, function), inputs)


def simulate(
    source: ModuleSource,
    inputs: Sequence[np.ndarray],
    *,
    pipeline: str | Pipeline | None = None,
    kernels: str | Sequence[str] | None = None,
    flags: Sequence[str] = (),
    start: str = "start",
    function: str | None = None,
    parameters: Mapping[str, np.ndarray] | None = None,
) -> tuple[np.ndarray, ...]:
    """Compile a module for gfx942 and run its code on this machine, without a GPU.

    Args:
      source: A module, MLIR text, bytecode, or a path, as for `prepass.compile`.
      inputs: The arguments of the function. An argument of type bf16 may be given as float32.
      pipeline: Runs where IREE's preprocessing pipeline does.
      kernels: The kernels to choose from, as for `prepass.compile`.
      flags: Flags of iree-compile; those that choose gfx942 are added.
      start: The phase that the module has been through already, as `--compile-from`.
      function: The exported function's name; may be left out when there is one.
      parameters: Arrays of external parameters, by `scope::key` or by key.

    Returns:
      The results; those of type bf16 as float32.

    Raises:
      SimulationError: A kernel does what it must not, or what the simulator does not know.
      CompileError: The compiler's diagnostics.
      PrepassError: Anything else that is wrong with the arguments.
    """
    program = compile_program(source, pipeline=pipeline, kernels=kernels, flags=flags, start=start)
    return run_program(program, inputs, function=function, parameters=parameters)


def run_kernel(
    code: str | bytes,
    buffers: Sequence[np.ndarray],
    grid: Sequence[int],
    *,
    constants: Sequence[int] = (),
    kernel: str | None = None,
) -> tuple[np.ndarray, ...]:
    """Run one kernel by itself, for instance one written by hand.

    Args:
      code: Assembly as in a `.rocmasm` file, with the kernel's directives and metadata; or machine code, the
        contents of a `.hsaco` file, which needs the packages of `prepass[isa]` and a disassembler.
      buffers: The kernel's buffer arguments, in order.
      grid: Workgroups in x, y and z.
      constants: The kernel's arguments of 4 bytes that are passed by value, in order.
      kernel: The kernel's name; may be left out when there is one.

    Returns:
      The buffers as they are afterwards; those given are not changed.

    Raises SimulationError and PrepassError as `simulate`.
    """
    memory = Memory()
    symbols = _place_data(code, memory) if isinstance(code, str) else {}
    kernels = {
        found.name: found for found in (read_kernels(code) if isinstance(code, str) else _read_machine_code(code))
    }
    if kernel is None and len(kernels) == 1:
        (kernel,) = kernels
    if kernel not in kernels:
        raise PrepassError(f"simulator: no kernel '{kernel}'; the code has {', '.join(kernels) or 'none'}")
    contents = [np.frombuffer(np.ascontiguousarray(buffer).tobytes(), np.uint8) for buffer in buffers]
    addresses = [memory.allocate_bytes(part) for part in contents]
    launch(compile_kernel(kernels[kernel], symbols), memory, grid, addresses, constants)
    return tuple(
        memory.bytes_at(address, len(part)).copy().view(buffer.dtype).reshape(buffer.shape)
        for address, part, buffer in zip(addresses, contents, buffers, strict=True)
    )


def _read_machine_code(code: bytes) -> list[Kernel]:
    architecture, kernels = read_code_object(code, "machine code")
    if architecture != "gfx942":
        raise PrepassError(f"simulator: the code is for {architecture}, not for gfx942")
    for kernel in kernels:
        for instruction in kernel.instructions:
            if instruction.name == "s_getpc_b64":
                raise SimulationError(kernel.name, instruction, "constants beside machine code are not supported")
    return kernels


def _place_data(assembly: str, memory: Memory) -> dict[str, int]:
    """Put the constants beside the code into memory; their addresses by name."""
    return {
        name: memory.allocate_bytes(np.frombuffer(contents, np.uint8)) for name, contents in read_data(assembly).items()
    }


class _Kernels:
    """The kernels of a program, translated when they are dispatched for the first time."""

    def __init__(self, assembly: Sequence[str], memory: Memory) -> None:
        self._memory = memory
        self._found: dict[str, tuple[Kernel, dict[str, int]]] = {}
        self._programs: dict[str, Program] = {}
        for text in assembly:
            symbols = _place_data(text, memory)
            for kernel in read_kernels(text):
                if kernel.name in self._found:
                    raise PrepassError(f"simulator: two kernels have the name '{kernel.name}'")
                self._found[kernel.name] = kernel, symbols

    def dispatch(
        self, executable: str, export: Export, grid: Sequence[int], bindings: Sequence[int], constants: Sequence[int]
    ) -> None:
        """Run a kernel."""
        if export.name not in self._found:
            raise PrepassError(f"simulator: the assembly has no kernel '{export.name}' of '{executable}'")
        if export.subgroup_size not in (0, LANES):
            raise SimulationError(export.name, None, f"waves of {export.subgroup_size} lanes are not supported")
        if export.name not in self._programs:
            self._programs[export.name] = compile_kernel(*self._found[export.name])
        program = self._programs[export.name]
        launch(program, self._memory, grid, bindings, constants, export.workgroup_size)

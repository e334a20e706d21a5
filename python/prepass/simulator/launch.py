# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launching a kernel over a grid of workgroups.

Source: "AMDGPU Usage", sections "Initial Kernel Execution State" and "Preloaded Kernel Arguments",
https://llvm.org/docs/AMDGPUUsage.html
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prepass.simulator.errors import SimulationError
from prepass.simulator.lds import Lds
from prepass.simulator.memory import Memory
from prepass.simulator.program import Program
from prepass.simulator.waves import EXEC, LANES, POISON, SCALAR_REGISTERS, Waves
from prepass.simulator.workgroups import Workgroups

# Bytes of vector registers that run together: enough for numpy to be fast, and few enough for the cache.
_REGISTER_BYTES = 8 << 20
_MOST_WAVES = 256
_UNSUPPORTED = ("dispatch_ptr", "queue_ptr", "dispatch_id", "private_segment_size", "private_segment_buffer")


def launch(
    program: Program,
    memory: Memory,
    grid: Sequence[int],
    bindings: Sequence[int],
    constants: Sequence[int] = (),
    workgroup_size: Sequence[int] | None = None,
) -> None:
    """Run a kernel.

    Args:
      program: The kernel.
      memory: Holds the buffers.
      grid: Workgroups in x, y, z.
      bindings: The address of each buffer argument.
      constants: The value of each argument of 4 bytes passed by value.
      workgroup_size: Work items in x, y, z, when the kernel's metadata says nothing of it.

    Raises SimulationError.
    """
    kernel = program.kernel
    if kernel.metadata is None:
        raise SimulationError(kernel.name, None, "the assembly has no metadata of the kernel")
    size = tuple(kernel.metadata.workgroup_size or workgroup_size or ())
    if len(size) != 3:
        raise SimulationError(kernel.name, None, "its workgroup size is not known")
    if kernel.metadata.wavefront_size != LANES:
        raise SimulationError(kernel.name, None, f"waves of {kernel.metadata.wavefront_size} lanes are not supported")
    if kernel.directives.get("float_round_mode_32") or kernel.directives.get("float_round_mode_16_64"):
        raise SimulationError(kernel.name, None, "only rounding to the nearest even number is supported")
    arguments = _arguments(program, grid, size, bindings, constants)
    address = memory.allocate_bytes(arguments)
    waves_each = -(-int(np.prod(size)) // LANES)
    together = min(_MOST_WAVES, _REGISTER_BYTES // (program.registers * LANES * 4))
    chunk = max(1, together // waves_each)
    z, y, x = np.indices(tuple(reversed(grid))).reshape(3, -1)
    ids = np.stack([x, y, z], axis=-1)
    with np.errstate(all="ignore"):
        for first in range(0, len(ids), chunk):
            some = ids[first : first + chunk]
            lds = Lds(len(some), kernel.metadata.lds_bytes, program.grain)
            waves = _start(program, memory, lds, some, size, address, arguments)
            Workgroups(program, waves, lds).run()


def _arguments(
    program: Program, grid: Sequence[int], size: Sequence[int], bindings: Sequence[int], constants: Sequence[int]
) -> np.ndarray:
    """The kernarg segment, uint8."""
    kernel = program.kernel
    segment = np.full(kernel.metadata.kernarg_size, 0xCB, np.uint8)
    buffers, values = list(bindings), list(constants)
    hidden = {"hidden_grid_dims": 3 if grid[2] > 1 else 2 if grid[1] > 1 else 1}
    for axis, (blocks, items) in enumerate(zip(grid, size, strict=True)):
        hidden[f"hidden_block_count_{'xyz'[axis]}"] = blocks
        hidden[f"hidden_group_size_{'xyz'[axis]}"] = items
        hidden[f"hidden_remainder_{'xyz'[axis]}"] = 0
        hidden[f"hidden_global_offset_{'xyz'[axis]}"] = 0
    for argument in kernel.metadata.arguments:
        if argument.kind == "global_buffer" and argument.size == 8:
            if not buffers:
                raise SimulationError(kernel.name, None, f"{len(bindings)} buffers are too few")
            value = buffers.pop(0)
        elif argument.kind == "by_value" and argument.size == 4:
            if not values:
                raise SimulationError(kernel.name, None, f"{len(constants)} constants are too few")
            value = values.pop(0)
        elif argument.kind in hidden:
            value = hidden[argument.kind]
        elif argument.kind.startswith("hidden_"):
            continue
        else:
            raise SimulationError(kernel.name, None, f"an argument of kind {argument.kind} is not supported")
        contents = (value & ((1 << 8 * argument.size) - 1)).to_bytes(argument.size, "little")
        segment[argument.offset : argument.offset + argument.size] = np.frombuffer(contents, np.uint8)
    if buffers or values:
        raise SimulationError(kernel.name, None, f"takes {len(buffers)} buffers and {len(values)} constants fewer")
    return segment


def _start(
    program: Program,
    memory: Memory,
    lds: Lds,
    ids: np.ndarray,
    size: Sequence[int],
    address: int,
    arguments: np.ndarray,
) -> Waves:
    """The waves of some workgroups, as they are before their first instruction."""
    directives = program.kernel.directives
    for name in _UNSUPPORTED:
        if directives.get(f"user_sgpr_{name}"):
            raise SimulationError(program.kernel.name, None, f"the register for {name} is not supported")
    items = int(np.prod(size))
    each = -(-items // LANES)
    workgroup, wave = np.repeat(np.arange(len(ids)), each), np.tile(np.arange(each), len(ids))
    vector = np.full((program.registers, len(wave), LANES), POISON, np.uint32)
    scalar = np.full((SCALAR_REGISTERS, len(wave)), POISON, np.uint32)
    item = wave[:, None] * LANES + np.arange(LANES)
    x, y, z = item % size[0], item // size[0] % size[1], item // (size[0] * size[1])
    kinds = directives.get("system_vgpr_workitem_id", 0)
    vector[0] = x | (y << 10 if kinds > 0 else 0) | (z << 20 if kinds > 1 else 0)
    active = np.packbits(item < items, axis=-1, bitorder="little").view(np.uint32)
    scalar[EXEC], scalar[EXEC + 1] = active[:, 0], active[:, 1]
    for register, value in enumerate(_user_registers(program, address, arguments)):
        scalar[register] = value
    at = directives.get("user_sgpr_count", 2)
    for axis, name in enumerate("xyz"):
        if directives.get(f"system_sgpr_workgroup_id_{name}", int(name == "x")):
            scalar[at] = ids[workgroup, axis]
            at += 1
    denormals = directives.get("float_denorm_mode_32", 0) | directives.get("float_denorm_mode_16_64", 3) << 2
    scc = np.zeros(len(wave), bool)
    scratch = np.full((-(-program.kernel.metadata.private_bytes // 4), len(wave), LANES), POISON, np.uint32)
    return Waves(vector, scalar, scc, scratch, workgroup, wave, lds, memory, denormals)


def _user_registers(program: Program, address: int, arguments: np.ndarray) -> list[int]:
    directives = program.kernel.directives
    values = []
    if directives.get("user_sgpr_kernarg_segment_ptr", 1):
        values += [address & 0xFFFFFFFF, address >> 32]
    length = directives.get("user_sgpr_kernarg_preload_length", 0)
    offset = directives.get("user_sgpr_kernarg_preload_offset", 0)
    words = arguments[: len(arguments) // 4 * 4].view(np.uint32)
    return values + [int(word) for word in words[offset : offset + length]]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The price of what a workgroup executes, against loops counted by hand."""

import numpy as np
import pytest

from prepass.amdgpu.cost import loop_cost
from prepass.amdgpu.inputs import read_assembly
from prepass.errors import PrepassError
from prepass.simulator import compile_program
from prepass.simulator.executed import execute_first_workgroup

from .test_select_kernels import product

NAME = "main_dispatch_0_matmul_128x64x{}_f16xf16xf32"


def executed(terms):
    """A product of 128×terms by 64×terms by a kernel whose loop is not unrolled, and its program."""
    program = compile_program(product(128, 64, terms), kernels="direct-matmul")
    inputs = [np.zeros((size, terms), np.float16) for size in (128, 64)]
    return program, execute_first_workgroup(program, inputs, NAME.format(terms))


def test_loops_count_as_often_as_they_run():
    (program, short), (_, long) = executed(1024), executed(2048)
    (figures,) = read_assembly(program.assembly[0])
    iteration = loop_cost(figures.kernel)
    assert short.workgroups == 2
    assert short.waves == 4
    # 64×64×1024 products, two operations each: 4 waves of 16 matrix instructions of 16 cycles for each 64 terms.
    assert short.wave_cycles.mfma == 4 * (1024 // 64) * 16 * 16
    longer = (long.wave_cycles.mfma - short.wave_cycles.mfma) / iteration.wave.mfma
    assert long.wave_cycles.memory - short.wave_cycles.memory == longer * iteration.wave.memory
    # The matrix cores of four SIMDs, and one path to memory.
    assert short.cycles.mfma == short.wave_cycles.mfma / 4
    assert short.busiest_cu_cycles == short.cycles.memory == short.wave_cycles.memory


def test_a_dispatch_that_is_not_there():
    program = compile_program(product(64, 64, 16))
    inputs = [np.zeros((64, 16), np.float16)] * 2
    with pytest.raises(PrepassError, match="no dispatch of 'other'"):
        execute_first_workgroup(program, inputs, "other")

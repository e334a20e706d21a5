# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-transpose-convolutions` keeps results, and the layout of all between convolutions."""

import numpy as np
import pytest

import prepass
from prepass.checking.numerics import compare

from .conftest import LLVM_CPU
from .layout_programs import random_program


def run(text, inputs, pipeline):
    remarks = []
    program = prepass.compile(
        text, pipeline=pipeline, flags=LLVM_CPU, on_remark=lambda remark, _: remarks.append(remark.text)
    )
    return prepass.run(program, *inputs), remarks


def check(seed):
    program = random_program(seed)
    text, inputs = program.text(*program.images[-2:]), program.inputs()
    order = ["hwcf", "fhwc"][seed % 2]
    wanted, _ = run(text, inputs, None)
    found, remarks = run(text, inputs, f"builtin.module(prepass-transpose-convolutions{{filters={order}}})")
    assert any("applied" in remark for remark in remarks)
    scale = max(1.0, *(float(np.abs(array).max()) for array in wanted))
    assert compare(found, wanted).within(1e-5 * scale)


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_keep_their_results(seed):
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8, 100))
def test_more_random_programs_keep_their_results(seed):
    check(seed)

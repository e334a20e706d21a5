# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-configure-rope`: the code of rotations for gfx942, read and simulated."""

import numpy as np
import pytest

from prepass.amdgpu.inputs import compile_to_assembly
from prepass.checking.numerics import compare
from prepass.simulator import simulate

from .conftest import GFX942
from .rope_forms import FORMS, begin

PIPELINE = "builtin.module(prepass-canonicalize-rope,canonicalize,cse)"  # It brings the other along.
NARROW_TABLES = ("rotate_half", "tables_in_program", "halves_apart", "strided_slices")


@pytest.mark.parametrize(("element", "dims", "level"), [("f16", "htd", "O0"), ("bf16", "thd", "O3")])
@pytest.mark.parametrize("name", NARROW_TABLES)
def test_loads_of_16_bytes(name, element, dims, level):
    rope = begin(dims, 24, 4608, 128, element)
    source = rope.graph.module(FORMS[name](rope))
    *_, kernel = compile_to_assembly(source, pipeline=PIPELINE, flags=(*GFX942, f"--iree-opt-level={level}"))
    memory = [access for access in kernel.counts.accesses if access.space in ("global", "buffer", "flat")]
    assert {access.width for access in memory} == {16}
    assert kernel.spills == 0
    channels = kernel.counts.accesses_of("store", width=16) * 8
    assert kernel.counts.total <= 35 * channels


@pytest.mark.parametrize(
    ("name", "dims", "heads", "tokens", "channels", "element"),
    [
        ("rotate_half", "thd", 8, 6, 32, "f16"),
        ("rotate_half", "htd", 5, 7, 128, "bf16"),
        ("halves_apart", "thd", 12, 3, 64, "bf16"),
        ("strided_slices", "htd", 2, 16, 64, "f16"),
        ("strided_slices", "thd", 3, 16, 64, "bf16"),
    ],
)
def test_simulated_against_numpy(name, dims, heads, tokens, channels, element):
    """Workgroups of whole waves, of waves with idle lanes, and of loops that IREE has collapsed."""
    rope = begin(dims, heads, tokens, channels, element)
    result = FORMS[name](rope)
    inputs = [array if array.dtype != "bfloat16" else array.astype(np.float32) for array in rope.graph.inputs()]
    found = simulate(rope.graph.module(result), inputs, pipeline=PIPELINE)
    assert compare(found, [result.array]).within({"f16": 1e-2, "bf16": 5e-2}[element])

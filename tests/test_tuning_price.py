# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The prices that prepass-tune ranks by, and the check of results."""

import numpy as np
import pytest
from iree.compiler import version

import prepass
from prepass.amdgpu.inputs import compile_to_assembly
from prepass.ir.targets.gfx942 import AttentionTile
from prepass.ir.targets.gfx942_contractions import ContractionTile
from prepass.ir.targets.linalg_shape import LinalgShape
from prepass.ir.targets.tuning_table import CONTRACTION, Choice, Entry, TuningTable
from prepass.simulator import compile_program, run_program
from prepass.simulator.executed import execute_first_workgroup
from prepass.tuning import check
from prepass.tuning.check import check_config
from prepass.tuning.evaluate import evaluate
from prepass.tuning.extract import extract
from prepass.tuning.op_text import op_module
from prepass.tuning.space import picked

from .conftest import GFX942
from .test_select_kernels import product
from .tuning_cases import LARGE, request, small_op


def test_the_price_is_that_of_the_cost_model():
    """`docs/isa.md` has the figures for 1,024 scores."""
    (op,) = extract(op_module(LARGE), flags=GFX942).ops
    price = evaluate(request(op, Choice(picked(op.kind, op.shape))))
    per_1024 = 1024 / (32 * 64)
    assert [unit * per_1024 for unit in (price.mfma, price.valu, price.lds, price.memory)] == [512, 546, 328, 128]
    assert (price.workgroups, price.waves, price.spills) == (20 * 4096 // 128, 4, 0)
    # The last of the steps is behind the loop, as two stages ask for.
    assert price.iterations == 4096 // 64 - 1
    # Three of the 640 workgroups are on the fullest of 304 compute units: three waves on each SIMD.
    loop = price.iterations * price.loop_cycles * 3
    assert loop < price.cycles < loop * 1.1
    assert price.serial_cycles > price.cycles


def test_idle_simds_cost():
    """The same code with five waves, of which a SIMD has two, and with four."""
    (op,) = extract(op_module("attention:batch=304,m=1280,k1=80,k2=1280"), flags=GFX942).ops
    four, five = (evaluate(request(op, Choice(AttentionTile(waves, 16, 64)))) for waves in (10, 5))
    assert (four.workgroups, five.workgroups) == (304 * 8, 304 * 16)
    assert five.valu == pytest.approx(four.valu, rel=0.05)
    assert five.cycles > four.cycles


@pytest.mark.parametrize("choice", [Choice(), Choice(AttentionTile(4, 16, 64)), None], ids=["default", "16", "picked"])
def test_the_price_is_what_executing_it_costs(choice, tmp_path):
    """The simulator counts each instruction as often as it runs."""
    text = "attention:batch=2,m=256,k1=64,k2=512"
    (op,) = extract(op_module(text), flags=GFX942).ops
    choice = choice or Choice(picked(op.kind, op.shape))
    price = evaluate(request(op, choice))
    table = tmp_path / "table.json"
    table.write_text(TuningTable("gfx942", version.VERSION, (Entry(op.kind, op.shape, choice),)).text())
    program = compile_program(next(iter(op.dispatches)).source, start="flow", tuning_table=table)
    shapes = [(2, 256, 64), (2, 512, 64), (2, 64, 512)]
    workgroup = execute_first_workgroup(program, [np.zeros(shape, np.float16) for shape in shapes], "dispatch")
    # The code around the loop is priced apart from it, and may lean on another unit.
    assert workgroup.busiest_cu_cycles <= price.cycles <= 1.15 * workgroup.busiest_cu_cycles
    assert price.workgroups == workgroup.workgroups


def test_the_default_is_the_default():
    (dispatch,) = small_op().dispatches
    price = evaluate(request(small_op(), Choice()))
    (kernel,) = compile_to_assembly(dispatch.source, flags=GFX942, start="flow")
    assert (price.vgprs, price.lds_bytes) == (kernel.metadata.vgprs, kernel.metadata.lds_bytes)


@pytest.mark.parametrize(
    ("tile", "chains"),
    [(ContractionTile(64, 64, 32), 4), (ContractionTile(128, 64, 64, 4, 1, "MFMA_F32_32x32x8", 0), 2)],
    ids=str,
)
def test_terms_of_an_iteration(tile, chains):
    """Each wave has so many sums, and all of its MFMAs together do all of its work."""
    (op,) = extract(product(256, 256, 512), flags=GFX942).ops
    price = evaluate(request(op, Choice(tile)))
    waves = tile.row_waves * tile.column_waves
    size, terms = (int(part) for part in tile.intrinsic.split("_")[-1].split("x")[1:])
    cycles = {16: 16, 32: 32}[size]
    assert tile.rows * tile.columns // waves // size**2 == chains
    total = chains * 512 // terms * cycles
    # One part of a pipelined loop's work is around it.
    inside = price.iterations * price.mfma
    assert inside <= total
    assert (total - inside) % (chains * cycles) == 0
    assert inside == total or tile.stages == 2


CHECKED = [
    ("attention:batch=20,m=4096,k1=64,k2=4096", AttentionTile(4, 32, 64, "MFMA_F32_32x32x8", "MFMA_F32_32x32x8", 2)),
    ("attention:m=1000,k1=80,k2=1024,masked=true,element_type=bf16", AttentionTile(10, 16, 64)),
    ("attention:m=64,k1=64,k2=96,value_transposed=false", AttentionTile(4, 16, 32)),
]


@pytest.mark.parametrize(("text", "tile"), CHECKED, ids=str)
def test_right_attention_configs_pass_the_check(text, tile):
    (op,) = extract(op_module(text), flags=GFX942).ops
    check_config(Entry(op.kind, op.shape, Choice(tile)), "gfx942", GFX942)


MATMUL = ("d0, d1, d3", "d2, d3", "d0, d1, d2")
BATCH_MATMUL = ("d0, d1, d3", "d0, d2, d3", "d0, d1, d2")
SEVERAL = ("d0, d2", "d1, d2", "d1, d2", "d0, d1", "d0, d1")


@pytest.mark.parametrize(
    ("shape", "tile"),
    [
        (LinalgShape(MATMUL, (2, 4096, 1280, 640), ("bf16", "bf16", "f32")), ContractionTile(64, 32, 32, 1, 2)),
        (
            LinalgShape(BATCH_MATMUL, (20, 4096, 64, 640), ("f16", "f16", "f32")),
            ContractionTile(64, 64, 32, 2, 1, "MFMA_F32_32x32x8", 0),
        ),
        (LinalgShape(SEVERAL, (4096, 1280, 640), ("f16", "f16", "f16", "f32", "f32"), 2), ContractionTile(64, 64, 32)),
    ],
    ids=["matmul", "batch", "several"],
)
def test_right_contraction_configs_pass_the_check(shape, tile):
    check_config(Entry(CONTRACTION, shape, Choice(tile)), "gfx942", GFX942)


def test_wrong_results_do_not_pass_the_check(monkeypatch):
    def wrong(program, inputs):
        (result,) = run_program(program, inputs)
        result[0, 3, 5] += 0.1
        return (result,)

    monkeypatch.setattr(check, "run_program", wrong)
    entry = Entry(small_op().kind, small_op().shape, Choice(picked(small_op().kind, small_op().shape)))
    with pytest.raises(prepass.PrepassError, match="wrong results in the simulator: an error of"):
        check_config(entry, "gfx942", GFX942)


def test_loops_without_mfmas_are_priced():
    (op,) = extract(product(1, 4096, 8192), flags=GFX942).ops
    price = evaluate(request(op, Choice()))
    assert price.mfma == 0
    assert price.valu > 0
    assert price.cycles > price.iterations > 1

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The search of prepass-tune: the same on every executor, nothing compiled twice, and what fails does not stop it."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from iree.compiler import version

import prepass
from prepass.amdgpu.inputs import compile_to_assembly
from prepass.ir.targets.gfx942 import AttentionTile
from prepass.ir.targets.gfx942_contractions import ContractionTile
from prepass.ir.targets.gfx942_misfits import attention_misfit
from prepass.ir.targets.linalg_shape import LinalgShape
from prepass.ir.targets.tuning_table import (
    ATTENTION,
    CONTRACTION,
    CONVOLUTION,
    Choice,
    Entry,
    TuningTable,
    read_tuning_table,
)
from prepass.pipeline.registry import default_registry
from prepass.simulator import compile_program, run_program
from prepass.simulator.executed import execute_first_workgroup
from prepass.tuning import check
from prepass.tuning.check import check_config
from prepass.tuning.child import CompileProcess, Outcome
from prepass.tuning.evaluate import Request, evaluate
from prepass.tuning.executors import DaskExecutor, LocalExecutor
from prepass.tuning.extract import extract
from prepass.tuning.op_text import op_module
from prepass.tuning.price import Price
from prepass.tuning.space import configs, kernels, nearest, picked, start
from prepass.tuning.store import Store
from prepass.tuning.sweep import Sweep

from .conftest import GFX942, LLVM_CPU
from .test_configure_attention import attention_op
from .test_select_kernels import product

OP = "attention:batch=2,m=128,k1=32,k2=128"
LARGE = "attention:batch=20,m=4096,k1=64,k2=4096"
DOZEN = 12
TIMEOUT = 120
# Runs where a request loads files: in the process that is to compile it.
CRASH = "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n"
HANG = "import time\ntime.sleep(600)\n"


@pytest.fixture(scope="module")
def ops():
    return extract(op_module(OP), flags=GFX942).ops


def request(op, choice, **changes) -> Request:
    (dispatch,) = op.dispatches
    entry = Entry(op.kind, op.shape, choice)
    return dataclasses.replace(Request(dispatch.source, entry, "gfx942", GFX942), **changes)


def search(ops, path, executor, limit=DOZEN):
    with Store(path) as store, executor:
        sweep = Sweep(store, executor, "gfx942", limit, GFX942)
        return sweep, sweep.run(ops)[0]


def found(result):
    """What must not depend on the executor."""
    candidates = [(c.choice, c.rank, c.reason) for c in result.candidates]
    return candidates, result.best.choice, result.best.rank


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


def check_executors(op, limit, directory, cluster) -> None:
    ops = extract(op_module(op), flags=GFX942).ops
    sweep, here = search(ops, directory / "local", LocalExecutor(2, TIMEOUT), limit)
    assert len(here.candidates) == limit
    # One more for each that was the best and whose results were looked at.
    assert limit <= sweep.compiled == sweep.requested <= limit + 2
    assert here.picked is not None
    assert here.best.rank <= here.picked.rank
    again, same = search(ops, directory / "local", LocalExecutor(1, TIMEOUT), limit)
    assert again.compiled == 0
    assert found(same) == found(here)
    _, there = search(ops, directory / "dask", DaskExecutor(cluster, TIMEOUT), limit)
    assert found(there) == found(here)


def test_two_processes_and_a_dask_cluster_find_the_same(tmp_path, cluster):
    check_executors(OP, DOZEN, tmp_path, cluster)


@pytest.mark.slow
def test_200_configs_on_two_processes_and_a_dask_cluster(tmp_path, cluster):
    check_executors(LARGE, 200, tmp_path, cluster)


def test_a_killed_search_goes_on_where_it_was(tmp_path, program):
    command = [OP, f"--limit={DOZEN}", "--jobs=2", "-o", tmp_path / "table.json"]
    outcomes = tmp_path / "table.json.outcomes"
    path = Path(sys.executable).with_name("prepass-tune")
    first = subprocess.Popen([path, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + TIMEOUT
    while first.poll() is None and len(_keys(outcomes)) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(first.pid, signal.SIGKILL)
    assert first.wait() == -signal.SIGKILL
    before = _keys(outcomes)
    assert 3 <= len(before) < DOZEN
    assert not (tmp_path / "table.json").exists()
    second = program("prepass-tune", *command)
    assert second.returncode == 0, second.stderr
    # The compile that was under way when the process was killed may be in the file, and may not.
    after = Counter(_keys(outcomes))
    assert DOZEN <= len(after) <= DOZEN + 2
    assert set(after.values()) == {1}
    assert f"{len(after) - len(before)} compiled, {len(before)} known before".encode() in second.stdout
    assert len(read_tuning_table(tmp_path / "table.json").entries) == 1


def _keys(path: Path) -> list[str]:
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line)["key"] for line in lines]


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


def test_wrong_results_do_not_pass_the_check(ops, monkeypatch):
    def wrong(program, inputs):
        (result,) = run_program(program, inputs)
        result[0, 3, 5] += 0.1
        return (result,)

    monkeypatch.setattr(check, "run_program", wrong)
    entry = Entry(ops[0].kind, ops[0].shape, Choice(picked(ops[0].kind, ops[0].shape)))
    with pytest.raises(prepass.PrepassError, match="wrong results in the simulator: an error of"):
        check_config(entry, "gfx942", GFX942)


class Canned:
    """An executor that compiles nothing: the price is the number of keys of an iteration, and 64 are wrong."""

    def __init__(self, reverse: bool) -> None:
        self.reverse = reverse
        self.ran = 0

    def run(self, requests):
        for key, record in sorted(requests.items(), reverse=self.reverse):
            self.ran += 1
            config = Request.from_record(record).entry.choice.config
            cycles = 1000.0 / config.keys if config else 5000.0
            price = Price(cycles, cycles, *([0.0] * 6), 1, 4, 2.0, 64, 0, 0, 0)
            wrong = record["check"] and config.keys == 128
            yield key, Outcome(None, "wrong results") if wrong else Outcome(price)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def test_the_best_whose_results_are_right_is_chosen(ops, tmp_path):
    found = []
    for reverse in (False, True):
        executor = Canned(reverse)
        sweep, result = search(ops, tmp_path / str(reverse), executor, limit=100)
        assert executor.ran == sweep.compiled
        assert len(result.candidates) == 100
        wrong = [candidate for candidate in result.candidates if candidate.reason]
        assert {candidate.choice.config.keys for candidate in wrong} == {128}
        assert (result.best.choice.config.keys, result.best.checked) == (64, True)
        found.append([candidate.choice for candidate in result.candidates])
    assert found[0] == found[1]


def test_a_config_that_cannot_be_is_an_error(ops):
    with pytest.raises(prepass.PrepassError, match="its config cannot be: 48 keys do not divide 128"):
        evaluate(request(ops[0], Choice(AttentionTile(waves=2, rows=16, keys=48))))


def test_the_default_is_the_default(ops):
    (dispatch,) = ops[0].dispatches
    price = evaluate(request(ops[0], Choice()))
    (kernel,) = compile_to_assembly(dispatch.source, flags=GFX942, start="flow")
    assert (price.vgprs, price.lds_bytes) == (kernel.metadata.vgprs, kernel.metadata.lds_bytes)


@pytest.mark.parametrize(
    ("code", "timeout", "reason"),
    [(CRASH, TIMEOUT, "compiling crashed with SIGSEGV"), (HANG, 4, "it took longer than 4 s")],
)
def test_a_crash_or_a_hang_costs_one_candidate(code, timeout, reason, ops, tmp_path):
    file = tmp_path / "file.py"
    file.write_text(code)
    process = CompileProcess()
    good = request(ops[0], Choice()).record()
    assert process.evaluate(good, TIMEOUT).price is not None
    outcome = process.evaluate(request(ops[0], Choice(), files=(str(file),)).record(), timeout)
    assert outcome.price is None
    assert outcome.reason == reason
    assert process.evaluate(good, TIMEOUT).price is not None
    process.close()


def test_what_does_not_compile_has_a_reason(ops):
    process = CompileProcess()
    outcome = process.evaluate(request(ops[0], Choice(), source="module {\n  func.func\n}").record(), TIMEOUT)
    process.close()
    assert outcome.price is None
    assert "expected" in outcome.reason
    assert "\n" not in outcome.reason


def test_processes_end_with_what_started_them(ops):
    script = (
        "import json, sys, time\n"
        "from prepass.tuning.child import CompileProcess\n"
        "process = CompileProcess()\n"
        "process.evaluate(json.loads(sys.stdin.readline()), 120)\n"
        "print(process._process.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    parent.stdin.write(json.dumps(request(ops[0], Choice()).record()) + "\n")
    parent.stdin.flush()
    child = int(parent.stdout.readline())
    assert _is_running(child)
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 10
    while _is_running(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _is_running(child)


def _is_running(pid: int) -> bool:
    try:
        # A process that has ended, and that nobody has waited for, is a zombie.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_store_drops_a_line_that_was_cut_off(tmp_path):
    path = tmp_path / "outcomes"
    with Store(path) as store:
        store.add("a", "first", Outcome(None, "it failed"))
        store.add("b", "second", Outcome(None, "it failed too"))
    path.write_bytes(path.read_bytes()[:-10])
    with Store(path) as store:
        assert len(store) == 1
        assert store.get("a") == Outcome(None, "it failed")
        assert store.get("b") is None
        store.add("b", "second", Outcome(None, "again"))
    with Store(path) as store:
        assert store.get("b") == Outcome(None, "again")


def test_a_store_that_is_none_or_in_use_is_an_error(tmp_path):
    path = tmp_path / "outcomes"
    path.write_text('{"key": "a"}\n')
    with pytest.raises(prepass.PrepassError, match="line 1: it is no outcome of prepass-tune"):
        Store(path)
    path.unlink()
    with Store(path), pytest.raises(prepass.PrepassError, match="is in use by another prepass-tune"):
        Store(path)


def test_a_key_is_of_all_that_the_result_depends_on(ops):
    base = request(ops[0], Choice())
    tile = picked(ops[0].kind, ops[0].shape)
    others = [
        request(ops[0], Choice(tile)),
        dataclasses.replace(base, source=base.source + " "),
        dataclasses.replace(base, flags=(*GFX942, "--iree-opt-level=O3")),
    ]
    assert len({base.key, *(other.key for other in others)}) == 4
    assert dataclasses.replace(base, files=("x.py",)).key == base.key


def test_the_space_has_the_picked_config_and_fits():
    for text in (OP, LARGE, "attention:m=1024,k1=128,k2=1024,element_type=bf16", "attention:m=64,k1=40,k2=96"):
        (op,) = extract(op_module(text), flags=GFX942).ops
        space = configs(ATTENTION, op.shape)
        centre = picked(ATTENTION, op.shape)
        assert centre in space
        assert len(space) == len(set(space)) > 40
        assert all(attention_misfit(config, op.shape) is None for config in space)
        assert nearest(space, centre)[0] == centre


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


def test_kernels_are_candidates():
    (op,) = extract(product(128, 64, 64), flags=GFX942).ops
    assert Choice(kernel="direct-matmul") in start(op.kind, op.shape)
    price = evaluate(request(op, Choice(kernel="direct-matmul")))
    assert (price.workgroups, price.waves, price.lds_bytes) == (2, 4, 0)
    with pytest.raises(prepass.PrepassError, match="the choice was not taken: direct-matmul: M is 48"):
        (other,) = extract(product(48, 64, 64), flags=GFX942).ops
        evaluate(request(other, Choice(kernel="direct-matmul")))


def test_parameters_of_kernels_are_candidates():
    choices = [choice for choice in kernels(CONVOLUTION) if choice.kernel == "convolution"]
    assert choices[0] == Choice(kernel="convolution")
    assert len({choice.parameters for choice in choices}) == len(choices) >= 3
    source = default_registry().kernel("convolution").examples()[0].source
    (op,) = extract(source, flags=GFX942).ops
    prices = {choice: evaluate(request(op, choice)) for choice in choices}
    assert len({price.lds_bytes for price in prices.values()}) > 1
    assert min(price.cycles for price in prices.values()) < evaluate(request(op, Choice())).cycles


def test_equal_dispatches_are_one():
    once = attention_op(2, 128, 128, 64, "f16", value_transposed=True)
    first = once[once.index("  %out =") : once.index("  return")]
    second = first.replace("%out =", "%again =").replace("ins(%q,", "ins(%out,")
    twice = once.replace("  return %out", second + "  return %again")
    (op,) = extract(twice, flags=GFX942).ops
    assert list(op.dispatches.values()) == [2]


def test_dynamic_ops_are_left_out():
    source = attention_op(2, 128, 128, 64, "f16", value_transposed=True)
    source = (
        source.replace("2x128x64xf16", "2x?x64xf16")
        .replace("tensor.empty()", "tensor.empty(%rows)")
        .replace(
            "%scale =",
            "%one = arith.constant 1 : index\n %rows = tensor.dim %q, %one : tensor<2x?x64xf16>\n %scale =",
            1,
        )
    )
    found = extract(source, flags=GFX942)
    assert found.ops == []
    (reason,) = found.skipped
    assert "something else than tensors of static shape" in reason


def test_the_program_writes_a_table_that_compiles(tmp_path, program):
    table = tmp_path / "table.json"
    arguments = (OP, "--limit=4", "--jobs=2", "-o", table, f"--benchmarks={tmp_path / 'benchmarks'}", "--top=2")
    result = program("prepass-tune", *arguments)
    assert result.returncode == 0, result.stderr
    assert b"nothing was run" in result.stdout
    assert result.stderr == b""
    (entry,) = read_tuning_table(table).entries
    (kernel,) = compile_to_assembly(op_module(OP), flags=GFX942, tuning_table=table)
    assert (kernel.metadata.vgprs, kernel.metadata.lds_bytes) == (entry.price["vgprs"], entry.price["lds_bytes"])
    # Another op is added to the table.
    other = program("prepass", "tune", OP.replace("m=128", "m=64"), "--limit=1", "-o", table)
    assert other.returncode == 0, other.stderr
    assert [e.shape.m for e in read_tuning_table(table).entries] == [128, 64]
    _check_benchmarks(tmp_path / "benchmarks")


def _check_benchmarks(directory: Path) -> None:
    (folder,) = directory.iterdir()
    script = (folder / "run.sh").read_text()
    assert "have not been run on a GPU" in script
    commands = [line for line in script.splitlines() if line.startswith("iree-benchmark-module")]
    assert len(commands) >= 2
    for number, command in enumerate(commands):
        assert f"--module=candidate{number}.vmfb --function=main" in command
        assert "--device=hip" in command
        assert (folder / f"candidate{number}.vmfb").read_bytes()[:2] == b"PK"
        assert len(read_tuning_table(folder / f"candidate{number}.json").entries) == 1
    inputs = {"2x128x32xf16=@input0.bin": 2 * 128 * 32 * 2, "2x32x128xf16=@input2.bin": 2 * 32 * 128 * 2}
    for value, size in inputs.items():
        assert f"--input={value}" in commands[0]
        assert (folder / value.partition("@")[2]).stat().st_size == size
    # The dispatch is a program: stock IREE takes it from its phase on.
    assert prepass.compile(folder / "dispatch.mlir", start="flow", flags=GFX942)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected one input file or op, got 0"),
        (["none.mlir"], "cannot open input 'none.mlir': No such file or directory"),
        ([OP, "--limit=0"], "--limit takes a number from 1, not 0"),
        ([OP, "--jobs=many"], "--jobs takes a whole number, not 'many'"),
        ([OP, "--scheduler=tcp://127.0.0.1:1", "--jobs=2"], "--jobs is for this machine"),
        ([OP, "-o", "/none/table.json"], "cannot open output '/none/table.json'"),
        ([OP, "--op=conv*"], "no op to tune; ops that can be tuned are"),
        ([OP, *LLVM_CPU], "is not compiled for a target that can be tuned"),
        ([OP, "--prepass-tuning-table=x"], "-o says where this one goes"),
        (["attention:m=128,k1=32"], "attention: 'k2' is missing"),
        (["attention:m=128,k=32,k2=1"], "unknown size 'k'"),
        (["attention:m=0,k1=32,k2=1"], "'m' takes a whole number from 1, not '0'"),
        (["attention:m=8,k1=32,k2=1,element_type=i8"], "'element_type' takes one of f16, bf16, f32, not 'i8'"),
        (["attention:m=8,k1=32,k2=1,masked=maybe"], "'masked' takes true or false, not 'maybe'"),
    ],
)
def test_mistakes_are_one_line(arguments, message, program, tmp_path):
    result = program("prepass-tune", *arguments, cwd=tmp_path)
    error = result.stderr.decode()
    assert result.returncode == 1
    assert error.startswith("prepass-tune: error: ")
    assert message in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_scheduler_that_is_not_there_is_one_line(program, tmp_path, monkeypatch):
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "1s")
    result = program("prepass-tune", OP, "--scheduler=tcp://127.0.0.1:1", cwd=tmp_path)
    assert result.returncode == 1
    assert b"prepass-tune: error: cannot reach the Dask scheduler at 'tcp://127.0.0.1:1'" in result.stderr
    assert b"Traceback" not in result.stderr


def test_masked_ops_in_words():
    (op,) = extract(op_module("attention:m=64,n=32,k1=64,k2=96,masked=true,value_transposed=false"), flags=GFX942).ops
    assert (op.shape.masked, op.shape.value_transposed, op.shape.n, op.shape.k2) == (True, False, 32, 96)

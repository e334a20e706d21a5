# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The search of prepass-tune: the same on every executor, nothing compiled twice, and only what is right is chosen."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import prepass
from prepass.ir.targets.tuning_table import ATTENTION, Choice, read_tuning_table
from prepass.tuning.child import Outcome
from prepass.tuning.evaluate import NOT_TAKEN, UNPRICED, Request
from prepass.tuning.executors import DaskExecutor, LocalExecutor
from prepass.tuning.extract import extract
from prepass.tuning.op_text import op_module
from prepass.tuning.price import Price
from prepass.tuning.space import start
from prepass.tuning.store import Store
from prepass.tuning.sweep import Candidate, OpResult

from .conftest import GFX942
from .tuning_cases import DOZEN, LARGE, OP, TIMEOUT, search, small_op


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


def found(result):
    """What must not depend on the executor."""
    candidates = [(c.choice, c.rank, c.reason) for c in result.candidates]
    return candidates, result.best.choice, result.best.rank


def others() -> int:
    """Most requests beyond the limit: kernels, of which few fit, and the best whose results were looked at."""
    return len(start(ATTENTION, small_op().shape)) + 2


def check_executors(op, limit, directory, cluster) -> None:
    ops = extract(op_module(op), flags=GFX942).ops
    sweep, here = search(ops, directory / "local", LocalExecutor(2, TIMEOUT), limit)
    assert len(here.candidates) == limit
    assert limit <= sweep.compiled == sweep.requested <= limit + others()
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
    assert DOZEN <= len(after) <= DOZEN + others()
    assert set(after.values()) == {1}
    assert f"{len(after) - len(before)} compiled, {len(before)} known before".encode() in second.stdout
    assert len(read_tuning_table(tmp_path / "table.json").entries) == 1


def _keys(path: Path) -> list[str]:
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line)["key"] for line in lines]


class Canned:
    """An executor that compiles nothing: the price is the number of keys of an iteration, and 64 are wrong."""

    def __init__(self, reverse: bool) -> None:
        self.reverse = reverse
        self.ran = 0

    def run(self, requests):
        for key, record in sorted(requests.items(), reverse=self.reverse):
            self.ran += 1
            choice = Request.from_record(record).entry.choice
            if choice.kernel:
                yield key, Outcome(None, f"{NOT_TAKEN}: the head dim is another")
                continue
            config = choice.config
            cycles = 1000.0 / config.keys if config else 5000.0
            price = Price(cycles, cycles, *([0.0] * 6), 1, 4, 2.0, 64, 0, 0, 0)
            wrong = record["check"] and config.keys == 128
            yield key, Outcome(None, "wrong results") if wrong else Outcome(price)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def test_the_best_whose_results_are_right_is_chosen(tmp_path):
    found = []
    for reverse in (False, True):
        executor = Canned(reverse)
        sweep, result = search([small_op()], tmp_path / str(reverse), executor, limit=100)
        assert executor.ran == sweep.compiled
        assert len(result.candidates) == 100
        wrong = [candidate for candidate in result.candidates if candidate.reason]
        assert {candidate.choice.config.keys for candidate in wrong} == {128}
        assert (result.best.choice.config.keys, result.best.checked) == (64, True)
        found.append([candidate.choice for candidate in result.candidates])
    assert found[0] == found[1]


def test_an_op_whose_default_cannot_be_compared_is_not_in_the_table():
    default = Candidate(ATTENTION, Choice(), (Outcome(None, UNPRICED),), (1,))
    price = Price(10.0, 10.0, *([0.0] * 6), 1, 4, 2.0, 64, 0, 0, 0)
    other = Candidate(ATTENTION, Choice(kernel="fast"), (Outcome(price),), (1,))
    assert OpResult(small_op(), [default, other]).entry() is None
    failed = Candidate(ATTENTION, Choice(), (Outcome(None, "it does not compile"),), (1,))
    assert OpResult(small_op(), [failed, other]).entry().choice == Choice(kernel="fast")


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

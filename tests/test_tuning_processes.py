# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The processes that compile for prepass-tune: crashes, hangs, errors, and how they end."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from prepass.ir.targets.tuning_table import (
    Choice,
)
from prepass.tuning.child import CompileProcess

from .tuning_cases import TIMEOUT, request, small_op

# Runs where a request loads files: in the process that is to compile it.
CRASH = "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n"
HANG = "import time\ntime.sleep(600)\n"


@pytest.mark.parametrize(
    ("code", "timeout", "reason"),
    [(CRASH, TIMEOUT, "compiling crashed with SIGSEGV"), (HANG, 4, "it took longer than 4 s")],
)
def test_a_crash_or_a_hang_costs_one_candidate(code, timeout, reason, tmp_path):
    file = tmp_path / "file.py"
    file.write_text(code)
    process = CompileProcess()
    good = request(small_op(), Choice()).record()
    assert process.evaluate(good, TIMEOUT).price is not None
    outcome = process.evaluate(request(small_op(), Choice(), files=(str(file),)).record(), timeout)
    assert outcome.price is None
    assert outcome.reason == reason
    assert process.evaluate(good, TIMEOUT).price is not None
    process.close()


def test_what_does_not_compile_has_a_reason():
    process = CompileProcess()
    outcome = process.evaluate(request(small_op(), Choice(), source="module {\n  func.func\n}").record(), TIMEOUT)
    process.close()
    assert outcome.price is None
    assert "expected" in outcome.reason
    assert "\n" not in outcome.reason


def test_processes_end_with_what_started_them():
    script = (
        "import json, sys, time\n"
        "from prepass.tuning.child import CompileProcess\n"
        "process = CompileProcess()\n"
        "process.evaluate(json.loads(sys.stdin.readline()), 120)\n"
        "print(process._process.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    parent.stdin.write(json.dumps(request(small_op(), Choice()).record()) + "\n")
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

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A process that evaluates one request after the other, so that a crash or a hang of the compiler costs one of them.

It reads a request, a line of JSON, from standard input, and writes an outcome, a line of JSON, to standard output:
`python -m prepass.tuning.child`. A process for each request would be simpler, and spend half of its time on starting.
"""

from __future__ import annotations

import json
import os
import queue
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from prepass.checking.child import describe_end
from prepass.errors import PrepassError
from prepass.ir.records import from_record, to_record
from prepass.tuning.price import Price

# What a process says of itself before it ends, at most.
_LOG_BYTES = 16384


@dataclass(frozen=True)
class Outcome:
    """What became of a request.

    Attributes:
      price: None where it failed.
      reason: Why it failed, in one line.
      seconds: Wall time.
    """

    price: Price | None
    reason: str = ""
    seconds: float = 0.0

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        price = to_record(self.price) if self.price else None
        return {"price": price, "reason": self.reason, "seconds": self.seconds}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Outcome:
        """The outcome that a record spells. Raises PrepassError."""
        price = record["price"]
        return cls(from_record(Price, price) if price else None, record["reason"], record["seconds"])


class CompileProcess:
    """A process that evaluates requests; it is started when it is first needed, and again when it has ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (It is open for as long as there are processes.)
        self._closed = False

    def evaluate(self, request: dict[str, Any], timeout: float) -> Outcome:
        """The outcome of a request's record. A request that crashes the process, or takes too long, has failed."""
        started = time.monotonic()
        process = self._running()
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            line = _read_line(process.stdout.fileno(), started + timeout)
        except TimeoutError:
            self._end()
            return Outcome(None, f"it took longer than {timeout:g} s", round(time.monotonic() - started, 3))
        except BrokenPipeError:
            line = b""
        seconds = round(time.monotonic() - started, 3)
        if line:
            answer = json.loads(line)
            return Outcome.from_record({**answer, "seconds": seconds})
        code = process.wait()
        self._log.seek(0)
        said = self._log.read()[-_LOG_BYTES:].decode(errors="replace")
        self._end()
        return Outcome(None, describe_end(code, said, "compiling"), seconds)

    def close(self) -> None:
        """End the process; what it is evaluating fails."""
        self._closed = True
        self._end()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._closed:
            raise PrepassError("the process is closed")
        if self._process is None:
            self._log.seek(0)
            self._log.truncate()
            command = [sys.executable, "-m", __name__]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._log)
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()


def _read_line(descriptor: int, deadline: float) -> bytes:
    """A line from a pipe, or nothing where it ends. Raises TimeoutError."""
    line = b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError
        part = os.read(descriptor, 65536)
        if not part:
            return b""
        line += part
    return line


def _serve() -> None:
    # What the compiler prints is no answer.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    requests: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_receive, args=(requests.put,), daemon=True).start()
    while True:
        outcome = _evaluate(json.loads(requests.get()))
        answers.write(json.dumps(outcome.record()) + "\n")
        answers.flush()


def _receive(put: Callable[[str], None]) -> None:
    """Hand on requests; end the process with its parent, even in the middle of a compilation."""
    for line in sys.stdin:
        put(line)
    os._exit(0)


def _evaluate(record: dict[str, Any]) -> Outcome:
    # Imported here: the parent does without the compiler.
    from prepass.pipeline.registry import default_registry
    from prepass.tuning.evaluate import Request, evaluate

    try:
        request = Request.from_record(record)
        for path in request.files:
            if path not in map(str, default_registry().files):
                default_registry().add_file(path)
        return Outcome(evaluate(request))
    except PrepassError as error:
        return Outcome(None, str(error).partition("\n")[0])


if __name__ == "__main__":
    _serve()

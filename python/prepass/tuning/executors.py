# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where requests are evaluated: in processes on this machine, or on the workers of a Dask cluster.

Both end what they started when they are closed, and both give outcomes as they come, in any order.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from types import TracebackType
from typing import Any, Protocol

from iree.compiler import version as compiler_version

from prepass.errors import PrepassError
from prepass.tuning.child import CompileProcess, Outcome

Records = Mapping[str, dict[str, Any]]

_CONNECT_SECONDS = 15
_thread = threading.local()


class Executor(Protocol):
    """Evaluates requests."""

    def run(self, requests: Records) -> Iterator[tuple[str, Outcome]]:
        """The outcomes of requests' records, each with its key, as they come."""
        ...

    def __enter__(self) -> Executor: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


class LocalExecutor:
    """So many processes on this machine, each with a thread that feeds it."""

    def __init__(self, jobs: int, timeout: float) -> None:
        self._timeout = timeout
        self._processes: list[CompileProcess] = []
        self._threads = ThreadPoolExecutor(jobs, "prepass-tune", initializer=self._start)

    def run(self, requests: Records) -> Iterator[tuple[str, Outcome]]:
        """See `Executor.run`."""
        keys = {self._threads.submit(self._evaluate, record): key for key, record in requests.items()}
        for future in as_completed(keys):
            yield keys[future], future.result()

    def __enter__(self) -> LocalExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in self._processes:
            process.close()
        self._threads.shutdown()

    def _start(self) -> None:
        _thread.process = CompileProcess()
        self._processes.append(_thread.process)

    def _evaluate(self, record: dict[str, Any]) -> Outcome:
        return _thread.process.evaluate(record, self._timeout)


class DaskExecutor:
    """The workers of a Dask cluster that runs already; each thread of a worker has a process of its own.

    The workers need prepass, and the version of IREE that is installed here.
    """

    def __init__(self, address: str, timeout: float) -> None:
        """Connect to a scheduler. Raises PrepassError when it cannot be reached, or its workers do not fit."""
        try:
            import distributed
        except ImportError:
            raise PrepassError("--scheduler needs Dask: pip install 'prepass[tune]'") from None
        if not re.search(r":\d+$", address):
            # Dask finds this out only when it has tried for a while, and leaves a client behind that cannot be closed.
            raise PrepassError(f"--scheduler takes an address with a port, as tcp://host:8786, not '{address}'")
        self._distributed = distributed
        self._timeout = timeout
        try:
            self._client = distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise PrepassError(f"cannot reach the Dask scheduler at '{address}': {_line(error)}") from None
        try:
            self._check_workers(address)
        except BaseException:
            self._client.close()
            raise

    def run(self, requests: Records) -> Iterator[tuple[str, Outcome]]:
        """See `Executor.run`."""
        submit = self._client.submit
        # The scheduler forgets a key once its future is gone, so a key can be computed again.
        futures = {
            submit(evaluate_on_worker, record, self._timeout, key=f"prepass-tune-{key}", retries=0): key
            for key, record in requests.items()
        }
        for future in self._distributed.as_completed(futures, loop=self._client.loop):
            yield futures[future], _outcome(future)

    def __enter__(self) -> DaskExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def _check_workers(self, address: str) -> None:
        try:
            versions = self._client.run(worker_version)
        except Exception as error:
            raise PrepassError(f"the workers of '{address}' cannot run prepass: {_line(error)}") from None
        if not versions:
            raise PrepassError(f"the Dask scheduler at '{address}' has no workers")
        for worker, version in versions.items():
            if version != compiler_version.VERSION:
                message = f"worker {worker} has IREE {version}, and {compiler_version.VERSION} is installed here"
                raise PrepassError(message)


def worker_version() -> str:
    """The version of IREE where it is called."""
    return compiler_version.VERSION


def evaluate_on_worker(record: dict[str, Any], timeout: float) -> dict[str, Any]:
    """The outcome's record, evaluated in a process that the calling thread keeps for the next request."""
    if not hasattr(_thread, "process"):
        _thread.process = CompileProcess()
    return _thread.process.evaluate(record, timeout).record()


def _outcome(future: Any) -> Outcome:
    if future.status == "finished":
        return Outcome.from_record(future.result())
    error = future.exception() if future.status == "error" else None
    return Outcome(None, f"the worker failed: {_line(error)}" if error else f"the task was {future.status}")


def _line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__

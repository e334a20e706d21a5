# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Outcomes on disk, a line of JSON each: what has been evaluated is not evaluated again, whatever ended the program."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType

from prepass.errors import PrepassError
from prepass.tuning.child import Outcome

try:
    import fcntl
except ImportError:  # Not on Windows, where nobody is kept from writing twice.
    fcntl = None  # type: ignore[assignment]


class Store:
    """Outcomes by the key of their request, in memory and in a file that is only ever added to.

    A line is on the disk before the next outcome is looked at. The last line may be
    cut off, where the program or the machine has ended in the middle of it; it is
    dropped.
    """

    def __init__(self, path: str | Path) -> None:
        """Open, or make, the file. Raises PrepassError when it is none of these, or when another program has it."""
        self.path = Path(path)
        self._outcomes: dict[str, Outcome] = {}
        try:
            self._file = open(self.path, "a+b")  # noqa: SIM115 (It is open for as long as the store is.)
        except OSError as error:
            raise PrepassError(f"cannot open '{path}': {error.strerror}") from None
        try:
            self._lock()
            self._read()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()

    def __len__(self) -> int:
        return len(self._outcomes)

    def get(self, key: str) -> Outcome | None:
        """The outcome of a request, None where it has not been evaluated."""
        return self._outcomes.get(key)

    def add(self, key: str, what: str, outcome: Outcome) -> None:
        """Keep an outcome. `what` says in words what it is of."""
        self._outcomes[key] = outcome
        self._file.write(json.dumps({"key": key, "what": what, **outcome.record()}).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _lock(self) -> None:
        try:
            if fcntl:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise PrepassError(f"'{self.path}' is in use by another prepass-tune") from None

    def _read(self) -> None:
        self._file.seek(0)
        contents = self._file.read()
        whole = contents.rfind(b"\n") + 1
        for number, line in enumerate(contents[:whole].splitlines(), 1):
            try:
                record = json.loads(line)
                self._outcomes[record["key"]] = Outcome.from_record(record)
            except (ValueError, KeyError, TypeError, PrepassError):
                message = f"'{self.path}', line {number}: it is no outcome of prepass-tune; remove the file"
                raise PrepassError(message) from None
        if whole < len(contents):
            self._file.truncate(whole)

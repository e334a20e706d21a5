# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What C++ code of the compiler prints, which Python's `sys.stderr` does not see."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from typing import IO


@contextlib.contextmanager
def captured_stderr() -> Iterator[IO[str]]:
    """Redirect the process's standard error, C++ output included, to a temporary file."""
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile("w+") as captured:
        os.dup2(captured.fileno(), 2)
        try:
            yield captured
        finally:
            os.dup2(saved, 2)
            os.close(saved)

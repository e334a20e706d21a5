# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fixtures for all tests."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from iree.compiler import ir
from iree.compiler.api import Session

LLVM_CPU = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)
GFX942 = ("--iree-hal-target-device=hip", "--iree-rocm-target=gfx942")

ADD = """\
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %a, %b : tensor<4xf32>
  %1 = arith.addf %a, %b : tensor<4xf32>
  %2 = arith.mulf %0, %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}
"""

# IR of real models that is kept outside of the repository; tests that need it skip where it is not.
CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"


@pytest.fixture
def context() -> ir.Context:
    """A context with every dialect of IREE."""
    return Session().context


@pytest.fixture
def add_file(tmp_path: Path) -> Path:
    """A file with a small module."""
    path = tmp_path / "add.mlir"
    path.write_text(ADD)
    return path


@pytest.fixture
def program() -> Callable[..., subprocess.CompletedProcess]:
    """Runs an installed program as a user does: `program("prepass-opt", "x.mlir")`."""

    def run(name: str, *arguments: object, stdin: str | bytes = b"", **options) -> subprocess.CompletedProcess:
        command = [os.path.join(os.path.dirname(sys.executable), name), *map(str, arguments)]
        data = stdin.encode() if isinstance(stdin, str) else stdin
        return subprocess.run(command, input=data, capture_output=True, check=False, **options)

    return run


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The corpus of real IR; skips where there is none."""
    if not CORPUS.is_dir():
        pytest.skip("the corpus of model IR is not on this machine")
    return CORPUS

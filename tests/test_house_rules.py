# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every pass has its documentation, its lit file and its numeric test; generated files are up to date."""

import importlib.util
import inspect
from pathlib import Path

import pytest

from prepass.passes import PASSES
from prepass.pipeline.registry import default_registry

ROOT = Path(__file__).resolve().parent.parent


def generate():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_has_all_its_parts(name):
    stem = name.removeprefix("prepass-").replace("-", "_")
    pass_class = default_registry().find_pass(name)
    assert pass_class.__module__ == f"prepass.passes.{stem}"
    assert (ROOT / "lit_tests" / "passes" / f"{stem}.mlir").is_file()
    assert (ROOT / "tests" / f"test_{stem}.py").is_file()
    doc = inspect.getmodule(pass_class).__doc__
    for part in ("Before:", "After:", "Left alone when"):
        assert part in doc
    assert pass_class.__doc__


@pytest.mark.parametrize(("path", "make"), generate().FILES.items(), ids=lambda value: getattr(value, "name", ""))
def test_generated_files_are_up_to_date(path, make):
    assert path.read_text() == make(), "run docs/generate.py"

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A pass says what it rewrites before it does, so that a bisection can stop it there and have a right program."""

from pathlib import Path

import pytest
from iree.compiler import ir
from iree.compiler.api import Session

from prepass.ir.targets import Target
from prepass.passes import PASSES
from prepass.pipeline.control import Control
from prepass.pipeline.manager import run_pipeline
from prepass.pipeline.registry import default_registry
from prepass.pipeline.resolve import resolve_pipeline
from prepass.tools.split import split_source

LIT = Path(__file__).resolve().parent.parent / "lit_tests" / "passes"
TARGETS = [Target("rocm", "gfx942"), Target("llvm-cpu", "", 64)]


def lines_after(source, pipeline, control):
    """The lines of a module behind a pipeline, in any order: constants may come to stand in another one."""
    with Session().context as context, ir.Location.unknown():
        module = ir.Module.parse(source)
        resolved = resolve_pipeline(f"builtin.module({pipeline})", default_registry(), context)
        run_pipeline(resolved, module.operation, control=control, on_remark=lambda *_: None)
        return sorted(str(module).splitlines())


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@pytest.mark.parametrize("name", PASSES)
def test_a_pass_that_may_rewrite_nothing_changes_nothing(name, target):
    path = LIT / f"{name.removeprefix('prepass-').replace('-', '_')}.mlir"
    for part in split_source(path.read_bytes()):
        # What is built and not used yet goes with what else is dead.
        clean = "canonicalize,cse"
        expected = lines_after(part.decode(), clean, Control(target=target))
        assert lines_after(part.decode(), f"{name},{clean}", Control({name: 0}, target)) == expected

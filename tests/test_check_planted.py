# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-check` finds an error planted in any pass whose rewrites a CPU can run, and names pass and op."""

import re
from pathlib import Path

import pytest
from iree.compiler import ir
from iree.compiler.api import Session

from prepass.ir.targets import Target
from prepass.passes import PASSES
from prepass.pipeline.base import PREPROCESSING, RemarkKind
from prepass.pipeline.control import Control
from prepass.pipeline.manager import run_pipeline
from prepass.pipeline.registry import default_registry
from prepass.pipeline.resolve import resolve_pipeline
from prepass.tools.split import split_source

from .test_check import planted

LIT = Path(__file__).resolve().parent.parent / "lit_tests" / "passes"
# The case in each pass's lit file, and the target that is rewritten for where the CPU is left alone.
CASES = {
    "decompose-transposed-convolutions": (1, ""),
    "fold-padding": (2, ""),
    "merge-constants": (0, ""),
    "strip-assertions": (2, ""),
    "guard-padding": (2, "gfx942"),
    "pad-output-channels": (0, "gfx942"),
    "unfold-patches": (1, ""),
    "vectorize-lookups": (3, ""),
    "canonicalize-rope": (0, ""),
    "configure-attention": (0, ""),
    "decompose-attention": (0, ""),
    "transpose-attention-keys": (0, ""),
    "pad-attention-keys": (2, "gfx942"),
    "promote-accumulators": (2, ""),
    "simplify-casts": (0, ""),
    "split-gated-projections": (0, ""),
    "fold-unit-dims": (6, ""),
    "fold-contraction-layouts": (1, "gfx942"),
    "fuse-horizontal-contractions": (11, "gfx942"),
    "raise-attention": (1, ""),
    "transpose-convolutions": (4, ""),
}


def first_rewrite(path, name, rewrite_for):
    """The function that a pass rewrites first, and where."""
    context = Session().context
    with context, ir.Location.unknown():
        module = ir.Module.parseFile(str(path))
        pipeline = resolve_pipeline(f"builtin.module({name})", default_registry(), context)
        control = Control(target=Target("rocm", rewrite_for) if rewrite_for else Target("llvm-cpu", "", 64))
        found = []

        def on_remark(remark, _):
            if remark.kind is RemarkKind.APPLIED:
                found.append(remark)

        run_pipeline(pipeline, module.operation, control=control, on_remark=on_remark)
    line = int(found[0].location.split(":")[-2])
    before = path.read_text().splitlines()[:line]
    return re.findall(r"func\.func @(\w+)", "\n".join(before))[-1], found[0].location


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_an_error_in_any_pass_is_found(name, tmp_path, program):
    number, rewrite_for = CASES[name]
    path = tmp_path / f"{name}.mlir"
    path.write_bytes(split_source((LIT / f"{name.replace('-', '_')}.mlir").read_bytes())[number])
    function, location = first_rewrite(path, f"prepass-{name}", rewrite_for)
    flags = [f"--function={function}", *([f"--rewrite-for={rewrite_for}"] if rewrite_for else [])]
    lines, command = planted(program, path, tmp_path, f"cse,planted-{name},canonicalize", *flags)
    where = next(number for number, line in enumerate(lines) if line.startswith("first difference"))
    assert lines[where].startswith(f"first difference: planted-{name}, rewrite 1 of "), lines
    assert lines[where + 1].startswith(f"  {location}: "), lines
    assert command.startswith(f"prepass-check {tmp_path / 'out' / 'reproducer.mlir'} ")


def test_only_passes_whose_rewrites_are_code_for_gfx942_are_left_out():
    left_out = {name for name in PASSES if name.removeprefix("prepass-") not in CASES}
    assert left_out == {
        "prepass-configure-rope", "prepass-configure-contractions", "prepass-select-kernels", "prepass-fuse-query-rope"
    }  # fmt: skip
    phases = {name: default_registry().find_pass(name).phase for name in left_out}
    assert [name for name, phase in phases.items() if phase == PREPROCESSING] == ["prepass-fuse-query-rope"]

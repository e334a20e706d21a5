# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Presets: a named pipeline with its flags, where what the user gives wins."""

import numpy as np
import pytest

import prepass
from prepass.pipeline.named import ROCM, Flag, NamedPipeline, Step
from prepass.pipeline.registry import default_registry

from .conftest import ADD, LLVM_CPU
from .test_programs import LOAD, check_one_line

ONES = np.ones(4, np.float32)
NAMED = NamedPipeline(
    "test-flags",
    "A step and two flags.",
    (Step("cse", "Equal ops first."),),
    (Flag("--iree-opt-level=O3", "Fast."), Flag("--iree-opt-data-tiling=false", "Plain.")),
)


@pytest.mark.parametrize("given", ["--iree-opt-level=O1", "-iree-opt-level=O1", "--iree-opt-level"])
def test_a_flag_of_the_user_wins(given):
    assert NAMED.flags_beside([given, "O1"]) == ["--iree-opt-data-tiling=false"]
    assert NAMED.flags_beside(["--iree-opt-levels=1"]) == ["--iree-opt-level=O3", "--iree-opt-data-tiling=false"]


@pytest.mark.parametrize(
    ("given", "count"),
    [
        (["--iree-hal-target-device=hip"], 1),
        (["-iree-hal-target-device", "hip"], 1),
        (["--iree-hal-target-device=gpu=hip[0]"], 1),
        (["--iree-hal-target-backends=rocm"], 1),
        (["--iree-hal-target-device=local", "hip"], 0),
        ([], 0),
    ],
)
def test_flags_of_a_device_are_for_it_alone(given, count):
    named = NamedPipeline("test-devices", "", (), (Flag("--iree-x", "Only there.", ROCM),))
    assert len(named.flags_beside(given)) == count


@pytest.mark.parametrize("name", default_registry().pipeline_names())
def test_every_preset_compiles_and_has_reasons(name):
    named = default_registry().pipeline(name)
    assert all(reason for reason in (*(s.reason for s in named.steps), *(f.reason for f in named.flags)))
    (result,) = prepass.run(prepass.compile(ADD, preset=name, flags=LLVM_CPU), ONES, ONES)
    np.testing.assert_array_equal(result, 4 * ONES)


@pytest.mark.parametrize("name", default_registry().pipeline_names())
def test_flags_of_presets_leave_hooks_possible(name):
    """A flag that the compiler keeps per process would refuse them."""
    seen = []
    prepass.compile(ADD, preset=name, flags=LLVM_CPU, hooks={"flow": lambda _: seen.append("flow")})
    assert seen == ["flow"]


def test_compile_takes_presets(program, add_file):
    def compiled(*arguments):
        preset = ("--prepass-preset=test-pipeline", "--prepass-remarks=all", "--compile-to=preprocessing")
        return program("prepass-compile", add_file, *LLVM_CPU, LOAD, *preset, *arguments)

    result = compiled()
    assert result.returncode == 0, result.stderr
    assert result.stdout.count(b"arith.addf") == result.stderr.count(b"test-report-adds") == 1
    assert b"loc(" in result.stdout
    for own in ("cse", "test-report-adds"):
        result = compiled(f"--iree-preprocessing-pass-pipeline=builtin.module({own})", "--mlir-print-debuginfo=false")
        assert result.returncode == 0, result.stderr
        assert (b"test-report-adds" in result.stderr) == (own == "test-report-adds")
        assert b"loc(" not in result.stdout
    # Given twice, a flag would be an error of another kind.
    assert b"'O9' value not a valid" in compiled("--iree-opt-level=O9").stderr


def test_unknown_presets_are_one_line(program, add_file):
    result = program("prepass-compile", add_file, *LLVM_CPU, "--prepass-preset=prepass-defualt")
    check_one_line(result, "unknown pipeline 'prepass-defualt'; did you mean 'prepass-default'?")
    with pytest.raises(prepass.PrepassError, match="unknown pipeline 'nothing'; there are prepass-default, "):
        prepass.compile(ADD, preset="nothing", flags=LLVM_CPU)

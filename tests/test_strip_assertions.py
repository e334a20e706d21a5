# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-strip-assertions` keeps results, and merges what assertions kept apart."""

import numpy as np
import pytest

import prepass
from prepass.amdgpu.inputs import compile_to_assembly
from prepass.checking.statistics import ProgramStatistics
from prepass.ir.match import walk_ops

from .conftest import GFX942, LLVM_CPU
from .lookup_cases import LookupCase

STRIP = "builtin.module(prepass-strip-assertions)"
ASSUME = "builtin.module(prepass-strip-assertions{mode=assume})"
LEVELS = ["O0", "O3"]

CASES = [
    LookupCase(),
    LookupCase(ids="i32", element="f16"),
    LookupCase(dynamic=True),
    LookupCase(fix_up=True),
    LookupCase(fix_up=True, dynamic=True, ids="i32"),
    LookupCase(rows=1, columns=1),
    LookupCase(ids="i8", rows=127),
]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("pipeline", [STRIP, ASSUME], ids=["strip", "assume"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_results_stay_the_same(case, pipeline, level):
    left = []
    hooks = {"preprocessing": lambda module: left.extend(map(str, walk_ops(module, "cf.assert")))}
    flags = (*LLVM_CPU, f"--iree-opt-level={level}")
    program = prepass.compile(case.module(), pipeline=pipeline, flags=flags, hooks=hooks)
    assert not left
    table, ids = case.inputs()
    (result,) = prepass.run(program, table, ids)
    np.testing.assert_array_equal(result, table[ids])


def test_the_compiler_drops_assertions_in_kernels_anyway():
    """`scope=linalg` takes nothing away: an index that is out of range is not reported."""
    case = LookupCase()
    table, ids = case.inputs()
    program = prepass.compile(case.module(), flags=(*LLVM_CPU, "--iree-opt-level=O0"))
    (result,) = prepass.run(program, table, np.full_like(ids, case.rows))
    assert result.shape == (case.count, case.columns)


def test_assertions_of_functions_fail_at_run_time():
    """The user's own assertion is one that is worth keeping."""
    source = """\
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %size = tensor.dim %x, %c0 : tensor<?xf32>
  %ok = arith.cmpi eq, %size, %c4 : index
  cf.assert %ok, "four, please"
  %y = arith.addf %x, %x : tensor<?xf32>
  return %y : tensor<?xf32>
}
"""
    for pipeline in (
        "builtin.module(prepass-strip-assertions{scope=linalg})",
        'builtin.module(prepass-strip-assertions{message="^index must"})',
        "builtin.module(prepass-strip-assertions{keep=please})",
    ):
        program = prepass.compile(source, pipeline=pipeline, flags=LLVM_CPU)
        prepass.run(program, np.ones(4, np.float32))
        with pytest.raises(prepass.PrepassError, match="four, please"):
            prepass.run(program, np.ones(3, np.float32))


@pytest.mark.parametrize("level", LEVELS)
def test_equal_lookups_of_sdxl_clip_are_hoisted_once(corpus, level):
    statistics = ProgramStatistics()
    path = corpus / "seeds" / "sdxl_clip_assertions.mlir"
    flags = (*GFX942, f"--iree-opt-level={level}")
    prepass.compile(path, pipeline=STRIP, flags=flags, hooks=statistics.hooks)
    assert (statistics.dispatches, statistics.initializer_dispatches) == (3, 2)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["clip1_sdpa", pytest.param("clip2_eager", marks=pytest.mark.slow)])
def test_clip_has_no_assertions_and_no_more_dispatches(corpus, name, level):
    counts, left = [], []
    flags = (*GFX942, f"--iree-opt-level={level}", "--iree-opt-strip-assertions")
    for pipeline in (None, STRIP, ASSUME):
        statistics = ProgramStatistics()
        hooks = {"flow": statistics.hooks["flow"]}
        if pipeline is not None:
            hooks["preprocessing"] = lambda module: left.append(len(walk_ops(module, "cf.assert")))
        prepass.compile(corpus / "models" / f"{name}.mlir", pipeline=pipeline, flags=flags, hooks=hooks)
        counts.append((statistics.dispatches, statistics.initializer_dispatches))
    assert left == [0, 0]
    assert all(main <= counts[0][0] and init <= counts[0][1] for main, init in counts[1:]), counts


@pytest.mark.parametrize("level", LEVELS)
def test_a_small_clip_computes_the_same_bits(corpus, level):
    path = corpus / "attention" / "hf" / "clip_text.mlir"
    arrays = np.load(path.with_suffix(".npz"))
    inputs = [arrays[name] for name in sorted(arrays) if name.startswith("in")]
    flags = (*LLVM_CPU, f"--iree-opt-level={level}")
    results = []
    for pipeline in (None, STRIP, ASSUME):
        program = prepass.compile(path, pipeline=pipeline, flags=flags, start="abi")
        results.append(prepass.run(program, *inputs))
    for result in results[1:]:
        for got, wanted in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(got, wanted)
    np.testing.assert_allclose(results[1][0], arrays["out0"], atol=1e-4)


def test_an_assumption_removes_the_fix_up_of_negative_indices():
    source = LookupCase(rows=49408, columns=768, count=128, element="f16", fix_up=True).module()
    (stock,) = compile_to_assembly(source, flags=GFX942)
    (assumed,) = compile_to_assembly(source, pipeline=ASSUME, flags=GFX942)

    def fix_ups(kernel):
        """A compare and a select of each half of the index."""
        return sum(n for name, n in kernel.counts.names.items() if name.startswith(("v_cmp", "v_cndmask")))

    assert fix_ups(stock) > 0
    assert fix_ups(assumed) == 0
    assert assumed.counts.total <= 40

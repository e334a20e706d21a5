# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every instruction that the simulator knows is executed in a test; what it does not know is named."""

import numpy as np
import pytest

from prepass.simulator import SimulationError, run_kernel
from prepass.simulator.coverage import GROUPS, read_coverage
from prepass.simulator.indexing import INDEXING
from prepass.simulator.instructions import FLOW, KNOWN
from prepass.simulator.scalar import SCALAR
from prepass.tools.simulate import main

from .simulator_kernels import exchange, kernel_text

# Groups whose own test compares them with what is tested.
_CHECKED = {
    "vector, integers", "vector, floating point", "vector, masks", "vector, comparisons", "packed", "matrix",
    "dot products", "between lanes", "global memory", "local memory", "scratch",
}  # fmt: skip


def test_every_known_instruction_is_in_a_group():
    assert {name for names in GROUPS.values() for name in names} == KNOWN
    assert set(GROUPS) == _CHECKED | {"scalar", "branches, barriers", "indexed registers"}


def test_remaining_scalar_instructions_are_tested():
    """Those that test_simulator_scalar.py goes through one by one."""
    tested = {f"s_{name}_i32" for name in ("movk", "addk", "mulk")}
    saved = ("and", "or", "xor", "andn2", "orn2", "andn1", "orn1", "nand", "nor", "xnor")
    tested |= {f"s_{name}_saveexec_b64" for name in saved}
    tested |= {"s_cselect_b32", "s_cselect_b64", "s_cmov_b32", "s_cmov_b64"}
    tested |= {"s_bitset0_b32", "s_bitset1_b32", "s_bitcmp0_b32", "s_bitcmp1_b32"}
    tested |= {"s_nop", "s_setprio", "s_sleep", "s_waitcnt", "s_icache_inv", "s_dcache_inv", "s_dcache_wb"}
    tested |= {"s_setreg_imm32_b32", "s_getpc_b64"}
    assert {name for name in SCALAR if not name.startswith("s_cmp")} == tested
    assert set(INDEXING) == {"s_set_gpr_idx_on", "s_set_gpr_idx_off"}


def branching(setup, branch):
    """Stores 1 where the branch is taken and 2 where it is not."""
    return kernel_text(
        f"""\
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	s_mov_b64 s[10:11], exec
	v_mov_b32_e32 v2, 1
	{setup}
	{branch} .LBB0_1
	s_mov_b64 exec, s[10:11]
	v_mov_b32_e32 v2, 2
.LBB0_1:
	s_mov_b64 exec, s[10:11]
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v2, s[4:5]
	s_endpgm""",
        buffers=1,
    )


_BRANCHES = {
    "s_branch": ("s_nop 0", None),
    "s_cbranch_scc0": ("s_cmp_eq_u32 s2, 1", "s_cmp_eq_u32 s2, 0"),
    "s_cbranch_scc1": ("s_cmp_eq_u32 s2, 0", "s_cmp_eq_u32 s2, 1"),
    "s_cbranch_vccz": ("s_mov_b64 vcc, 0", "s_brev_b64 vcc, 1"),
    "s_cbranch_vccnz": ("s_mov_b64 vcc, -1", "s_mov_b64 vcc, 0"),
    "s_cbranch_execz": ("s_mov_b64 exec, 0", "s_nop 0"),
    "s_cbranch_execnz": ("s_nop 0", "s_mov_b64 exec, 0"),
}


def test_every_branch_is_tested():
    assert set(FLOW) == {*_BRANCHES, "s_barrier", "s_endpgm"}


@pytest.mark.parametrize("branch", _BRANCHES)
def test_branches(branch):
    for setup, wanted in zip(_BRANCHES[branch], (1, 2), strict=True):
        if setup:
            text = branching(setup.replace("s_brev_b64 vcc, 1", "s_mov_b32 vcc_hi, 1"), branch)
            (result,) = run_kernel(text, [np.zeros(64, np.int32)], (1, 1, 1))
            assert (result == wanted).all()


TABLE = """\
	.type	.Ltable,@object
	.section	.rodata,"a",@progbits
	.p2align	4, 0x0
.Ltable:
	.long	7
	.short	8, 9
	.byte	1
	.zero	3
	.quad	0x100000002
	.size	.Ltable, 20
"""


def test_constants_beside_the_code():
    code = """\
	s_getpc_b64 s[6:7]
	s_add_u32 s6, s6, .Ltable@rel32@lo+4
	s_addc_u32 s7, s7, .Ltable@rel32@hi+12
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	s_load_dwordx4 s[8:11], s[6:7], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	s_waitcnt lgkmcnt(0)
	v_mov_b32_e32 v2, s8
	v_mov_b32_e32 v3, s9
	v_mov_b32_e32 v4, s10
	v_mov_b32_e32 v5, s11
	v_lshlrev_b32_e32 v1, 4, v0
	global_store_dwordx4 v1, v[2:5], s[4:5]
	s_endpgm"""
    text = kernel_text(code, buffers=1) + TABLE
    (result,) = run_kernel(text, [np.zeros((64, 4), np.uint32)], (1, 1, 1))
    assert (result == [7, 8 | 9 << 16, 1, 2]).all()
    with pytest.raises(SimulationError, match="no constant"):
        run_kernel(kernel_text(code, buffers=1), [np.zeros((64, 4), np.uint32)], (1, 1, 1))


def test_coverage_names_what_is_not_known(tmp_path):
    (tmp_path / "good.rocmasm").write_text(exchange())
    coverage = read_coverage([tmp_path])
    assert (coverage.files, coverage.kernels, coverage.different_kernels) == (1, 1, 1)
    assert coverage.executed == set(coverage.families)
    assert not coverage.unknown
    (tmp_path / "bad.rocmasm").write_text(exchange(["s_waitcnt lgkmcnt(0)", "s_barrier", "v_fancy_f32 v9, v9"]))
    coverage = read_coverage([tmp_path])
    assert set(coverage.families) - coverage.executed == {"v_fancy_f32"}
    (reason,) = coverage.unknown.values()
    assert "unknown instruction (bad.rocmasm:" in reason
    assert coverage.groups()["not known"] == (0, 1)


DOUBLE = """\
func.func @main(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = arith.addf %a, %a : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
"""


def test_program_simulates(program, tmp_path):
    path, output = tmp_path / "double.mlir", tmp_path / "out.npy"
    path.write_text(DOUBLE)
    value = "2x3xf32=1 2 3 4 5 6"
    finished = program("prepass-simulate", path, f"--input={value}", f"--output=@{output}")
    assert finished.returncode == 0, finished.stderr
    assert np.load(output).tolist() == [[2, 4, 6], [8, 10, 12]]
    finished = program("prepass-simulate", path, f"--input={value}", "--expected_output=2x3xf32=2 4 6 8 10 12")
    assert (finished.returncode, finished.stdout) == (0, b"result[0] matches: largest difference 0\n")
    finished = program("prepass-simulate", path, "--input=2x3xf32=1", f"--expected_output=@{output}")
    assert finished.returncode == 1
    assert b"result[0] differs: largest difference 10" in finished.stdout


def test_program_prints_coverage(program, tmp_path):
    (tmp_path / "good.rocmasm").write_text(exchange())
    finished = program("prepass-simulate", "--coverage", tmp_path)
    assert finished.returncode == 0, finished.stderr
    assert b"instructions by name: 9 executed of 9 seen (100.0 %)" in finished.stdout
    (tmp_path / "bad.rocmasm").write_text(exchange(["v_fancy_f32 v9, v9"]))
    finished = program("prepass-simulate", "--coverage", tmp_path)
    assert finished.returncode == 1
    assert b"not known: v_fancy_f32 v9, v9: unknown instruction" in finished.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], b"expected one input file, got 0"),
        (["missing.mlir"], b"cannot open input 'missing.mlir'"),
        (["--coverage", "missing"], b"cannot open input 'missing'"),
        (["--coverage"], b"no .rocmasm file"),
        (["FILE", "--input=3"], b"--input takes"),
        (["FILE", "--input=2x3xf32=1 2"], b"2 numbers do not fill"),
        (["FILE", "--input=2x3xf32=one"], b"'one' is no number"),
        (["FILE", "--input=2x2xf32=1"], b"has the shape (2, 2), not (2, 3)"),
        (["FILE", "--output=x.npy"], b"--output takes"),
        (["FILE", "--parameter=x"], b"--parameter takes"),
    ],
)
def test_mistakes_are_one_line(capsys, tmp_path, arguments, message):
    path = tmp_path / "double.mlir"
    path.write_text(DOUBLE)
    assert main([str(path) if word == "FILE" else word for word in arguments]) == 1
    error = capsys.readouterr().err
    assert message.decode() in error
    assert error.count("\n") == 1

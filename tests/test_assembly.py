# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading the assembly that the compiler writes for AMD GPUs."""

import pytest

import prepass
from prepass.amdgpu.assembly import read_instruction, read_kernels

from .conftest import GFX942

ADD = """\
func.func @FUNCTION(%a: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<64xf32> {
  %0 = arith.addf %a, %b : tensor<64xf32>
  return %0 : tensor<64xf32>
}
"""


@pytest.mark.parametrize(
    ("text", "operands", "modifiers"),
    [
        ("buffer_load_dwordx4 v[0:3], v4, s[4:7], 0 offen offset:16", ("v[0:3]", "v4", "s[4:7]", "0"),
         {"offen": "", "offset": "16"}),
        ("s_waitcnt vmcnt(0) lgkmcnt(1)", ("vmcnt(0)", "lgkmcnt(1)"), {}),
        ("s_waitcnt vmcnt(0) & lgkmcnt(1)", ("vmcnt(0)", "lgkmcnt(1)"), {}),
        ("v_mov_b32_dpp v3, v31 quad_perm:[1,0,3,2] row_mask:0xf bound_ctrl:1", ("v3", "v31"),
         {"quad_perm": "[1,0,3,2]", "row_mask": "0xf", "bound_ctrl": "1"}),
        ("v_add_f32_dpp v1, v1, v1 row_mirror bank_mask:0xf", ("v1", "v1", "v1"),
         {"row_mirror": "", "bank_mask": "0xf"}),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3", ("hwreg(HW_REG_MODE, 4, 2)", "3"), {}),
        ('ds_swizzle_b32 v1, v2 offset:swizzle(BITMASK_PERM,"00p11")', ("v1", "v2"),
         {"offset": 'swizzle(BITMASK_PERM,"00p11")'}),
        ("v_add_f32_e64 v8, -|v13|, |v13| clamp mul:2", ("v8", "-|v13|", "|v13|"), {"clamp": "", "mul": "2"}),
        ("buffer_inv sc0 sc1", (), {"sc0": "", "sc1": ""}),
        ("s_endpgm", (), {}),
        ("global_load_dword\tv1, v[2:3], off", ("v1", "v[2:3]", "off"), {}),
    ],
)  # fmt: skip
def test_instruction(text, operands, modifiers):
    instruction = read_instruction(text, 7)
    assert instruction.operands == operands
    assert instruction.modifiers == modifiers
    assert instruction.line == 7
    again = read_instruction(str(instruction), 7)
    assert (again.operands, again.modifiers) == (operands, modifiers)


@pytest.mark.parametrize(
    ("mnemonic", "name", "encoding"),
    [
        ("v_add_f32_e32", "v_add_f32", "e32"),
        ("v_mov_b32_dpp", "v_mov_b32", "dpp"),
        ("v_add_f16_sdwa", "v_add_f16", "sdwa"),
        ("v_mov_b32_e64_dpp", "v_mov_b32", "e64_dpp"),
        ("v_fma_f32", "v_fma_f32", ""),
    ],
)
def test_name_and_encoding(mnemonic, name, encoding):
    instruction = read_instruction(f"{mnemonic} v0, v1", 1)
    assert (instruction.name, instruction.encoding) == (name, encoding)


# torch's functions have a `$` in their names, which LLVM writes in quotes in some places and without in others.
@pytest.mark.parametrize("function", ["main", '"main$async"'])
def test_kernel_of_the_compiler(function, tmp_path):
    flags = [*GFX942, f"--iree-hal-dump-executable-intermediates-to={tmp_path}"]
    prepass.compile(ADD.replace("FUNCTION", function), flags=flags)
    (file,) = tmp_path.glob("*.rocmasm")
    text = file.read_text()
    (kernel,) = read_kernels(text)
    assert kernel.name.startswith(function.strip('"'))
    lines = text.splitlines()
    assert kernel.instructions[-1].mnemonic == "s_endpgm"
    for instruction in kernel.instructions:
        assert lines[instruction.line - 1].split()[0] == instruction.mnemonic
    assert ".LBB0_0" in kernel.labels
    assert kernel.instructions[kernel.labels[".LBB0_0"] - 1].mnemonic == "s_branch"
    metadata = kernel.metadata
    assert metadata.name == kernel.name
    assert [(a.offset, a.size, a.kind) for a in metadata.arguments] == [(o, 8, "global_buffer") for o in (0, 8, 16)]
    assert metadata.arguments[2].access == "write_only"
    assert metadata.wavefront_size == 64
    assert metadata.workgroup_size[1:] == (1, 1)
    assert kernel.directives["kernarg_size"] == metadata.kernarg_size == 24
    assert metadata.vgprs > 0
    assert metadata.sgprs > 0


def test_text_without_kernels_has_none():
    assert read_kernels("s_endpgm\n") == []

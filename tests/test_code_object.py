# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels from machine code are those of the assembly that it was made from."""

import importlib.util
from pathlib import Path

import pytest

import prepass
from prepass.amdgpu import disassembler
from prepass.amdgpu.code_object import find_code_objects, instructions_with_labels, read_code_object
from prepass.amdgpu.disassembler import LLVM_VERSION, disassemble
from prepass.amdgpu.inputs import read_assembly, read_program
from prepass.amdgpu.llvm_tools import find_llvm_tool
from prepass.errors import PrepassError

from .conftest import GFX942
from .test_figures import MATMUL

OBJDUMP = find_llvm_tool("llvm-objdump", LLVM_VERSION)
WHEEL = importlib.util.find_spec("llvm") is not None

needs_disassembler = pytest.mark.skipif(not (OBJDUMP or WHEEL), reason="no LLVM that disassembles gfx942")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A folder with a program, and with its assembly and code object as the compiler dumps them."""
    folder = tmp_path_factory.mktemp("matmul")
    dumps = [f"--iree-hal-dump-executable-{what}-to={folder}" for what in ("intermediates", "binaries")]
    source = MATMUL.replace("FUNCTION", '"main$async"')
    (folder / "program.vmfb").write_bytes(prepass.compile(source, flags=[*GFX942, *dumps]))
    return folder


def the_file(folder: Path, suffix: str) -> Path:
    (path,) = folder.glob(f"*{suffix}")
    return path


def test_a_program_holds_the_code_object(compiled):
    (found,) = find_code_objects(the_file(compiled, ".vmfb").read_bytes())
    assert found == the_file(compiled, ".hsaco").read_bytes()


def test_what_only_looks_like_a_code_object_is_none():
    x86 = b"\x7fELF\x02\x01\x01" + bytes(9) + (3).to_bytes(2, "little") + (62).to_bytes(2, "little") + bytes(60)
    assert find_code_objects(b"IREE" + b"\x7fELF" + x86 + b"\x7fELF\x02\x01") == []


@needs_disassembler
def test_a_bundle_of_code_objects(compiled, tmp_path):
    path = tmp_path / "bundle.co"
    path.write_bytes(b"__CLANG_OFFLOAD_BUNDLE__" + bytes(200) + the_file(compiled, ".hsaco").read_bytes())
    assert len(read_program(path)) == 1


@needs_disassembler
@pytest.mark.parametrize("suffix", [".vmfb", ".hsaco"])
def test_figures_are_those_of_the_assembly(compiled, suffix):
    (expected,) = read_assembly(the_file(compiled, ".rocmasm").read_text())
    (found,) = read_program(the_file(compiled, suffix))
    assert found.architecture == expected.architecture == "gfx942"
    assert found.metadata == expected.metadata
    assert found.counts == expected.counts
    assert found.hottest.counts == expected.hottest.counts
    assert found.hottest.cost == expected.hottest.cost
    assert found.code_bytes == expected.code_bytes
    assert found.occupancy == expected.occupancy


@needs_disassembler
def test_descriptor_is_that_of_the_assembly(compiled):
    (expected,) = read_assembly(the_file(compiled, ".rocmasm").read_text())
    _, (found,) = read_code_object(the_file(compiled, ".hsaco").read_bytes(), "x")
    written = dict(expected.kernel.directives)
    granules = {"next_free_vgpr": 8, "next_free_sgpr": 8}
    for name, granule in granules.items():
        assert 0 <= found.directives[name] - written.pop(name) < 2 * granule
    # Not in the descriptor: they make the assembler count two or six more scalar registers.
    reserved = {"reserve_vcc", "reserve_xnack_mask"}
    assert {n: found.directives.get(n) for n in written if n not in reserved} == {
        n: value for n, value in written.items() if n not in reserved
    }


@pytest.mark.skipif(not (OBJDUMP and WHEEL), reason="needs an installed LLVM and the wheel llvm-nanobind")
def test_both_disassemblers_agree(compiled, monkeypatch):
    data = the_file(compiled, ".hsaco").read_bytes()
    _, by_objdump = read_code_object(data, "x")
    monkeypatch.setattr(disassembler, "find_llvm_tool", lambda *_: None)
    _, by_wheel = read_code_object(data, "x")
    assert by_wheel == by_objdump


def test_without_a_disassembler_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(disassembler, "find_llvm_tool", lambda *_: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(PrepassError, match=r"install LLVM 17 or newer.*pip install 'prepass\[isa\]'"):
        disassemble(b"", b"", 0, "gfx942")


def test_garbage_is_an_error(tmp_path):
    path = tmp_path / "x.hsaco"
    path.write_bytes(b"\x7fELF" + bytes(100))
    with pytest.raises(PrepassError, match=r"x\.hsaco"):
        read_program(path)
    path.write_bytes(b"CCOB" + bytes(100))
    with pytest.raises(PrepassError, match=r"x\.hsaco': not a code object"):
        read_program(path)
    path.write_bytes(b"IREE" + bytes(100))
    with pytest.raises(PrepassError, match="has no kernel for an AMD GPU"):
        read_program(path)


def test_branches_get_labels_and_padding_goes():
    lines = [
        (0x100, "s_branch 3"),
        (0x104, "s_nop 0"),
        (0x108, "s_nop 0"),
        (0x10C, "s_nop 0"),
        (0x110, "v_mov_b32_e32 v0, 0"),
        (0x114, "s_nop 1"),
        (0x118, "s_cbranch_scc1 65533"),
        (0x11C, "s_endpgm"),
        (0x120, "s_nop 0"),
    ]
    instructions, labels = instructions_with_labels(lines)
    assert [str(i) for i in instructions] == [
        "s_branch .L110", "v_mov_b32_e32 v0, 0", "s_nop 1", "s_cbranch_scc1 .L110", "s_endpgm"
    ]  # fmt: skip
    assert labels == {".L110": 1}


def test_find_llvm_tool(tmp_path, monkeypatch):
    def tool(folder, version, targets):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "llvm-objdump"
        path.write_text(f"#!/bin/sh\necho '  LLVM version {version}'\necho '{targets}'\n")
        path.chmod(0o755)
        return str(path)

    find_llvm_tool.cache_clear()
    good = tool("good", "23.1.0", "amdgcn - AMD GCN GPUs")
    tool("old", "14.0.6", "amdgcn - AMD GCN GPUs")
    tool("x86", "23.1.0", "x86-64")
    try:
        for folder, expected in (("good", True), ("old", False), ("x86", False)):
            find_llvm_tool.cache_clear()
            monkeypatch.setenv("PREPASS_LLVM", str(tmp_path / folder))
            assert (find_llvm_tool("llvm-objdump", 23) == good) == expected
    finally:
        find_llvm_tool.cache_clear()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-isa`, run as a user runs it; conditions, comparison, llvm-mca."""

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

from prepass.amdgpu.assembly import read_instruction
from prepass.amdgpu.compare import compare_kernels
from prepass.amdgpu.conditions import parse_condition
from prepass.amdgpu.control_flow import ControlFlow
from prepass.amdgpu.inputs import read_assembly
from prepass.amdgpu.llvm_tools import find_llvm_tool
from prepass.amdgpu.mca import LLVM_VERSION, analyse
from prepass.amdgpu.metrics import METRICS
from prepass.tools.isa import main

from .kernel_assembly import NESTED, kernel_assembly
from .test_figures import MATMUL

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "rope_attention"
CONFIGURE = "--pipeline=builtin.module(prepass-configure-attention)"
# Four loads of two bytes where NESTED has one of sixteen, and a spill.
NARROW = NESTED.replace(
    "	buffer_load_dwordx4 v[4:7], v1, s[0:3], 0 offen\n",
    "	buffer_load_ushort v4, v1, s[0:3], 0 offen\n" * 4 + "	scratch_store_dword off, v4, s32\n",
)


@pytest.fixture
def wide_and_narrow(tmp_path):
    wide, narrow = tmp_path / "wide.rocmasm", tmp_path / "narrow.rocmasm"
    wide.write_text(kernel_assembly(NESTED, name="main_dispatch_0_matmul_f16"))
    narrow.write_text(kernel_assembly(NARROW, name="main_dispatch_3_matmul_f16", spills=1, private_bytes=4, vgprs=100))
    return wide, narrow


def test_report(wide_and_narrow, capsys):
    assert main([str(wide_and_narrow[0])]) == 0
    out = capsys.readouterr().out
    assert out.startswith("static figures of the code; nothing was run\nmain_dispatch_0_matmul_f16\n")
    for line in (
        "gfx942, workgroup 256×1×1", "VGPRs 64 (AGPRs 16), SGPRs 20, LDS 1,024 B", "waves per SIMD 8, limited by wave",
        "loop .LBB0_2, depth 2", "buffer load 16 B", "LDS read 2 B", "MFMA f32_32x32x8_f16", "<- bound", "roofline",
    ):  # fmt: skip
        assert line in out
    # In a pipe no bars and no colours.
    assert "█" not in out
    assert "\x1b" not in out


def test_compare(wide_and_narrow, capsys):
    assert main(["--compare", *map(str, wide_and_narrow)]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = {line[:15].strip(): line[15:].split() for line in lines if re.match(r"[a-zA-Z/ ]+\d* ?B? +[\d,.]+ ", line)}
    # The differences that matter come first; matrix instructions are shown though they are the same.
    assert list(rows)[:3] == ["spills", "scratch bytes", "scratch stores"]
    assert rows["loads 16 B"] == ["1", "0", "-1"]
    assert rows["loads 2 B"] == ["1", "5", "+4"]
    assert rows["bytes/load"] == ["9", "2", "-7"]
    assert rows["MFMA"] == ["2", "2", "=", "2", "2", "="]
    assert "packed" not in rows
    assert len(lines) <= 40


def test_compare_takes_kernels_that_match_on_one_side(wide_and_narrow, capsys):
    assert main(["--compare", *map(str, wide_and_narrow), "--kernel=*dispatch_3*", "--sort=loads"]) == 0
    assert "A main_dispatch_0_matmul_f16\nB main_dispatch_3_matmul_f16\n" in capsys.readouterr().out
    assert main(["--compare", *map(str, wide_and_narrow), "--kernel=conv*"]) == 1
    assert "no kernel matches conv*; there are main_dispatch_3_matmul_f16" in capsys.readouterr().err


def test_standard_input(wide_and_narrow, program):
    result = program("prepass-isa", "-", "--json", stdin=wide_and_narrow[0].read_text())
    assert json.loads(result.stdout)["kernels"][0]["name"] == "main_dispatch_0_matmul_f16"


def test_compare_in_json(wide_and_narrow, capsys):
    assert main(["--compare", "--json", *map(str, wide_and_narrow)]) == 0
    document = json.loads(capsys.readouterr().out)
    (pair,) = document["pairs"]
    assert pair["differences"][0] == {"metric": "spills", "kernel": [0, 1], "loop": None}
    assert pair["old"]["name"] == "main_dispatch_0_matmul_f16"
    assert document["only_old"] == document["only_new"] == []


def test_report_in_json(wide_and_narrow, capsys):
    assert main(["--json", str(wide_and_narrow[1])]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    assert kernel["metrics"]["loads_2b"] == 5
    assert kernel["hottest_loop"] == ".LBB0_2"
    assert [loop["depth"] for loop in kernel["loops"]] == [1, 2]
    assert kernel["loops"][1]["cost"]["cu_clocks"] == {"MFMA": 48, "VALU": 20, "LDS": 48, "memory": 0}
    # There is no infinity in JSON.
    assert kernel["loops"][1]["cost"]["roofline"]["intensity"] is None


@pytest.mark.parametrize(
    ("condition", "code"),
    [("spills > 0", 1), ("spills > 1", 0), ("loop.mfma == 2 and loads_2b >= 5", 1), ("not loops", 0)],
)
def test_fail_if(condition, code, wide_and_narrow, capsys):
    assert main([str(wide_and_narrow[1]), "--fail-if", condition]) == code
    error = capsys.readouterr().err
    assert ("failed: main_dispatch_3_matmul_f16: " + condition in error) == bool(code)


@pytest.mark.parametrize(("condition", "code"), [("spills > old.spills", 1), ("mfma < old.mfma", 0)])
def test_fail_if_compares(condition, code, wide_and_narrow, capsys):
    assert main(["--compare", *map(str, wide_and_narrow), f"--fail-if={condition}"]) == code
    if code:
        assert "(old.spills = 0, spills = 1)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3 == 7", True),
        ("(1 + 2) * 3 == 9", True),
        ("10 - 4 - 3 == 3", True),
        ("8 / 4 / 2 == 1", True),
        ("-2 < 1 and not 1 > 2", True),
        ("1 > 2 and 1 > 2 or 1 < 2", True),
        ("1 > 2 and (1 > 2 or 1 < 2)", False),
        ("spills", True),
        ("valu / mfma > 1000000", True),
        ("mfma / mfma >= 0", False),
        (".5 != 0.5", False),
    ],
)
def test_condition(text, value):

    assert parse_condition(text).holds({"spills": 3, "valu": 4, "mfma": 0}) is value


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("spils > 0", 1, "unknown metric 'spils'; did you mean 'spills'?"),
        ("spills > ", 10, "expected a metric or a number"),
        ("spills > 0)", 11, "expected an operator or the end"),
        ("(spills > 0", 12, "expected ')'"),
        ("0 < spills < 3", 12, "comparisons cannot be chained; join them with 'and'"),
        ("spills = 0", 8, "expected an operator or the end"),
        ("loop.vgprs > 3", 1, "unknown metric 'loop.vgprs'"),
        ("__import__('os')", 1, "unknown metric '__import__'"),
        ("1 1", 3, "expected an operator or the end"),
        ("", 1, "expected a metric or a number"),
        ("(" * 1000 + "1" + ")" * 1000, 52, "too deeply nested"),
        ("not " * 1000 + "1", 205, "too deeply nested"),
    ],
)
def test_mistakes_in_conditions(text, column, message, capsys):
    assert main(["x.rocmasm", f"--fail-if={text}"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f", column {column}: {message}" in line


def test_every_metric_may_be_used():
    for name in METRICS:
        assert parse_condition(f"{name} >= 0").metrics == {name}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.mlir"], "cannot open input 'missing.mlir'"),
        ([], "expected one input file, got 0"),
        (["WIDE", "NARROW"], "expected one input file, got 2"),
        (["--compare", "WIDE"], "--compare needs two inputs, or one with --flags-a or --flags-b"),
        (["WIDE", "--flags-a=x"], "--flags-a needs --compare"),
        (["WIDE", "--pipeline=builtin.module(cse)"], "is compiled already"),
        (["WIDE", "--iree-opt-level=O3"], "is compiled already"),
        (["WIDE", "--kernel=conv*"], "no kernel matches conv*; there are main_dispatch_0_matmul_f16"),
        (["WIDE", "--sort=valuu"], "unknown metric 'valuu'; did you mean 'valu'?"),
        (["WIDE", "--fail-if=spills > old.spills"], "'old.' needs --compare"),
        (["--compare", "WIDE", "--flags-b='"], "--flags-b: No closing quotation"),
        (["--compare", "WIDE", "--flags-b=x.mlir"], "is no flag"),
        (["EMPTY"], "has no kernel for an AMD GPU"),
        (["BAD"], "is not a valid module"),
    ],
)  # fmt: skip
def test_mistakes(arguments, message, wide_and_narrow, tmp_path, capsys):
    files = {"WIDE": wide_and_narrow[0], "NARROW": wide_and_narrow[1]}
    files |= {"EMPTY": tmp_path / "empty.rocmasm", "BAD": tmp_path / "bad.mlir"}
    files["EMPTY"].write_text("")
    files["BAD"].write_text("func.func @f( {\n")
    assert main([str(files.get(argument, argument)) for argument in arguments]) == 1
    error = capsys.readouterr().err
    assert error.count("prepass-isa: error:") == 1
    assert message in error


def test_many_kernels_are_a_table(tmp_path, capsys):
    path = tmp_path / "many.rocmasm"
    texts = [kernel_assembly(NESTED, name=f"main_dispatch_{n}_matmul_f16", vgprs=40 + n) for n in range(8)]
    # One file has one block of metadata.
    entries = [re.search(r"  - .agpr_count.*?\n\.\.\.", text, re.S)[0].removesuffix("\n...") for text in texts]
    bodies = [text[: text.index("\t.amdgpu_metadata")] for text in texts]
    metadata = "\t.amdgpu_metadata\n---\namdhsa.kernels:\n" + "\n".join(entries) + "\n...\n\t.end_amdgpu_metadata\n"
    path.write_text("\n".join(bodies) + metadata)
    assert main([str(path), "--sort=vgprs"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("main_dispatch")]
    assert [row[0] for row in rows] == [f"main_dispatch_{n}_matmul_f16" for n in reversed(range(8))]
    assert main([str(path), "--kernel=*_3_*"]) == 0
    assert "main_dispatch_3_matmul_f16\n  gfx942" in capsys.readouterr().out


def test_mlir_is_compiled_with_flags_and_a_pipeline(tmp_path, program):
    path = tmp_path / "matmul.mlir"
    path.write_text(MATMUL.replace("FUNCTION", "main"))
    result = program(
        "prepass-isa", "--compare", path, "--flags-a=--pipeline=builtin.module(cse)", "--iree-opt-level=O3",
        "--flags-b=--iree-opt-level=O0", "--json",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr.decode()
    document = json.loads(result.stdout)
    assert document["old"].endswith("matmul.mlir --pipeline=builtin.module(cse)")
    assert document["pairs"][0]["old"]["metrics"]["mfma"] > 0


def test_bars_on_a_terminal(wide_and_narrow):
    run = f"{sys.executable} -m prepass.tools.isa"
    command = f"{run} {wide_and_narrow[0]} && {run} --compare {' '.join(map(str, wide_and_narrow))}"
    script = ["script", "-qec", f"export COLUMNS=100 LINES=40 TERM=xterm; {command}", "/dev/null"]
    try:
        result = subprocess.run(script, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("no program 'script', which gives a terminal")
    assert result.returncode == 0, result.stdout
    assert result.stdout.count("█") > 30
    assert "\x1b[31m" in result.stdout


def names(comparison):
    return [(pair.old.name, pair.new.name) for pair in comparison.pairs]


def kernels(*names_and_bodies):
    return [read_assembly(kernel_assembly(body, name=name))[0] for name, body in names_and_bodies]


def test_pairing():
    plain = "\tv_mov_b32_e32 v0, 0\n\ts_endpgm"
    old = kernels(
        ("main_dispatch_0_matmul_like_64x64_f16", NESTED),
        ("main_dispatch_1_elementwise_64_f16", plain),
        ("main_dispatch_2_attention_4x64x64", NESTED),
        ("main_dispatch_3_slow_memcpy", plain),
    )
    new = kernels(
        ("main_dispatch_0_matmul_like_64x64_f16", NARROW),
        ("main_dispatch_4_elementwise_64_f16", plain),
        ("main_dispatch_5_attention_4x1x64x64", NESTED),
        ("main_dispatch_6_reduction_64", plain),
    )
    found = compare_kernels(old, new)
    assert names(found) == [
        # The one that differs is first.
        ("main_dispatch_0_matmul_like_64x64_f16", "main_dispatch_0_matmul_like_64x64_f16"),
        ("main_dispatch_1_elementwise_64_f16", "main_dispatch_4_elementwise_64_f16"),
        ("main_dispatch_2_attention_4x64x64", "main_dispatch_5_attention_4x1x64x64"),
    ]
    assert [f.name for f in found.only_old] == ["main_dispatch_3_slow_memcpy"]
    assert [f.name for f in found.only_new] == ["main_dispatch_6_reduction_64"]


@pytest.mark.skipif(not find_llvm_tool("llvm-mca", LLVM_VERSION), reason="no llvm-mca that knows gfx942")
def test_mca(wide_and_narrow, capsys):
    (kernel,) = read_assembly(wide_and_narrow[0].read_text())
    flow = ControlFlow(kernel.kernel)
    found = analyse(flow.instructions(flow.hottest), "gfx942")
    # One 32x32x8 of 8 passes, one 16x16x16 of 4, four clocks each: they bound ten instructions.
    assert found.units["HWXDL"] == 48
    assert found.issue_clocks == 48
    assert found.clocks >= 48
    assert main([str(wide_and_narrow[0]), "--mca"]) == 0
    assert "llvm-mca, one wave alone" in capsys.readouterr().out


def test_mca_that_is_missing_is_said(wide_and_narrow, monkeypatch, capsys):
    monkeypatch.setattr("prepass.amdgpu.mca.find_llvm_tool", lambda *_: None)
    assert main([str(wide_and_narrow[0]), "--mca"]) == 1
    assert "no llvm-mca of LLVM 22 or newer is installed" in capsys.readouterr().err


def rope_example(tmp_path, name):
    """The example with something cheap in place of sines, which LLVM takes many seconds to expand."""
    text = re.sub(r"math\.(cos|sin) %angle", r"math.absf %angle", (EXAMPLES / f"{name}.mlir").read_text())
    path = tmp_path / f"{name}.mlir"
    path.write_text(text)
    return path


def test_fusing_rope_by_hand_narrows_loads(tmp_path, capsys):
    paths = [rope_example(tmp_path, name) for name in ("separate", "fused")]
    assert main(["--compare", *map(str, paths), CONFIGURE]) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) <= 40
    rows = {line[:15].strip(): line[15:].split() for line in out.splitlines()}
    assert int(rows["loads 2 B"][1]) > 100 > int(rows["loads 2 B"][0])
    assert float(rows["bytes/load"][1]) < 5 < float(rows["bytes/load"][0])
    assert rows["MFMA"][:3] == ["64", "64", "="]
    assert not math.isclose(float(rows["bytes/load"][3]), float(rows["bytes/load"][4]))


@pytest.mark.slow
def test_fusing_rope_by_hand_on_the_flux_seed(corpus, capsys):
    seed, fused = corpus / "seeds" / "flux_rope_attention.mlir", EXAMPLES / "fused.mlir"
    assert main(["--compare", str(seed), str(fused), CONFIGURE]) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) <= 40
    assert re.search(r"^loads 2 B +0 +176 +\+176", out, re.M)
    assert re.search(r"^loads 8 B +16 +0 +-16", out, re.M)


def test_instructions_are_written_as_llvm_reads_them():
    text = "v_mfma_f32_32x32x8_f16 a[0:15], v[8:9], v[10:11], a[0:15]"
    assert str(read_instruction(text, 1)) == text

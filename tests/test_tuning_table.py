# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tuning tables: what passes take from them, and one clear line for each way in which a file can be wrong."""

import json
from dataclasses import replace

import numpy as np
import pytest
from iree.compiler import version

import prepass
from prepass.amdgpu.inputs import compile_to_assembly, read_assembly
from prepass.checking.numerics import compare
from prepass.ir.targets.attention_shape import AttentionShape
from prepass.ir.targets.gfx942 import AttentionTile
from prepass.ir.targets.gfx942_contractions import ContractionTile
from prepass.ir.targets.linalg_shape import LinalgShape
from prepass.ir.targets.tuning_table import ATTENTION, CONTRACTION, Choice, Entry, TuningTable, read_tuning_table
from prepass.simulator import compile_program, run_program

from .conftest import GFX942, LLVM_CPU
from .test_configure_attention import attention_op
from .test_select_kernels import product

SHAPE = AttentionShape((2,), 128, 64, 64, 256, "f16", value_transposed=True)
TILE = AttentionTile(waves=2, rows=16, keys=32)
TABLE = TuningTable("gfx942", version.VERSION, (Entry(ATTENTION, SHAPE, Choice(TILE), {"cycles": 1.5}),))
SOURCE = attention_op(2, 128, 256, 64, "f16", value_transposed=True)


@pytest.fixture
def table_file(tmp_path):
    path = tmp_path / "table.json"
    path.write_text(TABLE.text())
    return path


def changed(change) -> str:
    """The text of the table, once `change` has edited its document."""
    document = json.loads(TABLE.text())
    change(document, document["entries"][0])
    return json.dumps(document)


def test_a_table_is_read_back(table_file):
    assert read_tuning_table(table_file) == TABLE
    assert read_tuning_table(table_file).entries[0].price == {"cycles": 1.5}


def test_entries_for_the_same_op_are_replaced():
    other = Entry(ATTENTION, replace(SHAPE, m=256), Choice())
    better = Entry(ATTENTION, SHAPE, Choice(kernel="fast"))
    table = TABLE.with_entries((other,)).with_entries((better,))
    assert table.entries == (better, other)


@pytest.mark.parametrize("how", ["option", "argument", "both"])
def test_the_table_is_used(how, table_file):
    option = f"{{table={table_file}}}" if how != "argument" else ""
    (kernel,) = compile_to_assembly(
        SOURCE,
        flags=GFX942,
        pipeline=f"builtin.module(prepass-configure-attention{option})",
        tuning_table=table_file if how != "option" else None,
    )
    assert kernel.metadata.work_items == 128


def test_the_argument_brings_the_passes_along(table_file):
    (kernel,) = compile_to_assembly(SOURCE, flags=GFX942, tuning_table=table_file)
    assert kernel.metadata.work_items == 128


def test_ops_that_the_table_lacks_are_compiled_as_without_it(table_file):
    source = attention_op(2, 256, 256, 64, "f16", value_transposed=True)
    pipeline = "builtin.module(prepass-configure-attention)"
    with_table, without = (
        compile_to_assembly(source, flags=GFX942, pipeline=pipeline, tuning_table=table)[0]
        for table in (table_file, None)
    )
    assert with_table.kernel.instructions == without.kernel.instructions


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1, column 2: Expecting property name"),
        ("[]", "it is no tuning table"),
        (changed(lambda d, e: d.update(version=7)), "its version is 7, and 1 is known"),
        (
            changed(lambda d, e: d.update(target="gfx90a")),
            "its target is 'gfx90a'; targets that can be tuned are gfx942",
        ),
        (changed(lambda d, e: d.update(iree="3.12.0")), "it was made with IREE 3.12.0, and "),
        (changed(lambda d, e: d.update(entries={})), "'entries' is no list"),
        (changed(lambda d, e: e.update(op="atention")), "entry 1: unknown op 'atention'; did you mean 'attention'?"),
        (changed(lambda d, e: e.pop("choice")), "entry 1: 'choice' is missing"),
        (changed(lambda d, e: e["shape"].pop("m")), "entry 1: shape: 'm' is missing"),
        (changed(lambda d, e: e["shape"].update(k2="many")), "'k2' takes a whole number or null, not 'many'"),
        (
            changed(lambda d, e: e["shape"].update(batch=[True])),
            "'batch' takes a list, each item a whole number or null",
        ),
        (changed(lambda d, e: e["choice"].update(kernel="fast")), "entry 1: choice: expected {'config': …}"),
        (changed(lambda d, e: e.update(choice={"kernel": ""})), "entry 1: choice: 'kernel' takes a name, not ''"),
        (changed(lambda d, e: e.update(choice={"kernel": "directmatmul"})), "did you mean 'direct-matmul'?"),
        (
            changed(lambda d, e: e.update(choice={"kernel": "convolution", "parameters": {"tile": 1}})),
            "kernel 'convolution' has no parameter 'tile'; did you mean 'tiles'?",
        ),
        (
            changed(lambda d, e: e.update(choice={"kernel": "convolution", "parameters": {"tiles": [[1, 2]]}})),
            "kernel 'convolution' has no 'tiles' of [[1, 2]]",
        ),
        (changed(lambda d, e: e["choice"]["config"].update(wave=1)), "unknown name 'wave'; did you mean 'waves'?"),
        (changed(lambda d, e: e["choice"]["config"].update(waves=2.5)), "'waves' takes a whole number, not 2.5"),
        (
            changed(lambda d, e: e["choice"]["config"].update(keys=48)),
            "its config cannot be: 48 keys do not divide 256",
        ),
        (changed(lambda d, e: e["choice"]["config"].update(qk="MFMA")), "'MFMA' is no MFMA for f16"),
        (changed(lambda d, e: e["choice"]["config"].update(rows=24)), "24 queries of a wave are no multiple of 16"),
        (changed(lambda d, e: e["choice"]["config"].update(waves=3)), "3 waves cannot divide evenly"),
        (changed(lambda d, e: e["choice"]["config"].update(waves=17)), "1 to 16 waves"),
        (changed(lambda d, e: e["choice"]["config"].update(stages=1)), "a pipeline has 0 or 2 or 3 stages"),
        (changed(lambda d, e: e["choice"]["config"].update(pv="MFMA_F32_32x32x8")), "different numbers of rows"),
    ],
)
def test_a_malformed_table_is_one_line(text, message, table_file):
    table_file.write_text(text)
    with pytest.raises(prepass.PrepassError) as caught:
        prepass.compile("module {\n}", flags=GFX942, tuning_table=table_file)
    assert str(caught.value).startswith(f"tuning table '{table_file}': ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def contraction_table(choice, rows=128, columns=64, terms=64):
    maps, types = ("d0, d2", "d1, d2", "d0, d1"), ("f16", "f16", "f32")
    shape = LinalgShape(maps, (rows, columns, terms), types)
    return TuningTable("gfx942", version.VERSION, (Entry(CONTRACTION, shape, choice),))


CONTRACTIONS = [
    Choice(ContractionTile(64, 32, 32, 2, 1, "MFMA_F32_32x32x8", stages=0)),
    Choice(ContractionTile(128, 64, 32, 2, 2, "VMFMA_F32_16x16x32")),
    Choice(ContractionTile(32, 64, 64, 1, 2)),
    Choice(kernel="direct-matmul"),
    Choice(),
]


@pytest.mark.parametrize("choice", CONTRACTIONS, ids=str)
def test_contractions_are_compiled_as_the_table_says_and_right(choice, table_file):
    table_file.write_text(contraction_table(choice).text())
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((size, 64)).astype(np.float16) for size in (128, 64))
    remarks = []
    program = compile_program(
        product(128, 64, 64), tuning_table=table_file, on_remark=lambda remark, _: remarks.append(remark.message)
    )
    (result,) = run_program(program, [a, b])
    expected = a.astype(np.float64) @ b.astype(np.float64).T
    assert compare([result], [expected]).within(1e-5 * abs(expected).max())
    (kernel,) = read_assembly(program.assembly[0])
    if choice.config:
        assert remarks == ["configured for gfx942 as the tuning table says"]
        assert kernel.metadata.work_items == choice.config.row_waves * choice.config.column_waves * 64
        assert any(choice.config.intrinsic.lstrip("V").partition("x")[0].lower() in n for n in kernel.counts.names)
    elif choice.kernel:
        assert remarks == ["computed by direct-matmul as the tuning table says"]
    else:
        assert remarks == ["the tuning table says that IREE's default is best"]


def test_what_the_table_chooses_comes_before_the_kernels_that_are_asked_for(table_file):
    table_file.write_text(contraction_table(CONTRACTIONS[0]).text())
    (kernel,) = compile_to_assembly(
        product(128, 64, 64), flags=GFX942, tuning_table=table_file, kernels="direct-matmul"
    )
    assert kernel.metadata.work_items == 128


def test_no_kernels_means_none_of_the_table_either(table_file):
    table_file.write_text(contraction_table(Choice(kernel="direct-matmul")).text())
    messages = []
    compile_to_assembly(
        product(128, 64, 64),
        flags=GFX942,
        tuning_table=table_file,
        kernels="none",
        on_remark=lambda remark, _: messages.append(remark.message),
    )
    assert messages == []


@pytest.mark.parametrize(
    ("tile", "message"),
    [
        (ContractionTile(48, 64, 32), "a tile of 48 rows is no multiple of 32"),
        (ContractionTile(96, 64, 32), "a tile of 96 rows does not divide 128"),
        (ContractionTile(64, 64, 24), "a tile of 24 depth is no multiple of 16"),
        (ContractionTile(64, 64, 32, 0, 2), "rows and columns have one wave or more"),
        (ContractionTile(64, 64, 32, intrinsic="MFMA_I32"), "'MFMA_I32' is no MFMA for f16"),
    ],
)
def test_contraction_configs_that_cannot_be(tile, message, table_file):
    table_file.write_text(contraction_table(Choice(tile)).text())
    with pytest.raises(prepass.PrepassError, match=message):
        read_tuning_table(table_file)


def test_a_table_in_pipeline_text_is_read_before_anything_is_compiled(table_file):
    table_file.write_text("[]")
    with pytest.raises(prepass.PrepassError, match="it is no tuning table"):
        prepass.compile(
            "module {\n}", flags=GFX942, pipeline=f"builtin.module(prepass-configure-attention{{table={table_file}}})"
        )


def test_a_table_for_another_target_is_an_error(table_file):
    with pytest.raises(prepass.PrepassError, match="is for gfx942, the program for llvm-cpu"):
        prepass.compile(SOURCE, flags=LLVM_CPU, tuning_table=table_file)


def test_the_flag_of_the_programs(program, table_file, tmp_path):
    source = tmp_path / "attention.mlir"
    source.write_text(SOURCE)
    flag = f"--prepass-tuning-table={table_file}"
    result = program("prepass-isa", source, flag, "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["kernels"][0]["metrics"]["workgroup"] == 128
    table_file.unlink()
    result = program("prepass-compile", source, flag, *GFX942, "-o", tmp_path / "x.vmfb")
    assert (result.returncode, result.stdout) == (1, b"")
    line = f"prepass-compile: error: cannot read tuning table '{table_file}': No such file or directory\n"
    assert result.stderr.decode() == line

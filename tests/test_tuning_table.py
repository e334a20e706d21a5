# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tuning tables: what passes take from them, and one clear line for each way in which a file can be wrong."""

import json
from dataclasses import replace

import pytest
from iree.compiler import version

import prepass
from prepass.amdgpu.inputs import compile_to_assembly
from prepass.ir.targets.attention_shape import AttentionShape
from prepass.ir.targets.gfx942 import AttentionTile
from prepass.ir.targets.tuning_table import ATTENTION, Choice, Entry, TuningTable, read_tuning_table

from .conftest import GFX942, LLVM_CPU
from .test_configure_attention import attention_op

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

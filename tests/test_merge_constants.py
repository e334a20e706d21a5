# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-merge-constants` merges what is equal and nothing else, and keeps results."""

import hashlib
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from iree.compiler import ir

import prepass
from prepass.checking.statistics import ProgramStatistics
from prepass.ir.constant_contents import contents_of

from .conftest import GFX942, LLVM_CPU

MERGE = "builtin.module(prepass-merge-constants)"
BOTH = "builtin.module(prepass-strip-assertions,prepass-merge-constants)"
EQUAL_LOOKUPS = Path(__file__).parent / "data" / "equal_lookups.mlir"
TABLE = np.arange(600, dtype=np.int64)


def module(*tables: np.ndarray) -> str:
    """Adds up its argument and tables, each a resource of another name."""
    type_ = f"tensor<{len(TABLE)}xi64>"
    lines = [f"func.func @main(%sum: {type_}) -> {type_} {{"]
    for number, _ in enumerate(tables):
        lines.append(f"  %t{number} = arith.constant dense_resource<table_{number}> : {type_}")
    total = "%sum"
    for number, _ in enumerate(tables):
        lines.append(f"  %s{number} = arith.addi {total}, %t{number} : {type_}")
        total = f"%s{number}"
    resources = ",\n".join(f'table_{n}: "0x08000000{table.tobytes().hex()}"' for n, table in enumerate(tables))
    lines += [f"  return {total} : {type_}", "}", "{-# dialect_resources: { builtin: {", resources, "} } #-}"]
    return "\n".join(lines)


@pytest.mark.parametrize("level", ["O0", "O3"])
def test_results_stay_the_same(level):
    tables = (TABLE, TABLE[::-1].copy(), TABLE.copy(), TABLE[::-1].copy())
    merged = []
    program = prepass.compile(
        module(*tables),
        pipeline=MERGE,
        flags=(*LLVM_CPU, f"--iree-opt-level={level}"),
        on_remark=lambda r, _: merged.append(r),
    )
    assert len(merged) == 2
    (result,) = prepass.run(program, TABLE)
    np.testing.assert_array_equal(result, TABLE + sum(tables))


def test_one_different_byte_in_a_big_constant_counts():
    other = TABLE.copy()
    other[-1] ^= 1 << 60
    result = prepass.Pipeline.parse(MERGE).run(module(TABLE, other))
    assert not result.remarks


@pytest.mark.parametrize("level", ["O0", "O3"])
def test_equal_lookups_under_three_names_are_hoisted_once(level):
    statistics = ProgramStatistics()
    flags = (*GFX942, f"--iree-opt-level={level}")
    prepass.compile(EQUAL_LOOKUPS, pipeline=BOTH, flags=flags, hooks=statistics.hooks)
    assert (statistics.dispatches, statistics.initializer_dispatches) == (3, 2)


def resource(context: ir.Context, data: np.ndarray, name: str, alignment: int) -> ir.Attribute:
    with context, ir.Location.unknown():
        type_ = ir.RankedTensorType.get([len(data)], ir.IntegerType.get_signless(8))
        return ir.DenseResourceElementsAttr.get_from_buffer(data, name, type_, alignment=alignment)


def test_contents_are_read_from_any_resource(context):
    for alignment in (1, 8, 64, 4096):
        for size in (1, 7, 63, 1000, 1024, 1025, 16384, (1 << 21) + 3):
            data = (np.arange(size) * 7 % 251).astype(np.uint8)
            contents = contents_of(resource(context, data, f"n{size}_{alignment}" * 3, alignment))
            raw = data.tobytes()
            expected = raw if size <= 1024 else hashlib.blake2b(raw, digest_size=32).digest()
            assert (contents.size, contents.data) == (size, expected)


def test_memory_is_bounded_by_one_constant(context):
    size = 8 << 20
    constants = [resource(context, np.full(size, n, np.uint8), f"big_{n}", 64) for n in range(4)]
    tracemalloc.start()
    contents = {contents_of(constant) for constant in constants}
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(contents) == 4
    assert peak < 1.5 * size

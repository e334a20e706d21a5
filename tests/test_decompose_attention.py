# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-decompose-attention`: layouts, masks and shared heads against numpy."""

import numpy as np
import pytest

import prepass
from prepass.checking.numerics import compare
from prepass.pipeline.base import RemarkKind

from .attention_cases import DTYPES
from .attention_ops import PLAIN, attention_module, inputs_of, reference
from .conftest import LLVM_CPU
from .graphs import softmax
from .test_configure_attention import attention_op

PIPELINE = "builtin.module(prepass-decompose-attention)"


@pytest.mark.parametrize(
    ("changes", "mask"),
    [
        ({}, ""),
        ({"k": "b, k1, k2"}, ""),
        ({"v": "b, n, k2"}, ""),
        ({"q": "m, b, k1", "k": "k2, b, k1", "init": "m, b, n"}, ""),
        ({"mask": "k2"}, "f32"),
        ({"mask": "m, k2"}, "f16"),
        ({"mask": "b, m, k2"}, "i1"),
        ({"q": "b, h, m, k1", "init": "b, h, m, n"}, ""),
        ({"q": "b, h, m, k1", "init": "b, h, m, n", "mask": "h, k2"}, "i1"),
        ({"q": "b, h, m, k1", "k": "b, h, k2, k1", "v": "b, h, k2, n", "init": "b, h, m, n"}, ""),
    ],
)
@pytest.mark.parametrize("level", ["O0", "O3"])
def test_results_stay_the_same(changes, mask, level):
    dims = {**PLAIN, **changes}
    inputs = inputs_of(dims, mask)
    remarks = []
    program = prepass.compile(
        attention_module(dims, mask),
        pipeline=PIPELINE,
        flags=(*LLVM_CPU, f"--iree-opt-level={level}"),
        on_remark=lambda remark, location: remarks.append(remark.kind),
    )
    assert remarks == [RemarkKind.APPLIED]
    assert compare(prepass.run(program, *inputs), [reference(dims, *inputs)]).within(1e-5)


@pytest.mark.parametrize(
    ("queries", "keys", "element"), [(128, 77, "f32"), (1, 128, "f32"), (128, 128, "f16"), (1024, 1024, "f32")]
)
def test_what_one_kernel_does_better_is_left_alone(queries, keys, element):
    remarks = []
    prepass.compile(
        attention_op(20, queries, keys, 64, element),
        pipeline=PIPELINE,
        flags=LLVM_CPU,
        on_remark=lambda remark, location: remarks.append(remark.kind),
    )
    assert remarks == [RemarkKind.MISSED]


@pytest.mark.parametrize(("element", "tolerance"), [("f16", 2e-3), ("bf16", 2e-2), ("f32", 1e-5)])
def test_anything_static_can_be_decomposed_as_a_reference(element, tolerance):
    # Seven queries fill no vector, and IREE computes a head dim above 128 wrongly without a config.
    program = prepass.compile(
        attention_op(2, 7, 13, 160, element),
        pipeline="builtin.module(prepass-decompose-attention{when=always})",
        flags=LLVM_CPU,
    )
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal((2, rows, 160)).astype(DTYPES[element]) for rows in (7, 13, 13)]
    query, key, value = (array.astype(np.float64) for array in inputs)
    weights = softmax(0.125 * query @ key.transpose(0, 2, 1), 2)
    assert compare(prepass.run(program, *inputs), [weights @ value]).within(tolerance)

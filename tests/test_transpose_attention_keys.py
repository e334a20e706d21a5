# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-transpose-attention-keys`: against numpy, and the transpose is not folded back."""

import pytest

import prepass
from prepass.checking.numerics import compare
from prepass.pipeline.base import RemarkKind

from .attention_ops import PLAIN, attention_module, inputs_of, reference
from .conftest import LLVM_CPU

PIPELINE = "builtin.module(prepass-transpose-attention-keys)"


@pytest.mark.parametrize(
    ("changes", "mask"),
    [
        ({}, ""),
        ({"q": "m, b, k1", "k": "k2, b, k1", "init": "m, b, n"}, ""),
        ({"mask": "b, m, k2"}, "i1"),
        ({"q": "b, h, m, k1", "init": "b, h, m, n", "mask": "h, k2"}, "f32"),
        ({"q": "b, h, m, k1", "k": "b, h, k2, k1", "v": "b, h, k2, n", "init": "b, h, m, n"}, ""),
    ],
)
@pytest.mark.parametrize("level", ["O0", "O3"])
def test_results_stay_the_same(changes, mask, level):
    dims = {**PLAIN, **changes}
    inputs = inputs_of(dims, mask)
    remarks = []
    texts = []
    program = prepass.compile(
        attention_module(dims, mask),
        pipeline=PIPELINE,
        flags=(*LLVM_CPU, f"--iree-opt-level={level}"),
        on_remark=lambda remark, location: remarks.append(remark),
        hooks={"executable-sources": lambda module: texts.append(str(module))},
    )
    assert [remark.kind for remark in remarks if "innermost" in remark.message] == [RemarkKind.APPLIED]
    # The transpose has a dispatch of its own: it did not fold back into the attention.
    assert texts[0].count("hal.executable.export") == 2
    assert compare(prepass.run(program, *inputs), [reference(dims, *inputs)]).within(1e-5)

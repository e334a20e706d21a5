# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What prepass-tune tries for an op, and what of a program it tunes."""

import dataclasses

import pytest

import prepass
from prepass.ir.targets.gfx942 import AttentionTile
from prepass.ir.targets.gfx942_misfits import attention_misfit
from prepass.ir.targets.tuning_table import ATTENTION, CONVOLUTION, Choice
from prepass.pipeline.registry import default_registry
from prepass.tuning.evaluate import evaluate
from prepass.tuning.extract import extract
from prepass.tuning.op_text import op_module
from prepass.tuning.space import configs, kernels, nearest, picked, start

from .conftest import GFX942
from .test_configure_attention import attention_op
from .test_select_kernels import product
from .tuning_cases import LARGE, OP, request, small_op


def test_the_space_has_the_picked_config_and_fits():
    for text in (OP, LARGE, "attention:m=1024,k1=128,k2=1024,element_type=bf16", "attention:m=64,k1=40,k2=96"):
        (op,) = extract(op_module(text), flags=GFX942).ops
        space = configs(ATTENTION, op.shape)
        centre = picked(ATTENTION, op.shape)
        assert centre in space
        assert len(space) == len(set(space)) > 40
        assert all(attention_misfit(config, op.shape) is None for config in space)
        assert nearest(space, centre)[0] == centre


def test_kernels_are_candidates():
    (op,) = extract(product(128, 64, 64), flags=GFX942).ops
    assert Choice(kernel="direct-matmul") in start(op.kind, op.shape)
    price = evaluate(request(op, Choice(kernel="direct-matmul")))
    assert (price.workgroups, price.waves, price.lds_bytes) == (2, 4, 0)
    with pytest.raises(prepass.PrepassError, match="the choice was not taken: direct-matmul: M is 48"):
        (other,) = extract(product(48, 64, 64), flags=GFX942).ops
        evaluate(request(other, Choice(kernel="direct-matmul")))


def test_parameters_of_kernels_are_candidates():
    choices = [choice for choice in kernels(CONVOLUTION) if choice.kernel == "convolution"]
    assert choices[0] == Choice(kernel="convolution")
    assert len({choice.parameters for choice in choices}) == len(choices) >= 3
    source = default_registry().kernel("convolution").examples()[0].source
    (op,) = extract(source, flags=GFX942).ops
    prices = {choice: evaluate(request(op, choice)) for choice in choices}
    assert len({price.lds_bytes for price in prices.values()}) > 1
    assert min(price.cycles for price in prices.values()) < evaluate(request(op, Choice())).cycles


def test_a_config_that_cannot_be_is_an_error():
    with pytest.raises(prepass.PrepassError, match="its config cannot be: 48 keys do not divide 128"):
        evaluate(request(small_op(), Choice(AttentionTile(waves=2, rows=16, keys=48))))


def test_a_key_is_of_all_that_the_result_depends_on():
    base = request(small_op(), Choice())
    tile = picked(small_op().kind, small_op().shape)
    others = [
        request(small_op(), Choice(tile)),
        dataclasses.replace(base, source=base.source + " "),
        dataclasses.replace(base, flags=(*GFX942, "--iree-opt-level=O3")),
    ]
    assert len({base.key, *(other.key for other in others)}) == 4
    assert dataclasses.replace(base, files=("x.py",)).key == base.key


def test_equal_dispatches_are_one():
    once = attention_op(2, 128, 128, 64, "f16", value_transposed=True)
    first = once[once.index("  %out =") : once.index("  return")]
    second = first.replace("%out =", "%again =").replace("ins(%q,", "ins(%out,")
    twice = once.replace("  return %out", second + "  return %again")
    (op,) = extract(twice, flags=GFX942).ops
    assert list(op.dispatches.values()) == [2]


def test_dynamic_ops_are_left_out():
    source = attention_op(2, 128, 128, 64, "f16", value_transposed=True)
    source = (
        source.replace("2x128x64xf16", "2x?x64xf16")
        .replace("tensor.empty()", "tensor.empty(%rows)")
        .replace(
            "%scale =",
            "%one = arith.constant 1 : index\n %rows = tensor.dim %q, %one : tensor<2x?x64xf16>\n %scale =",
            1,
        )
    )
    found = extract(source, flags=GFX942)
    assert found.ops == []
    (reason,) = found.skipped
    assert "something else than tensors of static shape" in reason


def test_masked_ops_in_words():
    (op,) = extract(op_module("attention:m=64,n=32,k1=64,k2=96,masked=true,value_transposed=false"), flags=GFX942).ops
    assert (op.shape.masked, op.shape.value_transposed, op.shape.n, op.shape.k2) == (True, False, 32, 96)

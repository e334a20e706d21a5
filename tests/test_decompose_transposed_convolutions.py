# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass-decompose-transposed-convolutions` keeps results, checked on llvm-cpu against numpy, with fewer products."""

from __future__ import annotations

import math
import random

import pytest

import prepass
from prepass.checking.numerics import compare
from prepass.ir.match import find_ops

from .conftest import LLVM_CPU
from .convolution_cases import CASES, FHWC, NHWC, ConvCase

PIPELINE = "builtin.module(prepass-decompose-transposed-convolutions)"
LAYOUTS = [
    {},
    NHWC,
    FHWC,
    {"input": "ncw", "filter": "fcw", "output": "nfw"},
    {"input": "ndhwc", "filter": "dhwcf", "output": "ndhwf", "sizes": (("d", 2), ("h", 3), ("w", 4))},
]


def random_case(seed: int) -> ConvCase:
    """A kernel smaller or larger than the stride, padding of any amount, a batch of 1 or 3, in any layout."""
    rng = random.Random(seed)
    layout = rng.choice(LAYOUTS)
    sizes = (*layout.get("sizes", (("h", rng.randint(2, 6)), ("w", rng.randint(2, 6)))), ("n", rng.choice([1, 3])))
    kernel = rng.randint(1, 5)
    low = rng.randint(0, 4)
    return ConvCase(
        f"transposed_{seed}",
        **{**layout, "sizes": sizes},
        kernel=kernel,
        transposed=rng.randint(2, 4),
        low=low,
        high=max(rng.randint(0, 4), kernel - low),
        element=rng.choice(["f32", "f16"]),
        after=rng.choice([(), ("bias",)]),
    )


@pytest.mark.parametrize("seed", range(12))
def test_results_stay_the_same(seed):
    case = random_case(seed)
    assert prepass.Pipeline().decompose_transposed_convolutions().run(case.module()).counters["decomposed"] == 1
    compiled = prepass.compile(case.module(), pipeline=PIPELINE, flags=LLVM_CPU)
    (result,) = prepass.run(compiled, *case.inputs())
    difference = compare([result], [case.reference()])
    assert difference.within(case.tolerance), (difference.largest, case)


def products(module) -> int:
    """How many products the convolutions of a module compute."""
    convolutions = find_ops(module.operation, lambda op: op.name.startswith("linalg.conv"))
    sizes = [[*op.results[0].type.shape, *op.operands[1].type.shape] for op in convolutions]
    channels = [op.operands[1].type.shape[0 if "fchw" in op.name else -1] for op in convolutions]
    # The channels out are a dim of both the result and the filter.
    return sum(math.prod(shape) // count for shape, count in zip(sizes, channels, strict=True))


@pytest.mark.parametrize(
    ("name", "ratio"), [("transposed_k2_s2", 4.0), ("transposed_k4_s2", 3.1), ("transposed_k3_s3", 9.0)]
)
def test_products_with_zeros_are_not_computed(name, ratio):
    source = next(case for case in CASES if case.name == name).module()
    before = prepass.Pipeline().run(source).module
    after = prepass.Pipeline().decompose_transposed_convolutions().run(source).module
    assert products(before) / products(after) >= ratio


@pytest.mark.slow
def test_transposed_convolutions_of_torch_agree():
    import torch
    from iree.turbine.aot import export

    for kernel, stride, padding, extra in ((4, 2, 1, 0), (2, 2, 0, 0), (3, 2, 1, 1), (5, 3, 2, 1), (3, 1, 1, 0)):
        torch.manual_seed(0)
        layer = torch.nn.ConvTranspose2d(6, 10, kernel, stride, padding, extra).eval()
        x = torch.randn(2, 6, 7, 5)
        text = str(export(layer, args=(x,)).mlir_module)
        run = prepass.Pipeline().decompose_transposed_convolutions()
        compiled = prepass.compile(text, pipeline=run, flags=[*LLVM_CPU, "--iree-input-type=torch"])
        (result,) = prepass.run(compiled, x.numpy())
        assert compare([result], [layer(x).detach().numpy()]).within(1e-5), (kernel, stride)

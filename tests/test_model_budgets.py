# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many dispatches whole models take on gfx942 with the pipelines that are meant for them."""

import pytest

from prepass.amdgpu.inputs import compile_to_assembly
from prepass.pipelines.flux import PIPELINE as FLUX
from prepass.pipelines.llm import PIPELINE as LLM

from .conftest import GFX942
from .dispatches import cost

# The model, its pipeline, and the most dispatches that it may take.
BUDGETS = [
    ("clip1_sdpa", LLM, 87),
    ("clip1_eager", LLM, 87),
    ("clip2_sdpa", LLM, 228),
    ("flux11", FLUX, 46),
]


@pytest.mark.slow
@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize(("model", "pipeline", "most"), BUDGETS, ids=lambda value: getattr(value, "name", value))
def test_models_stay_within_their_budgets(corpus, model, pipeline, most, level):
    flags = [flag.text for flag in pipeline.flags]
    found = cost(corpus / "models" / f"{model}.mlir", pipeline.as_text, level, *flags)
    assert found.dispatches <= most
    stock = cost(corpus / "models" / f"{model}.mlir", None, level)
    assert found.weight_bytes <= 1.01 * stock.weight_bytes
    assert found.initializer_read_bytes <= stock.weight_bytes


@pytest.mark.slow
@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize("name", ["attn_cross_f16", "kv_cross_f16", "attn_self_bias_f16"])
def test_all_products_of_a_block_use_matrix_instructions(corpus, name, level):
    flags = (*GFX942, f"--iree-opt-level={level}")
    kernels = compile_to_assembly(corpus / "contractions" / f"{name}.mlir", preset="prepass-llm", flags=flags)
    products = [
        kernel for kernel in kernels if any(kind in kernel.name for kind in ("matmul", "contract", "attention"))
    ]
    assert len(products) >= len(kernels) - 1  # The text of 77 tokens is padded in a copy.
    assert all(kernel.counts.mfmas and not kernel.spills for kernel in products)

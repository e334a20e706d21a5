# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many dispatches whole models take on gfx942 with the pipelines that are meant for them."""

import pytest

from prepass.amdgpu.inputs import compile_to_assembly
from prepass.pipelines.flux import PIPELINE as FLUX
from prepass.pipelines.llm import PIPELINE as LLM
from prepass.pipelines.sdxl import PIPELINE as SDXL

from .conftest import GFX942
from .dispatches import cost

# The model, its pipeline, and the most dispatches that it may take, in its function and when it is loaded.
BUDGETS = [
    ("clip1_sdpa", LLM, 87, 1),
    ("clip1_eager", LLM, 87, 1),
    ("clip2_sdpa", LLM, 228, 1),
    ("flux11", FLUX, 46, 0),
    ("vae64", SDXL, 103, 33),  # As many as it has filters of 3x3, which are transposed.
]


def model_cost(corpus, model, pipeline, level):
    """The cost of a model with a preset, its flags included."""
    return cost(corpus / "models" / f"{model}.mlir", pipeline.as_text, level, *pipeline.flags_beside(GFX942))


@pytest.mark.slow
@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize(
    ("model", "pipeline", "most", "most_at_load"), BUDGETS, ids=lambda value: getattr(value, "name", value)
)
def test_models_stay_within_their_budgets(corpus, model, pipeline, most, most_at_load, level):
    found = model_cost(corpus, model, pipeline, level)
    assert found.dispatches <= most
    assert found.initializer_dispatches <= most_at_load
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


@pytest.mark.slow
def test_the_vae_copies_and_transposes_nothing(corpus):
    found = model_cost(corpus, "vae64", SDXL, "O3")
    assert not [name for name in found.names if "memcpy" in name]
    # Filters are transposed when the program is loaded.
    assert not [name for name in found.names if "transpose" in name and "initializer" not in name]
    assert found.transient_bytes <= 370e6


@pytest.mark.slow
def test_the_unet_stays_within_its_budget(corpus):
    found = model_cost(corpus, "unet", SDXL, "O3")
    assert found.dispatches <= 978
    assert found.initializer_dispatches <= 40
    assert found.transient_bytes <= 294e6
    # The image on its way in.
    assert sum("transpose" in name for name in found.names if "initializer" not in name) <= 1
    # Filters are read once, to be transposed when the program is loaded.
    assert found.initializer_read_bytes <= 0.5 * found.weight_bytes

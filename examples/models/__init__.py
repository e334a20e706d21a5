# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models to export, in their own size and in one that compiles and runs in seconds on any machine."""

from __future__ import annotations

from prepass.errors import PrepassError, did_you_mean

from .base import Instance, Model, Settings
from .flux import FLUX
from .llama import LLAMA, LLAMA_DECODE
from .sdxl import CLIP1, CLIP2, UNET, VAE

MODELS: dict[str, Model] = {model.name: model for model in (CLIP1, CLIP2, UNET, VAE, FLUX, LLAMA, LLAMA_DECODE)}

__all__ = ["MODELS", "Instance", "Model", "Settings", "find"]


def find(name: str) -> Model:
    """A model by its name. Raises PrepassError."""
    if name not in MODELS:
        near = did_you_mean(name, MODELS) or f"; models are {', '.join(MODELS)}"
        raise PrepassError(f"no model '{name}'{near}")
    return MODELS[name]

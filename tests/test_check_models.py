# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The presets keep the results of the models in examples/, at test size."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXPORT = Path(__file__).resolve().parent.parent / "examples" / "export.py"
MODELS = {
    "sdxl-clip1": "llm", "sdxl-clip2": "llm", "sdxl-unet": "sdxl", "sdxl-vae": "sdxl", "flux": "flux", "llama": "llm",
    "llama-decode": "llm",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize(("model", "preset"), MODELS.items())
def test_a_preset_keeps_the_results_of_a_model(model, preset, dtype, tmp_path, program):
    pytest.importorskip("diffusers")
    pytest.importorskip("transformers")
    path = tmp_path / "model.mlir"
    subprocess.run([sys.executable, EXPORT, model, "--dtype", dtype, "--mlir", path], check=True, capture_output=True)
    inputs = []
    if model == "llama-decode":
        # A position in the middle of the cache: of one key, softmax is 1 whatever the score.
        for name, value in (("token", [[7]]), ("position", 32)):
            np.save(tmp_path / f"{name}.npy", np.array(value))
            inputs.append(f"--input=@{tmp_path / name}.npy")
    result = program("prepass-check", path, f"--prepass-preset={preset}", f"--output={tmp_path / 'out'}", *inputs)
    assert result.returncode == 0, result.stderr.decode()
    assert b"note: " not in result.stdout

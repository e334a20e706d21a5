# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The exporter of models in examples/: results against torch, files, weights that take no memory, mistakes."""

import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

EXPORT = Path(__file__).resolve().parent.parent / "examples" / "export.py"

# Others run with --slow: they are of the same code as these, or take longer. The bundle below runs the Llama.
FAST = {("sdxl-clip1", "f32", "sdpa"), ("flux", "f16", "sdpa")}
CASES = [
    (model, dtype, attention)
    for model in ("sdxl-clip1", "sdxl-clip2", "sdxl-unet", "sdxl-vae", "flux", "llama", "llama-decode")
    for dtype in ("f32", "f16")
    for attention in ("sdpa", "eager")
]


@pytest.fixture(autouse=True)
def needs_models():
    for package in ("torch", "iree.turbine", "transformers", "diffusers"):
        pytest.importorskip(package)


def export(*arguments):
    return subprocess.run([sys.executable, EXPORT, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("model", "dtype", "attention"),
    [pytest.param(*case, marks=[] if case in FAST else pytest.mark.slow) for case in CASES],
)
def test_a_model_with_its_preset_computes_what_torch_does(model, dtype, attention):
    result = export(model, "--dtype", dtype, "--attention", attention, "--check")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "relative errors: " in result.stdout


def test_it_writes_all_files(tmp_path):
    """And a program that reads the weights that were written beside it."""
    names = ("model.vmfb", "model.mlir", "model.irpa")
    flags = [
        arg
        for flag, name in zip(("-o", "--mlir", "--parameters"), names, strict=True)
        for arg in (flag, tmp_path / name)
    ]
    result = export("llama", *flags, "--layers=1", "--target=gfx942")
    assert result.returncode == 0, result.stderr
    assert not result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    text = (tmp_path / "model.mlir").read_text()
    assert '#flow.parameter.named<"model"::"model.layers.0.mlp.up_proj.weight">' in text
    assert "layers.1" not in text
    assert "modeling_llama.py" in text


def test_a_bundle_runs_with_its_script(tmp_path):
    result = export("llama", "--layers=1", "--bundle", tmp_path / "llama")
    assert result.returncode == 0, result.stderr
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    run = [tmp_path / "llama" / "run.sh"]
    finished = subprocess.run(run, capture_output=True, text=True, check=False, env=environment)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "[SUCCESS]" in finished.stdout
    expected = tmp_path / "llama" / "expected0.bin"
    expected.write_bytes(bytes(len(expected.read_bytes())))
    finished = subprocess.run(run, capture_output=True, text=True, check=False, env=environment)
    assert finished.returncode != 0
    assert "[FAILED]" in finished.stdout
    benchmark = [tmp_path / "llama" / "benchmark.sh", "--benchmark_repetitions=1", "--benchmark_min_time=1x"]
    finished = subprocess.run(benchmark, capture_output=True, text=True, check=False, env=environment)
    assert finished.returncode == 0, finished.stderr
    assert "BM_main" in finished.stdout


def test_weights_in_a_file_are_those_of_the_model(tmp_path, monkeypatch):
    import torch
    from iree.turbine import aot

    monkeypatch.syspath_prepend(EXPORT.parent)
    from models import MODELS, Settings

    assert export("sdxl-clip1", "--parameters", tmp_path / "model.irpa", "--dtype=f16").returncode == 0
    instance = MODELS["sdxl-clip1"].instantiate_with_weights(Settings(dtype=torch.float16))
    archive = dict(aot.ParameterArchive(tmp_path / "model.irpa").items())
    wanted = dict(instance.weights.named_parameters(prefix=instance.prefix))
    assert archive.keys() == wanted.keys()
    assert all(torch.equal(archive[name].as_tensor(), parameter) for name, parameter in wanted.items())


def test_a_model_at_full_size_takes_next_to_no_memory():
    code = (
        f"import sys, resource; sys.path.insert(0, {str(EXPORT.parent)!r})\n"
        "import torch; from models import MODELS, Settings\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "model = MODELS['sdxl-clip2'].instantiate(Settings(size='full', dtype=torch.float16)).weights\n"
        "used = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
        "print(sum(p.numel() * p.element_size() for p in model.parameters()), used)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    size, used = map(int, result.stdout.split())
    assert size > 1e9
    assert used < 1e8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "dispatches", "at_load"), [("flux", 776, 0), ("llama", 322, 0), ("llama-decode", 422, 3)]
)
def test_models_that_exceed_memory_compile_with_all_layers(model, dispatches, at_load, tmp_path):
    result = export(model, "--size=full", "--target=gfx942", "-o", tmp_path / "model.vmfb")
    assert result.returncode == 0, result.stderr
    counts = re.fullmatch(r"(\d+) dispatches, (\d+) more when it is loaded\n", result.stdout)
    assert int(counts[1]) <= dispatches
    assert int(counts[2]) <= at_load
    assert (tmp_path / "model.vmfb").stat().st_size
    assert 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 2e9


@pytest.mark.slow
def test_the_optimization_level_counts():
    """At O0 stock IREE copies and broadcasts what it fuses at O3."""
    counts = [
        int(
            export("llama", "--layers=1", "--preset=none", "--target=gfx942", "-o", "/dev/null", level).stdout.split()[
                0
            ]
        )
        for level in ("--opt-level=O0", "--opt-level=O3")
    ]
    assert counts[1] < counts[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sdxl-unte", "--check"], "no model 'sdxl-unte'; did you mean 'sdxl-unet'?"),
        (["flux"], "nothing to do"),
        (["flux", "--check", "--layers=0"], "--layers takes a number from 1"),
        (["flux", "--check", "--preset=prepass-fulx"], "unknown pipeline 'prepass-fulx'; did you mean 'prepass-flux'?"),
        (["flux", "-o", "/nowhere/flux.vmfb"], "cannot open output '/nowhere/flux.vmfb'"),
        (["flux", "--bundle", __file__], f"cannot open output '{__file__}': Not a directory"),
    ],
)
def test_mistakes_are_one_line(arguments, message, monkeypatch, capsys):
    """In this process: importing torch takes longer than all of them."""
    monkeypatch.syspath_prepend(EXPORT.parent)
    from export import main

    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("export.py: error: ")
    assert message in error
    assert error.count("\n") == 1

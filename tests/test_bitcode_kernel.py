# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The example of a kernel in C: built by its CMake target, loaded from a file, executed in the simulator."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from prepass.checking.numerics import compare
from prepass.simulator import simulate

from .test_select_kernels import inputs, product

ROOT = Path(__file__).resolve().parent.parent
CLANGS = ("clang", "clang-22", "clang-21", "clang-20", "clang-19")


def clang():
    """A clang that compiles for AMD GPUs, or None."""
    for path in filter(None, map(shutil.which, CLANGS)):
        targets = subprocess.run([path, "--print-targets"], capture_output=True, text=True, check=False).stdout
        if "amdgcn" in targets:
            return path
    return None


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """The file that the target makes."""
    path = clang()
    if path is None or shutil.which("cmake") is None:
        pytest.skip("no clang with the AMDGPU target, or no CMake")
    build = tmp_path_factory.mktemp("build")
    configure = ["cmake", "-S", str(ROOT), "-B", str(build), f"-DPREPASS_CLANG={path}"]
    for command in (configure, ["cmake", "--build", str(build), "--target", "bitcode_kernel"]):
        subprocess.run(command, check=True, capture_output=True)
    return build / "bitcode_kernel" / "kernel.py"


def arguments(tmp_path, sizes, body):
    """A program, its inputs and its result, as files."""
    a, b = inputs(*sizes)
    expected = a.astype(np.float32) @ b.astype(np.float32).T
    expected = np.maximum(expected, 0) if body == "%m" else expected
    for name, array in {"a": a, "b": b, "expected": expected}.items():
        np.save(tmp_path / f"{name}.npy", array)
    source = tmp_path / "product.mlir"
    source.write_text(product(*sizes, body=body))
    flags = [f"--input=@{tmp_path}/{name}.npy" for name in "ab"]
    return [source, *flags, f"--expected_output=@{tmp_path}/expected.npy", "--expected_tolerance=1e-4"]


@pytest.mark.parametrize("body", ["%x", "%m"])
def test_the_example_computes_what_numpy_does(program, tmp_path, kernel, body):
    flags = [f"--prepass-load={kernel}", "--prepass-kernels=bitcode-matmul", "--prepass-remarks=applied"]
    result = program("prepass-simulate", *arguments(tmp_path, (128, 64, 48), body), *flags)
    assert result.returncode == 0, result.stderr
    assert b"computed by bitcode-matmul" in result.stderr
    assert b"result[0] matches" in result.stdout


def test_the_function_is_inlined(program, tmp_path, kernel):
    source = tmp_path / "product.mlir"
    source.write_text(product(64, 64, 32))
    dump = f"--iree-hal-dump-executable-intermediates-to={tmp_path}"
    flags = ["--iree-hal-target-device=hip", "--iree-rocm-target=gfx942", dump]
    load = [f"--prepass-load={kernel}", "--prepass-kernels=bitcode-matmul"]
    result = program("prepass-compile", source, "-o", tmp_path / "product.vmfb", *flags, *load)
    assert result.returncode == 0, result.stderr
    (assembly,) = tmp_path.glob("*.rocmasm")
    text = assembly.read_text()
    assert "v_mfma_f32_16x16x16_f16" in text
    assert "s_swappc" not in text


def test_the_stock_code_agrees(tmp_path):
    a, b = inputs(128, 64, 48)
    (stock,) = simulate(product(128, 64, 48), [a, b])
    assert compare([stock], [a.astype(np.float32) @ b.astype(np.float32).T]).within(1e-4)


def test_without_its_bitcode_the_error_is_one_line(program, tmp_path):
    source = tmp_path / "product.mlir"
    source.write_text(product(64, 64, 32))
    kernel = tmp_path / "kernel.py"
    shutil.copy(ROOT / "examples" / "bitcode_kernel" / "kernel.py", kernel)
    flags = ["--iree-hal-target-device=hip", "--iree-rocm-target=gfx942"]
    load = [f"--prepass-load={kernel}", "--prepass-kernels=bitcode-matmul"]
    result = program("prepass-compile", source, "-o", tmp_path / "product.vmfb", *flags, *load)
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 1
    assert (
        b"matmul.bc: No such file or directory: build it, cmake --build build --target bitcode_kernel" in result.stderr
    )

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`prepass kernels`, and kernels that files and packages bring along."""

from importlib.metadata import EntryPoint

import pytest
from iree.compiler import ir
from iree.compiler.api import Session

from prepass.errors import PrepassError
from prepass.kernels import KERNELS
from prepass.pipeline.registry import Registry, default_registry

OTHERS = """\
import dataclasses
from prepass.kernels.contraction.matmul import MATMUL

MINE = dataclasses.replace(MATMUL, name="my-matmul", by_default=True)
"""


@pytest.fixture
def others(tmp_path):
    """A file with a kernel."""
    path = tmp_path / "others.py"
    path.write_text(OTHERS)
    return path


def test_list(program, others):
    result = program("prepass", "kernels")
    rows = [line.split("\t") for line in result.stdout.decode().splitlines()]
    assert [row[0] for row in rows] == list(KERNELS)
    assert ["direct-matmul", "contraction", "gfx942", ""] in [row[:4] for row in rows]
    result = program("prepass", f"--prepass-load={others}", "kernels")
    # Kernels of others are tried first. A kernel of ours that the file imports is not its own.
    assert result.stdout.decode().splitlines()[0].startswith("my-matmul\tcontraction\tgfx942\tdefault\t")


def test_show(program):
    result = program("prepass", "kernels", "show", "direct-matmul", "--example=1024x1024x1024 bf16")
    description, _, text = result.stdout.decode().partition("Its MLIR for 1024x1024x1024 bf16:\n")
    assert "a workgroup computes\tM 64, N 64" in description
    with Session().context:
        (function,) = ir.Module.parse(text).body.operations
        assert "tensor<64x?xbf16>" in str(function.attributes["function_type"])


@pytest.mark.parametrize("name", default_registry().kernel_names())
def test_descriptions_are_whole(name):
    kernel = default_registry().kernel(name)
    facts = kernel.description
    assert kernel.name == name
    assert facts.summary.endswith(".")
    assert facts.reason.endswith(".")
    assert facts.targets
    assert facts.element_types
    assert facts.conditions
    assert facts.tile
    assert facts.workgroup_size % 64 == 0
    assert facts.lds_bytes <= 65536
    assert kernel.examples()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show"], "expected the name of one kernel, got 0"),
        (["direct-matmol"], "unknown kernel 'direct-matmol'; did you mean 'direct-matmul'?"),
        (["direct-matmul", "--example=64"], "kernel 'direct-matmul' has no example '64'; it has 1024x1024x1024 f16"),
    ],
)
def test_mistakes(program, words, message):
    result = program("prepass", "kernels", *words)
    assert result.returncode == 1
    assert message in result.stderr.decode()
    assert len(result.stderr.splitlines()) == 1


def test_entry_points():
    registry = Registry()
    registry.add_entry_point(EntryPoint("good", "prepass.kernels.contraction.matmul:MATMUL", "prepass.kernels"))
    registry.add_entry_point(EntryPoint("gone", "prepass.kernels.contraction.matmul:GONE", "prepass.kernels"))
    registry.add_entry_point(EntryPoint("bad", "prepass.kernels:KERNELS", "prepass.kernels"))
    assert registry.kernel("good").name == "direct-matmul"
    with pytest.raises(PrepassError, match=r"'gone' of prepass\.kernels.contraction.matmul cannot be loaded"):
        registry.kernel("gone")
    with pytest.raises(PrepassError, match=r"'bad' of prepass.kernels is not a Kernel"):
        registry.kernel("bad")
    assert registry.pass_names() == []

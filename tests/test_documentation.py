# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The code in the documentation runs as it stands there."""

import json
import re
import shlex
from importlib import metadata
from pathlib import Path

import pytest

from prepass.pipeline.registry import default_registry

ROOT = Path(__file__).resolve().parent.parent


def test_the_example_pass_works(program, tmp_path):
    text = (ROOT / "docs" / "writing-a-pass.md").read_text()
    source = re.search(r"```python\n# double_adds.py\n(.*?)```", text, re.DOTALL)[1]
    (tmp_path / "double_adds.py").write_text(source)
    (tmp_path / "x.mlir").write_text(re.search(r"```mlir\n(.*?)```", text, re.DOTALL)[1])
    name, *arguments = shlex.split(re.search(r"^prepass-opt .*", text, re.MULTILINE)[0])
    result = program(name, *arguments, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert b"arith.mulf %arg0, %cst" in result.stdout
    assert result.stderr.decode() in text


def test_names_in_the_documentation_exist():
    registry = default_registry()
    scripts = {entry.name for entry in metadata.entry_points(group="console_scripts")}
    # The format of a table.
    known = {*registry.pass_names(), *registry.pipeline_names(), *scripts, "prepass-tuning-table"}
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        names = set(re.findall(r"(?<![\w/.-])prepass-[a-z0-9-]*[a-z0-9]", page.read_text()))
        assert names <= known, f"{page.name}: {names - known}"


def test_the_notebook_runs(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    notebook = json.loads((ROOT / "examples" / "pipeline_builder.ipynb").read_text())
    scope: dict[str, object] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), scope)
    assert str(scope["pipeline"]) == "builtin.module(prepass-raise-attention,canonicalize,cse)"
    assert scope["statistics"].dispatches == 1


def test_the_notebook_of_a_transformer_block_runs():
    """In a kernel of its own, as a user runs it; it has assertions."""
    for package in ("diffusers", "iree.turbine", "ipykernel", "matplotlib"):
        pytest.importorskip(package)
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    notebook = nbformat.read(ROOT / "examples" / "transformer_block.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
    text = str(outputs)
    assert "applied: raised to iree_linalg_ext.attention" in text
    assert "│ preset prepass-sdxl" in text

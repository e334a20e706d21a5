# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels in whole models: how many ops they compute, and how long compiling takes with them."""

import re
import time
from collections import Counter

import pytest

import prepass
from prepass.compiler.kernels import kernel_dispatches
from prepass.ir.kernels import ATTENTION, CONVOLUTION
from prepass.ir.match import find_ops, walk_ops
from prepass.pipelines.sdxl import PIPELINE as SDXL

from .conftest import GFX942

MOST_TIME = 1.5
_EXPORT = re.compile(r"::@(\w+)\]?$")


def count_dispatches(module, counts):
    """Count how often each kernel's dispatches, and those of attention and convolutions without one, are dispatched."""
    names = dict.fromkeys(kernel_dispatches(module), "kernel")
    for function in walk_ops(module, "func.func"):
        name = function.attributes["sym_name"].value
        for kind in (ATTENTION, CONVOLUTION):
            if name not in names and find_ops(function, kind.recognises):
                names[name] = f"{kind.name} without"
    for dispatch in walk_ops(module, "stream.cmd.dispatch"):
        for entry in dispatch.attributes["entry_points"]:
            name = _EXPORT.search(str(entry))[1]
            counts[names.get(name, "other"), "attention" in name, "conv" in name] += 1


@pytest.mark.slow
def test_the_unet_is_computed_by_kernels(corpus):
    path = corpus / "models" / "unet.mlir"
    flags = [*GFX942, *SDXL.flags_beside(GFX942)]
    started = time.process_time()
    prepass.compile(path, flags=flags)
    stock = time.process_time() - started
    counts, remarks = Counter(), []
    hooks = {"executable-sources": lambda module: count_dispatches(module, counts)}
    started = time.process_time()
    prepass.compile(
        path,
        preset="prepass-sdxl",
        kernels="default",
        flags=GFX942,
        hooks=hooks,
        on_remark=lambda remark, _: remarks.append(remark),
    )
    ours = time.process_time() - started
    selected = [remark for remark in remarks if remark.pass_name == "prepass-select-kernels"]
    print(f"\ndispatches: {dict(counts)}; compile time {ours:.0f} s, stock {stock:.0f} s")
    print("\n".join(f"{count} × {text}" for text, count in Counter(remark.message for remark in selected).items()))
    assert counts["attention without", True, False] == 0
    assert ours <= MOST_TIME * stock

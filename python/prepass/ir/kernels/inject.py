# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Putting kernels into the executables that use them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from iree.compiler import ir

from prepass.ir.kernels.config import COMPILATION_INFO, UKERNEL, descriptor
from prepass.ir.kernels.kernel import KernelUse

_OBJECTS = "objects"
_PROVIDER = "iree_codegen.ukernel_provider"
_SYMBOLIC = f"{_PROVIDER} = #iree_codegen.symbolic_ukernel_provider"
_GIVEN_PROVIDER = re.compile(rf"{re.escape(_PROVIDER)} = #[\w.]+(?:<[^<>]*>)?(?:, )?")
_CONFIGURATION = re.compile(r'(#hal\.executable\.target<"[^"]*", "[^"]*", \{)')


def annotate(op: ir.Operation, use: KernelUse) -> None:
    """Attach what makes the compiler replace `op` by the kernel's function."""
    op.attributes[UKERNEL] = descriptor(use.function)
    op.attributes[COMPILATION_INFO] = use.compilation_info
    for name, attribute in use.attributes.items():
        op.attributes[name] = attribute


def inject(variant: ir.Operation, uses: Iterable[KernelUse]) -> None:
    """Build the functions of `uses` in a variant, and let its target look for kernels there.

    The objects that they call are added to those of the variant.
    """
    variant.attributes["target"] = _with_symbolic_provider(variant.attributes["target"])
    body = variant.regions[0].blocks[0]
    defined = {_symbol(op.operation) for op in body.operations}
    inner = next(op for op in body.operations if op.operation.name == "builtin.module")
    for function, use in {use.function: use for use in uses}.items():
        if function not in defined:
            with ir.InsertionPoint(inner), variant.location:
                use.build()
            _add_objects(variant, use.objects)


def _add_objects(variant: ir.Operation, objects: Iterable[ir.Attribute]) -> None:
    given = list(ir.ArrayAttr(variant.attributes[_OBJECTS])) if _OBJECTS in variant.attributes else []
    together = list(dict.fromkeys([*given, *objects]))
    if together:
        variant.attributes[_OBJECTS] = ir.ArrayAttr.get(together)


def _symbol(op: ir.Operation) -> str:
    return ir.StringAttr(op.attributes["sym_name"]).value if "sym_name" in op.attributes else ""


def _with_symbolic_provider(target: ir.Attribute) -> ir.Attribute:
    """The target, looking kernels up by symbol; another provider is for other ops than those of the variant."""
    # The attribute has no accessors in Python, so its text is edited.
    text = _GIVEN_PROVIDER.sub("", str(target))
    return ir.Attribute.parse(_CONFIGURATION.sub(rf"\1{_SYMBOLIC}, ", text, count=1))

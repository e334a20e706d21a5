# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which kernels a user asks for, by name or by one of three words."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from iree.compiler import ir

from prepass.errors import PrepassError, did_you_mean
from prepass.ir.kernels.kernel import Kernel
from prepass.ir.records import plain
from prepass.pipeline.options import OptionError
from prepass.pipeline.registry import default_registry
from prepass.pipeline.resolve import ROOT, Element, Nest, PythonPass, resolve_pipeline

if TYPE_CHECKING:
    from prepass.ir.targets.tuning_table import Choice

SELECT_KERNELS = "prepass-select-kernels"
# `tuned` are those that a tuning table names.
WORDS = ("none", "default", "all", "tuned")


def check_kernels(names: Sequence[str]) -> None:
    """Raise OptionError for a name that is no kernel's, with the nearest one, and for a word among names."""
    registry = default_registry()
    known = registry.kernel_names()
    for name in names:
        if name in WORDS and len(names) > 1:
            raise OptionError(f"'{name}' stands alone, not among names of kernels")
        if name not in WORDS and name not in known:
            near = did_you_mean(name, [*known, *WORDS]) or "; `prepass kernels` lists them"
            raise OptionError(f"no kernel '{name}'{near}")


def chosen_kernels(names: Sequence[str]) -> list[Kernel]:
    """The kernels that are asked for, in the order in which they are tried."""
    registry = default_registry()
    if tuple(names) in (("none",), ("tuned",)):
        return []
    if tuple(names) in (("all",), ("default",)):
        kernels = [registry.kernel(name) for name in registry.kernel_names()]
        return [kernel for kernel in kernels if kernel.by_default or tuple(names) == ("all",)]
    return [registry.kernel(name) for name in names]


def tuned_kernel(choice: Choice) -> Kernel:
    """The kernel that a tuning table chooses. Raises PrepassError when there is none, or none with such parameters."""
    kernel = default_registry().kernel(choice.kernel)
    for name, value in choice.parameters:
        if name not in kernel.tunable:
            near = did_you_mean(name, kernel.tunable)
            raise PrepassError(f"kernel '{choice.kernel}' has no parameter '{name}'{near}")
        if value not in kernel.tunable[name]:
            raise PrepassError(f"kernel '{choice.kernel}' has no '{name}' of {plain(value)}")
    return dataclasses.replace(kernel, **dict(choice.parameters))


def parse_kernels(kernels: str | Sequence[str]) -> tuple[str, ...]:
    """The names in `all` or `a,b`, or in a list. Raises PrepassError."""
    names = tuple(kernels.split(",")) if isinstance(kernels, str) else tuple(kernels)
    try:
        check_kernels(names)
    except OptionError as error:
        raise PrepassError(f"kernels: {error}") from None
    return names


def resolve_with_kernels(text: str, kernels: str | Sequence[str] | None, context: ir.Context) -> Nest | None:
    """The passes of a pipeline text that selects the kernels named, whatever it selects by itself.

    With None for kernels it is the pipeline as it is; without a pipeline either, None. Raises PipelineError and
    PrepassError.
    """
    registry = default_registry()
    pipeline = resolve_pipeline(text, registry, context) if text else None
    if kernels is None:
        return pipeline
    names = parse_kernels(kernels)
    pipeline = _without_selection(pipeline or Nest(ROOT, ()))
    pass_class = registry.find_pass(SELECT_KERNELS)
    if pass_class is None:
        return pipeline
    selection = PythonPass(dataclasses.replace(pass_class(), kernels=names))
    return Nest(pipeline.anchor, (*pipeline.elements, selection))


def _without_selection(nest: Nest) -> Nest:
    return Nest(nest.anchor, tuple(_nested(element) for element in nest.elements if not _selects(element)))


def _nested(element: Element) -> Element:
    return _without_selection(element) if isinstance(element, Nest) else element


def _selects(element: Element) -> bool:
    return isinstance(element, PythonPass) and element.instance.name == SELECT_KERNELS

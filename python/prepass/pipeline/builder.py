# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pipelines put together in Python, for notebooks and scripts.

    Pipeline().raise_attention().native("canonicalize").cse().run(module)

There is a method for every registered pass and named pipeline: its name in
snake_case, without the prefix `prepass-`; its arguments are the pass's options.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from prepass.errors import PrepassError, did_you_mean
from prepass.ir.parse import ModuleSource, copy_module
from prepass.pipeline.base import Pass
from prepass.pipeline.manager import run_pipeline
from prepass.pipeline.options import Option, OptionError, options_of, parse_value, print_value
from prepass.pipeline.registry import PREFIX, Registry, default_registry
from prepass.pipeline.resolve import ROOT, print_pass, resolve_pipeline
from prepass.pipeline.result import PipelineResult
from prepass.pipeline.text import parse_pipeline

if TYPE_CHECKING:
    from prepass.pipeline.pass_methods import PassMethods
else:
    # The methods are made when they are asked for; editors read them from pass_methods.pyi.
    PassMethods = object


@dataclasses.dataclass(frozen=True)
class Pipeline(PassMethods):
    """An immutable list of pipeline elements; each method returns a longer pipeline.

    `str()` is the pipeline text, and `Pipeline.parse` reads it back.
    """

    elements: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Pipeline:
        """The pipeline that a text spells. Raises PipelineError."""
        return cls(tuple(map(str, parse_pipeline(text).elements)))

    def native(self, text: str) -> Pipeline:
        """Add pipeline text: native passes, nests such as `util.func(cse)`, options in braces."""
        return Pipeline((*self.elements, *map(str, parse_pipeline(f"{ROOT}({text})").elements)))

    def canonicalize(self) -> Pipeline:
        """Add the native canonicalizer."""
        return self.native("canonicalize")

    def cse(self) -> Pipeline:
        """Add the native common subexpression elimination."""
        return self.native("cse")

    def add(self, instance: Pass) -> Pipeline:
        """Add a registered pass with the options of `instance`."""
        return Pipeline((*self.elements, print_pass(instance)))

    def run(self, module: ModuleSource) -> PipelineResult:
        """Run on a copy of a module.

        Args:
          module: A module, MLIR text, bytecode, or the path of a file.

        Returns:
          The rewritten module with remarks, counters, timing and a diff.
        """
        copy = copy_module(module)
        before = str(copy)
        resolved = resolve_pipeline(str(self), default_registry(), copy.context)
        run = run_pipeline(resolved, copy.operation)
        return PipelineResult(str(resolved), copy, before, str(copy), run)

    def __str__(self) -> str:
        return f"{ROOT}({','.join(self.elements)})"

    def __add__(self, other: Pipeline) -> Pipeline:
        return Pipeline(self.elements + other.elements)

    def __getattr__(self, method: str) -> Callable[..., Pipeline]:
        registry = default_registry()
        name = _registered_name(method, registry)
        if pass_class := registry.find_pass(name):
            return _pass_method(self, method, pass_class)
        if pipeline := registry.find_pipeline(name):
            return _pipeline_method(self, method, name, pipeline.summary)
        near = did_you_mean(method, methods(registry))
        raise AttributeError(f"no pass or pipeline '{PREFIX}{method.replace('_', '-')}'{near}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *methods(default_registry())})


def methods(registry: Registry) -> list[str]:
    """The methods that a Pipeline has for what is registered."""
    return [method_name(name) for name in [*registry.pass_names(), *registry.pipeline_names()]]


def method_name(name: str) -> str:
    """The method that adds the pass or pipeline called `name`."""
    return name.removeprefix(PREFIX).replace("-", "_")


def signature_of(pass_class: type[Pass]) -> inspect.Signature:
    """The signature of a pass's method: its options as keywords."""
    parameters = [
        inspect.Parameter(o.field, inspect.Parameter.KEYWORD_ONLY, default=o.default, annotation=o.type)
        for o in options_of(pass_class)
    ]
    return inspect.Signature(parameters, return_annotation=Pipeline)


def _registered_name(method: str, registry: Registry) -> str:
    name = method.replace("_", "-")
    third_party = name in registry.pass_names() or name in registry.pipeline_names()
    return name if third_party else PREFIX + name


def _pass_method(pipeline: Pipeline, method: str, pass_class: type[Pass]) -> Callable[..., Pipeline]:
    options = {option.field: option for option in options_of(pass_class)}

    def add(**values: Any) -> Pipeline:
        checked = {field: _checked(options, method, field, value) for field, value in values.items()}
        return pipeline.add(dataclasses.replace(pass_class(), **checked))

    return _describe(add, method, inspect.getdoc(pass_class) or "", signature_of(pass_class))


def _checked(options: dict[str, Option], method: str, field: str, value: Any) -> Any:
    if field not in options:
        raise PrepassError(f"{method}() has no option '{field}'{did_you_mean(field, options)}")
    try:
        return parse_value(options[field], "none" if value is None else print_value(value).strip('"'))
    except OptionError as error:
        raise PrepassError(f"{method}(): {error}") from None


def _pipeline_method(pipeline: Pipeline, method: str, name: str, summary: str) -> Callable[..., Pipeline]:
    def add() -> Pipeline:
        return Pipeline((*pipeline.elements, name))

    return _describe(add, method, summary, inspect.Signature(return_annotation=Pipeline))


def _describe(
    function: Callable[..., Pipeline], name: str, doc: str, signature: inspect.Signature
) -> Callable[..., Pipeline]:
    function.__name__ = name
    function.__qualname__ = f"Pipeline.{name}"
    function.__doc__ = doc
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function

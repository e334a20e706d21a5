# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From pipeline text to passes: every name and option is checked, with its column."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from iree.compiler import ir

from prepass.errors import PipelineError, did_you_mean
from prepass.pipeline.base import Pass
from prepass.pipeline.native import BadOptions, UnknownPass, check_native, native_passes
from prepass.pipeline.options import OptionError, options_of, parse_value, print_value
from prepass.pipeline.registry import PREFIX, Registry
from prepass.pipeline.text import ElementText, NestText, OptionText, PassText, parse_pipeline, unquote

ROOT = "builtin.module"
_USUAL_ANCHORS = ("builtin.module", "func.func", "util.func", "util.initializer", "flow.executable", "hal.executable")


@dataclass(frozen=True)
class PythonPass:
    """A prepass pass with its options."""

    instance: Pass

    def __str__(self) -> str:
        return print_pass(self.instance)


@dataclass(frozen=True)
class NativePass:
    """A pass or pipeline of the compiler, as written."""

    text: PassText

    def __str__(self) -> str:
        return str(self.text)


@dataclass(frozen=True)
class Nest:
    """Elements that run on each op called `anchor`."""

    anchor: str
    elements: tuple[Element, ...]

    def __str__(self) -> str:
        return f"{self.anchor}({','.join(map(str, self.elements))})"


Element = PythonPass | NativePass | Nest


def print_pass(instance: Pass) -> str:
    """A pass in pipeline text; options at their defaults are left out."""
    given = [
        f"{option.spelling}={print_value(value)}"
        for option in options_of(type(instance))
        if (value := getattr(instance, option.field)) != option.default
    ]
    return f"{instance.name}{{{' '.join(given)}}}" if given else instance.name


def python_passes(element: Element) -> list[Pass]:
    """The prepass passes of a pipeline, in the order they run."""
    if isinstance(element, PythonPass):
        return [element.instance]
    if isinstance(element, Nest):
        return [found for nested in element.elements for found in python_passes(nested)]
    return []


def mentions_prepass(text: str, registry: Registry) -> bool:
    """Whether a pipeline text names a prepass pass or pipeline.

    A name with the prefix `prepass-` counts even if nothing is called so, so
    that its misspelling is reported by us and not dropped by the compiler.
    Raises PipelineError for text that cannot be parsed.
    """
    known = {*registry.pass_names(), *registry.pipeline_names()}

    def visit(element: ElementText) -> bool:
        if isinstance(element, NestText):
            return any(map(visit, element.elements))
        return element.name in known or element.name.startswith(PREFIX)

    return visit(parse_pipeline(text))


def resolve_pipeline(text: str, registry: Registry, context: ir.Context) -> Nest:
    """The passes of a pipeline text, named pipelines expanded.

    Raises PipelineError with the column of what is unknown or does not fit.
    """
    return _Resolver(text, registry, context).nest(parse_pipeline(text), ())


class _Resolver:
    def __init__(self, text: str, registry: Registry, context: ir.Context) -> None:
        self.text = text
        self.registry = registry
        self.context = context

    def error(self, message: str, column: int) -> PipelineError:
        return PipelineError(message, self.text, column)

    def nest(self, nest: NestText, outer: tuple[str, ...]) -> Nest:
        if not _is_registered(nest.anchor, self.context):
            near = did_you_mean(nest.anchor, _USUAL_ANCHORS)
            raise self.error(f"'{nest.anchor}' is no registered op to nest passes on{near}", nest.column)
        anchors = (*outer, nest.anchor)
        return Nest(nest.anchor, tuple(e for nested in nest.elements for e in self.element(nested, anchors)))

    def element(self, element: ElementText, anchors: tuple[str, ...]) -> tuple[Element, ...]:
        if isinstance(element, NestText):
            return (self.nest(element, anchors),)
        if pass_class := self.registry.find_pass(element.name):
            return (PythonPass(self.instantiate(pass_class, element, anchors)),)
        if pipeline := self.registry.find_pipeline(element.name):
            if element.options:
                raise self.error(f"pipeline '{element.name}' takes no options", element.options[0].column)
            if anchors != (ROOT,):
                raise self.error(f"pipeline '{element.name}' runs on {ROOT}, not on {anchors[-1]}", element.column)
            return resolve_pipeline(pipeline.text, self.registry, self.context).elements
        return (self.native(element, anchors),)

    def native(self, element: PassText, anchors: tuple[str, ...]) -> NativePass:
        try:
            check_native(anchors, str(element), self.context)
        except UnknownPass:
            raise self.error(self.unknown(element.name), element.column) from None
        except BadOptions as error:
            near = did_you_mean(error.option, native_passes().get(element.name, ())) if error.unknown else ""
            columns = {option.key: option.column for option in element.options}
            column = columns.get(error.option, element.column)
            raise self.error(f"{element.name}: {error}{near}", column) from None
        return NativePass(element)

    def unknown(self, name: str) -> str:
        ours = [*self.registry.pass_names(), *self.registry.pipeline_names()]
        names = ours if name.startswith(PREFIX) else [*ours, *native_passes()]
        return f"unknown pass '{name}'{did_you_mean(name, names)}"

    def instantiate(self, pass_class: type[Pass], element: PassText, anchors: tuple[str, ...]) -> Pass:
        if pass_class.anchor not in ("", anchors[-1]):
            wanted = f"'{element.name}' runs on {pass_class.anchor}, not on {anchors[-1]}"
            raise self.error(wanted, element.column)
        values: dict[str, object] = {}
        for written in element.options:
            field, value = self.option(pass_class, written, element.name)
            if field in values:
                raise self.error(f"option '{written.key}' is given twice", written.column)
            values[field] = value
        try:
            return dataclasses.replace(pass_class(), **values)
        except OptionError as error:
            raise self.error(f"{element.name}: {error}", element.column) from None

    def option(self, pass_class: type[Pass], written: OptionText, pass_name: str) -> tuple[str, object]:
        options = {option.spelling: option for option in options_of(pass_class)}
        if written.key not in options:
            known = did_you_mean(written.key, options) or (
                f"; it takes {', '.join(options)}" if options else "; it takes none"
            )
            raise self.error(f"'{pass_name}' has no option '{written.key}'{known}", written.column)
        option = options[written.key]
        try:
            return option.field, parse_value(option, unquote(written.value or ""))
        except OptionError as error:
            raise self.error(str(error), written.column) from None


def _is_registered(op_name: str, context: ir.Context) -> bool:
    try:
        # Ops are registered when their dialect is loaded, which asking for it does.
        context.get_dialect_descriptor(op_name.partition(".")[0])
    except ValueError:
        return False
    return context.is_registered_operation(op_name)

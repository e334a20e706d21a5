# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Typed pass options: dataclass fields that parse from and print to pipeline text."""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Sequence
from typing import Any, Literal, Union, get_args, get_origin

_NEEDS_QUOTES = re.compile(r"[\s{}()\"',=]|^$")


class OptionError(ValueError):
    """An option value that does not fit its type, or an option that does not exist."""


@dataclasses.dataclass(frozen=True)
class Option:
    """One option of a pass.

    Attributes:
      field: The dataclass field's name.
      type: The resolved annotation.
      default: The value when the option is not given.
      help: One line for `prepass passes` and the pass reference.
      least: The smallest number that it takes, where there is one.
    """

    field: str
    type: Any
    default: Any
    help: str
    least: int | None = None

    @property
    def spelling(self) -> str:
        """The name in pipeline text: kebab-case."""
        return self.field.replace("_", "-")

    @property
    def values(self) -> str:
        """What the option takes, for help texts."""
        return _describe_type(self.type) + ("" if self.least is None else f", from {self.least}")


def option(default: Any, *, help: str, least: int | None = None) -> Any:
    """A dataclass field that is a pass option. A number is not below `least`.

    Supported annotations: bool, int, float, str, Literal of strings,
    tuple[int, ...], tuple[str, ...], and any of these or None.
    """
    return dataclasses.field(default=default, metadata={"help": help, "least": least})


def options_of(pass_class: type) -> tuple[Option, ...]:
    """The options of a pass class, in the order they are declared."""
    hints = typing.get_type_hints(pass_class)
    return tuple(
        Option(f.name, hints[f.name], f.default, f.metadata.get("help", ""), f.metadata.get("least"))
        for f in dataclasses.fields(pass_class)
    )


def parse_value(option: Option, text: str) -> Any:
    """The value of `option` that `text` spells; raises OptionError."""
    value = _parse(option.type, text)
    if value is _INVALID or (option.least is not None and value is not None and value < option.least):
        raise OptionError(f"option '{option.spelling}' takes {option.values}, not '{text}'")
    return value


def print_value(value: Any) -> str:
    """The spelling of a value, quoted where pipeline text needs it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(print_value(item) for item in value)
    text = str(value)
    return f'"{text}"' if isinstance(value, str) and _NEEDS_QUOTES.search(text) else text


_INVALID = object()


def _parse(annotation: Any, text: str) -> Any:
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return _parse_optional(get_args(annotation), text)
    if origin is Literal:
        return text if text in get_args(annotation) else _INVALID
    if origin is tuple:
        items = [_parse(get_args(annotation)[0], item) for item in text.split(",")] if text else []
        return _INVALID if any(item is _INVALID for item in items) else tuple(items)
    if annotation is bool:
        return {"true": True, "1": True, "": True, "false": False, "0": False}.get(text.lower(), _INVALID)
    if annotation is str:
        return text
    try:
        return annotation(text)
    except ValueError:
        return _INVALID


def _parse_optional(alternatives: Sequence[Any], text: str) -> Any:
    if text == "none" and type(None) in alternatives:
        return None
    return next((v for a in alternatives if a is not type(None) and (v := _parse(a, text)) is not _INVALID), _INVALID)


def _describe_type(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return " or ".join("none" if a is type(None) else _describe_type(a) for a in get_args(annotation))
    if origin is Literal:
        return "one of " + ", ".join(get_args(annotation))
    if origin is tuple:
        return "a comma-separated list of " + _describe_type(get_args(annotation)[0])
    return {bool: "true or false", int: "an integer", float: "a number", str: "a string"}[annotation]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dataclasses as records of a JSON file, each value checked against its annotation when it is read."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar, Union, get_args, get_origin

from prepass.errors import PrepassError, did_you_mean

Record = TypeVar("Record")

_NAMES = {int: "a whole number", float: "a number", str: "a string", bool: "true or false", type(None): "null"}


def to_record(value: Any) -> dict[str, Any]:
    """A dataclass as JSON has it."""
    return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}


def from_record(record_type: type[Record], record: object) -> Record:
    """The dataclass that a record spells; what it leaves out has its default.

    Annotations may be int, float, str, bool, `tuple[…, ...]` and unions of these with None.
    Raises PrepassError, one clause, when a name or a value does not fit.
    """
    if not isinstance(record, Mapping):
        raise PrepassError(f"expected an object, not {record!r}")
    hints = typing.get_type_hints(record_type)
    fields = {field.name: field for field in dataclasses.fields(record_type)}  # type: ignore[arg-type]
    for name in record:
        if name not in fields:
            raise PrepassError(f"unknown name '{name}'{did_you_mean(str(name), fields)}")
    required = dataclasses.MISSING
    for name, field in fields.items():
        if name not in record and field.default is required and field.default_factory is required:
            raise PrepassError(f"'{name}' is missing")
    return record_type(**{name: _checked(name, hints[name], value) for name, value in record.items()})


def plain(value: Any) -> Any:
    """A value as JSON has it: lists for tuples."""
    return [plain(item) for item in value] if isinstance(value, tuple) else value


def _checked(name: str, annotation: Any, value: Any) -> Any:
    if not _fits(annotation, value):
        raise PrepassError(f"'{name}' takes {_describe(annotation)}, not {value!r}")
    return frozen(value)


def frozen(value: Any) -> Any:
    """A value of JSON that can be hashed: tuples for lists."""
    return tuple(frozen(item) for item in value) if isinstance(value, list) else value


def _fits(annotation: Any, value: Any) -> bool:
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return any(_fits(alternative, value) for alternative in get_args(annotation))
    if origin is tuple:
        return isinstance(value, list) and all(_fits(get_args(annotation)[0], item) for item in value)
    if annotation is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    # True is an int for Python, and none for the file.
    return type(value) is annotation


def _describe(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return " or ".join(_describe(alternative) for alternative in get_args(annotation))
    if origin is tuple:
        return f"a list, each item {_describe(get_args(annotation)[0])}"
    return _NAMES[annotation]

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An op in a few words, in the place of a program: `attention:batch=20,m=4096,n=64,k1=64,k2=4096,element_type=f16`."""

from __future__ import annotations

import dataclasses
from typing import Any

from prepass.errors import PrepassError, did_you_mean
from prepass.ir.targets.attention_shape import AttentionShape
from prepass.ir.targets.tuning_table import ATTENTION
from prepass.tuning.small_ops import attention_module

_DEFAULTS: dict[str, Any] = {"batch": (1,), "element_type": "f16", "value_transposed": True}
_ELEMENTS = ("f16", "bf16", "f32")
_SWITCHES = {"true": True, "false": False}


def is_op_text(text: str) -> bool:
    """Whether a text is an op, and not the path of a program."""
    return text.startswith(f"{ATTENTION}:")


def op_module(text: str) -> str:
    """The text of a module whose one function is the op. Raises PrepassError."""
    kind, _, fields = text.partition(":")
    try:
        return attention_module(_attention_shape(fields))
    except PrepassError as error:
        raise PrepassError(f"{kind}: {error}") from None


def _attention_shape(text: str) -> AttentionShape:
    known = [field.name for field in dataclasses.fields(AttentionShape) if field.name != "k1_loops"]
    values = dict(_DEFAULTS)
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name not in known:
            raise PrepassError(f"unknown size '{name}'{did_you_mean(name, known)}")
        values[name] = _value(name, value)
    missing = [name for name in ("m", "k1", "k2") if name not in values]
    if missing:
        raise PrepassError(f"'{missing[0]}' is missing; expected {ATTENTION}:m=4096,k1=64,k2=4096,…")
    return AttentionShape(**{"n": values["k1"], **values})


def _value(name: str, text: str) -> Any:
    if name == "element_type":
        if text not in _ELEMENTS:
            raise PrepassError(f"'{name}' takes one of {', '.join(_ELEMENTS)}, not '{text}'")
        return text
    if name in ("value_transposed", "key_transposed", "masked"):
        if text not in _SWITCHES:
            raise PrepassError(f"'{name}' takes true or false, not '{text}'")
        return _SWITCHES[text]
    if not text.isdecimal() or int(text) < 1:
        raise PrepassError(f"'{name}' takes a whole number from 1, not '{text}'")
    return (int(text),) if name == "batch" else int(text)

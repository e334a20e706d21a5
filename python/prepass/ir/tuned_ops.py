# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that tuning tables speak of: which they are, and what of them a table is keyed by."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from iree.compiler import ir

from prepass.ir.attention.build import OP_NAME
from prepass.ir.attention.read import read_attention_shape
from prepass.ir.targets.tuning_table import ATTENTION, Shape

_READERS: Mapping[str, Callable[[ir.Operation], Shape]] = {ATTENTION: read_attention_shape}


def tuned_kind(op: ir.Operation) -> str | None:
    """The kind of an op in tuning tables, None where it is of none."""
    return ATTENTION if op.name == OP_NAME else None


def read_tuned_shape(kind: str, op: ir.Operation) -> Shape:
    """What a table is keyed by, of an op of a kind. Raises NoMatch where the op is not what the kind is for."""
    return _READERS[kind](op)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tuning tables: for each op of a program, how a target compiles it best; `prepass-tune` writes them.

A table is JSON, for one target and one version of IREE:

    {"format": "prepass-tuning-table", "version": 1, "target": "gfx942", "iree": "3.13.0", "entries": [
      {"op": "attention",
       "shape": {"batch": [20], "m": 4096, "n": 64, "k1": 64, "k2": 4096, "element_type": "f16", ...},
       "choice": {"config": {"waves": 4, "rows": 32, "keys": 64, ...}},
       "price": {...}}]}

A choice is a config, a kernel `{"kernel": "name"}`, with `"parameters"` for one of a family, or `{}` for IREE's own.
The price is for people.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iree.compiler import version as compiler_version

from prepass.errors import PrepassError, did_you_mean
from prepass.ir.records import from_record, frozen, plain, to_record
from prepass.ir.targets.attention_shape import AttentionShape
from prepass.ir.targets.gfx942 import AttentionTile
from prepass.ir.targets.gfx942_contractions import ContractionTile
from prepass.ir.targets.gfx942_misfits import attention_misfit, contraction_misfit
from prepass.ir.targets.linalg_shape import LinalgShape
from prepass.ir.targets.target import Target

FORMAT = "prepass-tuning-table"
VERSION = 1
ATTENTION, CONTRACTION, CONVOLUTION = "attention", "contraction", "convolution"
TARGETS = ("gfx942",)

Shape = AttentionShape | LinalgShape
Config = AttentionTile | ContractionTile
# Values of a kernel's parameters, by name.
Parameters = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class OpKind:
    """A kind of op that can be tuned.

    Attributes:
      shape: The dataclass that describes an op.
      config: The dataclass of its lowering config, None where only kernels can be chosen.
      misfit: Why a config cannot be for a shape, None where nothing is known against it.
    """

    shape: type
    config: type | None
    misfit: Callable[[Any, Any], str | None]


KINDS = {
    ATTENTION: OpKind(AttentionShape, AttentionTile, attention_misfit),
    CONTRACTION: OpKind(LinalgShape, ContractionTile, contraction_misfit),
    CONVOLUTION: OpKind(LinalgShape, None, lambda config, shape: None),
}


@dataclass(frozen=True)
class Choice:
    """How an op is compiled: with a config, with a kernel, or, with neither, as IREE chooses."""

    config: Config | None = None
    kernel: str = ""
    parameters: Parameters = ()

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        if self.config is not None:
            return {"config": to_record(self.config)}
        if not self.kernel:
            return {}
        parameters = {name: plain(value) for name, value in self.parameters}
        return {"kernel": self.kernel, **({"parameters": parameters} if parameters else {})}

    def __str__(self) -> str:
        if self.config is not None:
            return " ".join(f"{name}={_short(value)}" for name, value in to_record(self.config).items())
        given = "".join(f" {name}={_short(value)}" for name, value in self.parameters)
        return f"kernel {self.kernel}{given}" if self.kernel else "IREE's default"


@dataclass(frozen=True)
class Entry:
    """An op, how it is compiled, and what that costs in the cost model."""

    kind: str
    shape: Shape
    choice: Choice
    price: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        shape, price = to_record(self.shape), dict(self.price)
        return {"op": self.kind, "shape": shape, "choice": self.choice.record(), "price": price}


@dataclass(frozen=True)
class TuningTable:
    """Entries for a target and a version of IREE, one for each kind and shape."""

    target: str
    iree: str
    entries: tuple[Entry, ...] = ()

    def find(self, target: Target, kind: str, shape: Shape) -> Choice | None:
        """How to compile an op for a target; None where the table does not say."""
        if target.architecture != self.target:
            return None
        return next((e.choice for e in self.entries if e.kind == kind and e.shape == shape), None)

    def with_entries(self, entries: tuple[Entry, ...]) -> TuningTable:
        """The table with entries added, or put in the place of those for the same ops."""
        by_op = {(entry.kind, entry.shape): entry for entry in (*self.entries, *entries)}
        return TuningTable(self.target, self.iree, tuple(by_op.values()))

    def text(self) -> str:
        """As a file has it: a line for each part of an entry."""
        head = {"format": FORMAT, "version": VERSION, "target": self.target, "iree": self.iree}
        entries = ["{" + ",\n   ".join(_members(entry.record())) + "}" for entry in self.entries]
        lines = json.dumps(head)[:-1] + ', "entries": ['
        return lines + "".join(f"\n  {entry}," for entry in entries).removesuffix(",") + "\n]}\n"


def _members(record: Mapping[str, Any]) -> list[str]:
    return [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in record.items()]


def read_tuning_table(path: str | Path) -> TuningTable:
    """The table in a file.

    Raises PrepassError, one line, when it is no table, when it is for another version of IREE than the one that is
    installed, and when an entry is malformed or has a config that cannot be for its shape.
    """
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise PrepassError(f"cannot read tuning table '{path}': {reason}") from None
    try:
        return _parse(text)
    except PrepassError as error:
        raise PrepassError(f"tuning table '{path}': {error}") from None


def _parse(text: str) -> TuningTable:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise PrepassError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise PrepassError(f"it is no tuning table: its 'format' is not '{FORMAT}'")
    if document.get("version") != VERSION:
        raise PrepassError(f"its version is {document.get('version')!r}, and {VERSION} is known")
    target, iree, entries = (document.get(name) for name in ("target", "iree", "entries"))
    if target not in TARGETS:
        raise PrepassError(f"its target is {target!r}; targets that can be tuned are {', '.join(TARGETS)}")
    if iree != compiler_version.VERSION:
        raise PrepassError(f"it was made with IREE {iree}, and {compiler_version.VERSION} is installed; tune again")
    if not isinstance(entries, list):
        raise PrepassError("'entries' is no list")
    return TuningTable(target, iree, tuple(_entry(number, record) for number, record in enumerate(entries, 1)))


def _entry(number: int, record: object) -> Entry:
    try:
        return entry_from_record(record)
    except PrepassError as error:
        raise PrepassError(f"entry {number}: {error}") from None


def entry_from_record(record: object) -> Entry:
    """The entry that a record of the file spells. Raises PrepassError, one clause."""
    if not isinstance(record, dict):
        raise PrepassError(f"expected an object, not {record!r}")
    for name in ("op", "shape", "choice"):
        if name not in record:
            raise PrepassError(f"'{name}' is missing")
    if record["op"] not in KINDS:
        raise PrepassError(f"unknown op {record['op']!r}{did_you_mean(str(record['op']), KINDS)}")
    kind = KINDS[record["op"]]
    try:
        shape = from_record(kind.shape, record["shape"])
    except PrepassError as error:
        raise PrepassError(f"shape: {error}") from None
    try:
        choice = _choice(kind, record["choice"])
    except PrepassError as error:
        raise PrepassError(f"choice: {error}") from None
    if choice.config is not None and (misfit := kind.misfit(choice.config, shape)):
        raise PrepassError(f"its config cannot be: {misfit}")
    price = record.get("price", {})
    if not isinstance(price, dict):
        raise PrepassError("'price' is no object")
    return Entry(record["op"], shape, choice, price)


def _choice(kind: OpKind, record: object) -> Choice:
    names = set(record) if isinstance(record, dict) else {"?"}
    if names not in ({"config"}, {"kernel"}, {"kernel", "parameters"}, set()):
        raise PrepassError("expected {'config': …}, {'kernel': …}, {'kernel': …, 'parameters': …} or {}")
    if "config" in record:
        if kind.config is None:
            raise PrepassError("there are no configs for such ops")
        return Choice(config=from_record(kind.config, record["config"]))
    kernel, parameters = record.get("kernel", ""), record.get("parameters", {})
    if not isinstance(kernel, str) or ("kernel" in names and not kernel):
        raise PrepassError(f"'kernel' takes a name, not {kernel!r}")
    if not isinstance(parameters, dict):
        raise PrepassError(f"'parameters' takes an object, not {parameters!r}")
    return Choice(kernel=kernel, parameters=tuple((name, frozen(value)) for name, value in parameters.items()))


def _short(value: object) -> str:
    return json.dumps(plain(value), separators=(",", ":")).strip('"')

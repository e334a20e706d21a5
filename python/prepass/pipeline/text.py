# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The textual pass pipeline of MLIR: parsing to a tree, and printing it back.

    pipeline ::= anchor `(` [element (`,` element)*] `)`
    element  ::= pipeline | name [`{` option* `}`]
    option   ::= key [`=` value]

A value runs to the next blank outside of braces, brackets and quotes. The tree
knows nothing of which passes exist; `prepass.pipeline.resolve` does.

Source: the grammar of `mlir::parsePassPipeline` and its pass options
(https://mlir.llvm.org/docs/PassManagement/#textual-pass-pipeline-specification).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from prepass.errors import PipelineError

_NAME = re.compile(r"[^\s,(){}]+")
_CLOSING = {"{": "}", "[": "]", "(": ")"}
_QUOTES = "\"'"


@dataclass(frozen=True)
class OptionText:
    """One option as written: `key=value`, or `key` alone (`value` is None)."""

    key: str
    value: str | None
    column: int = field(compare=False, default=0)

    def __str__(self) -> str:
        return self.key if self.value is None else f"{self.key}={self.value}"


@dataclass(frozen=True)
class PassText:
    """A pass or named pipeline, with its options as written."""

    name: str
    options: tuple[OptionText, ...] = ()
    column: int = field(compare=False, default=0)

    def __str__(self) -> str:
        options = " ".join(map(str, self.options))
        return f"{self.name}{{{options}}}" if options else self.name


@dataclass(frozen=True)
class NestText:
    """Elements nested on ops called `anchor`."""

    anchor: str
    elements: tuple[ElementText, ...] = ()
    column: int = field(compare=False, default=0)

    def __str__(self) -> str:
        return f"{self.anchor}({','.join(map(str, self.elements))})"


ElementText = PassText | NestText


def parse_pipeline(text: str) -> NestText:
    """The tree of a pipeline anchored on `builtin.module`.

    Raises PipelineError with the column of the first character that does not fit.
    """
    parser = _Parser(text)
    root = parser.element()
    parser.skip_blanks()
    if parser.position < len(text):
        extra = text[parser.position]
        problem = "unbalanced ')'" if extra == ")" else f"unexpected '{extra}' after the end of the pipeline"
        raise parser.error(problem)
    if not isinstance(root, NestText) or root.anchor != "builtin.module":
        raise parser.error("the pipeline must be wrapped in 'builtin.module(...)'", root.column - 1)
    return root


def unquote(value: str) -> str:
    """The text of an option value, without the quotes or the one pair of braces around it."""
    if len(value) >= 2 and value[0] in _QUOTES and value[-1] == value[0]:
        return value[1:-1]
    if value.startswith("{") and value.endswith("}"):
        return value[1:-1].strip()
    return value


class _Parser:
    """Recursive descent over one pipeline text; `position` is 0-based."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def error(self, message: str, position: int | None = None) -> PipelineError:
        return PipelineError(message, self.text, (self.position if position is None else position) + 1)

    def peek(self) -> str:
        return self.text[self.position : self.position + 1]

    def skip_blanks(self) -> None:
        while self.peek().isspace():
            self.position += 1

    def element(self) -> ElementText:
        self.skip_blanks()
        start = self.position
        match = _NAME.match(self.text, start)
        if not match:
            found = f"found '{self.peek()}'" if self.peek() else "the text ends here"
            raise self.error(f"expected a pass or anchor name, {found}")
        self.position = match.end()
        self.skip_blanks()
        element: ElementText
        if self.peek() == "(":
            element = NestText(match[0], self.nested_elements(), start + 1)
        else:
            options = self.options() if self.peek() == "{" else ()
            element = PassText(match[0], options, start + 1)
        self.skip_blanks()
        return element

    def nested_elements(self) -> tuple[ElementText, ...]:
        opening = self.position
        self.position += 1
        self.skip_blanks()
        if self.peek() == ")":
            self.position += 1
            return ()
        elements = [self.element()]
        while self.peek() == ",":
            self.position += 1
            elements.append(self.element())
        if not self.peek():
            raise self.error("unbalanced '(': its ')' is missing", opening)
        if self.peek() != ")":
            raise self.error(f"expected ',' or ')', found '{self.peek()}'")
        self.position += 1
        return tuple(elements)

    def options(self) -> tuple[OptionText, ...]:
        opening = self.position
        self.position += 1
        options: list[OptionText] = []
        while True:
            self.skip_blanks()
            if not self.peek():
                raise self.error("unbalanced '{': its '}' is missing", opening)
            if self.peek() == "}":
                self.position += 1
                return tuple(options)
            options.append(self.option(opening))

    def option(self, opening: int) -> OptionText:
        start = self.position
        while self.peek() and self.peek() not in "={}" and not self.peek().isspace():
            self.position += 1
        key = self.text[start : self.position]
        if not key:
            raise self.error(f"expected an option name, found '{self.peek()}'")
        if self.peek() != "=":
            return OptionText(key, None, start + 1)
        self.position += 1
        return OptionText(key, self.value(opening), start + 1)

    def value(self, opening: int) -> str:
        start = self.position
        closing: list[str] = []
        while True:
            char = self.peek()
            if not char:
                raise self.error("unbalanced '{': its '}' is missing", opening)
            if char in _QUOTES:
                self.position = self.end_of_quote()
                continue
            if not closing and (char == "}" or char.isspace()):
                return self.text[start : self.position]
            if char in _CLOSING:
                closing.append(_CLOSING[char])
            elif closing and char == closing[-1]:
                closing.pop()
            self.position += 1

    def end_of_quote(self) -> int:
        end = self.text.find(self.peek(), self.position + 1)
        if end < 0:
            raise self.error("unbalanced quote")
        return end + 1

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic of the host on integers: sizes, offsets, workgroup counts, push constants."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

_RELATIONS: tuple[Callable[[int, int], bool], ...] = (
    # In the order of arith.cmpi's predicates; the last four are unsigned.
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
)
_FIRST_UNSIGNED = 6


def width(kind: str) -> int:
    """The bits of an integer type; `index` has 64."""
    match = re.fullmatch(r"i(\d+)", kind)
    return int(match[1]) if match else 64


def signed(value: int, bits: int) -> int:
    """The value that the low bits have as a signed number."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def unsigned(value: int, bits: int) -> int:
    """The value that the low bits have as an unsigned number."""
    return value & ((1 << bits) - 1)


def compare(predicate: int, a: int, b: int, bits: int) -> int:
    """arith.cmpi."""
    convert = unsigned if predicate >= _FIRST_UNSIGNED else signed
    return int(_RELATIONS[predicate](convert(a, bits), convert(b, bits)))


def _divide(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


_AFFINE: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "*": lambda a, b: a * b,
    "mod": lambda a, b: a % b,
    "floordiv": lambda a, b: a // b,
    "ceildiv": lambda a, b: -(-a // b),
}


def affine(expression: Sequence[Any], operands: Sequence[int]) -> int:
    """The value of an affine expression, a tuple as `read_host` makes them."""
    name, first, *rest = expression
    if name == "constant":
        return first
    if name == "operand":
        return operands[first]
    return _AFFINE[name](affine(first, operands), affine(rest[0], operands))


# Functions of the values and the width of the result, which is cut to that width.
BINARY: dict[str, Callable[[int, int, int], int]] = {
    "arith.addi": lambda a, b, bits: a + b,
    "arith.subi": lambda a, b, bits: a - b,
    "arith.muli": lambda a, b, bits: a * b,
    "arith.andi": lambda a, b, bits: a & b,
    "arith.ori": lambda a, b, bits: a | b,
    "arith.xori": lambda a, b, bits: a ^ b,
    "arith.shli": lambda a, b, bits: a << unsigned(b, bits),
    "arith.shrui": lambda a, b, bits: unsigned(a, bits) >> unsigned(b, bits),
    "arith.shrsi": lambda a, b, bits: signed(a, bits) >> unsigned(b, bits),
    "arith.divui": lambda a, b, bits: unsigned(a, bits) // unsigned(b, bits),
    "arith.remui": lambda a, b, bits: unsigned(a, bits) % unsigned(b, bits),
    "arith.ceildivui": lambda a, b, bits: -(-unsigned(a, bits) // unsigned(b, bits)),
    "arith.divsi": lambda a, b, bits: _divide(signed(a, bits), signed(b, bits)),
    "arith.remsi": lambda a, b, bits: signed(a, bits) - signed(b, bits) * _divide(signed(a, bits), signed(b, bits)),
    "arith.floordivsi": lambda a, b, bits: signed(a, bits) // signed(b, bits),
    "arith.ceildivsi": lambda a, b, bits: -(-signed(a, bits) // signed(b, bits)),
    "arith.minui": lambda a, b, bits: min(unsigned(a, bits), unsigned(b, bits)),
    "arith.maxui": lambda a, b, bits: max(unsigned(a, bits), unsigned(b, bits)),
    "arith.minsi": lambda a, b, bits: min(signed(a, bits), signed(b, bits)),
    "arith.maxsi": lambda a, b, bits: max(signed(a, bits), signed(b, bits)),
}
# Conversions of a value from one width to another.
CONVERSIONS: dict[str, Callable[[int, int], int]] = {
    "arith.index_cast": signed,
    "arith.index_castui": unsigned,
    "arith.extsi": signed,
    "arith.extui": unsigned,
    "arith.trunci": unsigned,
}

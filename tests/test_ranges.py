# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What conditions prove, against every integer of 8 bits."""

import itertools
import operator

import pytest
from iree.compiler import ir

from prepass.ir.match import defining_op
from prepass.ir.ranges import facts, known_range

WIDTH = 8
SIGNED = {"slt": operator.lt, "sle": operator.le, "sgt": operator.gt, "sge": operator.ge}
UNSIGNED = {"ult": operator.lt, "ule": operator.le, "ugt": operator.gt, "uge": operator.ge}
EQUAL = {"eq": operator.eq, "ne": operator.ne}
BOUNDS = (-128, -127, -1, 0, 1, 77, 126, 127)


def unsigned(number):
    return number % (1 << WIDTH)


def holds(predicate, left, right):
    if predicate in UNSIGNED:
        return UNSIGNED[predicate](unsigned(left), unsigned(right))
    return (SIGNED | EQUAL)[predicate](left, right)


def proved(context, *conditions):
    """The range of %x when all conditions hold; a condition is the text of ops that define %c."""
    context.allow_unregistered_dialects = True
    lines = [text.replace("%c", f"%c{number}").replace("%b", f"%b{number}") for number, text in enumerate(conditions)]
    uses = "".join(f'"use"(%c{number}) : (i1) -> ()\n' for number in range(len(conditions)))
    body = "\n".join(lines) + "\n" + uses
    module = ir.Module.parse(f"func.func @f(%x: i8) {{\n{body}return\n}}", context)
    block = module.body.operations[0].regions[0].blocks[0]
    x = block.arguments[0]
    result = known_range(x)
    for op in block.operations:
        if op.operation.name == "use":
            for fact in facts(op.operands[0]):
                if defining_op(fact.value) is None and fact.value == x:
                    result = result & fact.range
    return result


def compare(predicate, bound, *, swapped=False):
    operands = "%b, %x" if swapped else "%x, %b"
    return f"%b = arith.constant {bound} : i8\n%c = arith.cmpi {predicate}, {operands} : i8"


def members(range_):
    return {
        number
        for number in range(-128, 128)
        if range_.signed.low <= number <= range_.signed.high
        and range_.unsigned.low <= unsigned(number) <= range_.unsigned.high
    }


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("predicate", [*SIGNED, *UNSIGNED, *EQUAL])
def test_one_comparison(context, predicate, swapped):
    for bound in BOUNDS:
        expected = {
            n for n in range(-128, 128) if (holds(predicate, bound, n) if swapped else holds(predicate, n, bound))
        }
        got = members(proved(context, compare(predicate, bound, swapped=swapped)))
        # Only a hole in the middle cannot be described.
        assert got == expected if predicate != "ne" or bound in (-128, -1, 0, 127) else got >= expected


def test_two_comparisons(context):
    for (first, low), (second, high) in itertools.product(itertools.product(("sge", "ugt"), BOUNDS), repeat=2):
        for upper in ("slt", "ule"):
            expected = {n for n in range(-128, 128) if holds(first, n, low) and holds(upper, n, high)}
            got = proved(context, compare(first, low), compare(upper, high))
            assert members(got) >= expected
            if second == first and first[0] == upper[0]:
                assert members(got) == expected
                assert got.is_empty == (not expected)


def test_negated_and_joined_conditions(context):
    negated = "%b = arith.constant 5 : i8\n%b_lt = arith.cmpi slt, %x, %b : i8\n%b_t = arith.constant true\n"
    assert members(proved(context, negated + "%c = arith.xori %b_lt, %b_t : i1")) == set(range(5, 128))
    joined = "%b = arith.constant 5 : i8\n%b_lt = arith.cmpi slt, %x, %b : i8\n%b_z = arith.constant 0 : i8\n"
    joined += "%b_ge = arith.cmpi sge, %x, %b_z : i8\n"
    assert members(proved(context, joined + "%c = arith.andi %b_lt, %b_ge : i1")) == set(range(5))
    assert members(proved(context, joined + "%c = arith.ori %b_lt, %b_ge : i1")) == set(range(-128, 128))

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests of prepass-tune share: small ops, requests and searches."""

import dataclasses
import functools

from prepass.ir.targets.tuning_table import (
    Entry,
)
from prepass.tuning.evaluate import Request
from prepass.tuning.extract import extract
from prepass.tuning.op_text import op_module
from prepass.tuning.store import Store
from prepass.tuning.sweep import Sweep

from .conftest import GFX942

OP = "attention:batch=2,m=128,k1=32,k2=128"
LARGE = "attention:batch=20,m=4096,k1=64,k2=4096"
DOZEN = 12
TIMEOUT = 120


@functools.cache
def small_op():
    """The op of `OP`."""
    return extract(op_module(OP), flags=GFX942).ops[0]


def request(op, choice, **changes) -> Request:
    (dispatch,) = op.dispatches
    entry = Entry(op.kind, op.shape, choice)
    return dataclasses.replace(Request(dispatch.source, entry, "gfx942", GFX942), **changes)


def search(ops, path, executor, limit=DOZEN):
    with Store(path) as store, executor:
        sweep = Sweep(store, executor, "gfx942", limit, GFX942)
        return sweep, sweep.run(ops)[0]

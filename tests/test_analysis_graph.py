# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lanes of a drawn graph, and ops that are followed by numbers in their locations."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from iree.compiler import ir
from iree.compiler.passmanager import PassManager

from prepass.analysis.costs import Cost
from prepass.analysis.graph import DispatchGraph, Node
from prepass.analysis.issue_kinds import ALL_PASSES, PASS_ISSUES, kinds_of
from prepass.analysis.lanes import assign_lanes, regions
from prepass.analysis.provenance import Snapshot, number_ops, numbers_of, snapshot
from prepass.ir.locations import describe_source
from prepass.ir.match import find_ops
from prepass.pipeline.base import Remark, RemarkKind
from prepass.pipeline.registry import default_registry

from .conftest import ADD

ROOT = Path(__file__).resolve().parent.parent


def node(number: int, producers: tuple[int, ...]) -> Node:
    return Node("main_dispatch", "copy", "", Cost(), False, "", number, "main", frozenset(), producers, frozenset())


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 60))
    return [node(n, tuple(sorted(draw(st.sets(st.integers(0, n - 1), max_size=3))) if n else ())) for n in range(count)]


@settings(deadline=None, max_examples=50)
@given(graphs())
def test_a_lane_holds_one_result_at_a_time(nodes):
    lanes = assign_lanes(nodes)
    for first in nodes:
        for second in nodes[first.number + 1 :]:
            if lanes.lanes[first.number] == lanes.lanes[second.number]:
                assert lanes.last[first.number] <= second.number
    readers = DispatchGraph(tuple(nodes), {}).readers
    assert all(lanes.last[n.number] == max(readers[n.number], default=n.number) for n in nodes)
    alive = [sum(n.number <= row < lanes.last[n.number] for n in nodes) for row in range(len(nodes))]
    assert list(lanes.live) == alive


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 9), max_size=300))
def test_regions_cover_all_rows_in_parts_of_a_readable_length(live):
    parts = regions(live)
    assert [row for part in parts for row in part] == list(range(len(live)))
    assert all(len(part) <= 41 for part in parts)


def test_regions_are_cut_where_the_fewest_results_are_alive():
    live = [3] * 100
    live[29] = 1
    assert regions(live)[0] == range(30)


def test_numbers_survive_passes_that_keep_locations(context):
    module = ir.Module.parse(ADD, context)
    sources = number_ops(module.operation)
    (product,) = (number for number, op in sources.items() if op.name == "arith.mulf")
    first, second = (number for number, op in sources.items() if op.name == "arith.addf")
    before = snapshot(module.operation)
    assert before.closure([product], frozenset({first, second})) == {product, first, second}
    with context:
        PassManager.parse("builtin.module(cse)").run(module.operation)
    after = snapshot(module.operation)
    assert set(before.operands) - set(after.operands) == {second}
    (op,) = find_ops(module.operation, lambda op: op.name == "arith.mulf")
    assert numbers_of(op.location) == {product}
    assert sources[product].location.endswith(":4:8")


def test_a_closure_stays_within_what_is_given():
    chain = Snapshot({3: frozenset({2}), 2: frozenset({1}), 1: frozenset({0})})
    assert chain.closure([3], frozenset({0, 2})) == {3, 2}


def test_the_frame_of_the_model_is_reported_and_not_that_of_torch(context):
    def file(name, line):
        return ir.Location.file(name, line, 0, context)

    frames = [file("/usr/lib/python3/site-packages/torch/nn/modules/linear.py", 134), file("/models/unet.py", 20)]
    called = ir.Location.callsite(frames[0], frames[1:], context)
    assert describe_source(called) == "/models/unet.py:20:0"
    assert describe_source(ir.Location.name("op", called, context)) == "/models/unet.py:20:0"
    assert describe_source(frames[0]).endswith("linear.py:134:0")
    assert describe_source(ir.Location.unknown(context)) == "<unknown>"


def test_every_pass_of_an_issue_exists():
    names = set(default_registry().pass_names())
    assert {name for kind in PASS_ISSUES for name in kind.passes} <= names
    assert set(ALL_PASSES) <= names


def test_a_pass_that_no_kind_is_made_for_has_an_issue_of_its_own_name():
    remark = Remark(RemarkKind.APPLIED, "prepass-configure-attention", "done", "op", "here")
    (kind,) = (kind for kind in kinds_of(["prepass-configure-attention"]) if kind not in PASS_ISSUES)
    assert kind.name == "configure-attention"
    assert kind.concerns(remark, applied=True)
    assert list(kinds_of(["prepass-raise-attention", "prepass-strip-assertions"])) == list(PASS_ISSUES)


def test_what_is_no_issue_is_told_by_reasons_that_passes_give():
    """A reason that is worded anew would make an issue of what is none."""
    folders = (ROOT / "passes", ROOT / "python" / "prepass" / "ir")
    sources = "".join(path.read_text() for folder in folders for path in sorted(folder.rglob("*.py")))
    told = [part for kind in PASS_ISSUES for part in (*kind.no_issue, *kind.messages)]
    assert [part for part in told if part not in sources] == []
